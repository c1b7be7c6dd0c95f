"""A page of small multiples for each trace: load, capacity, shortages and the model that leads, by start-up time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.plots.labels import mark_cut_off
from recommender.plots.limits import usual_top

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from benchmarks.forecast_replay import Replayed

_NEEDED: Final = "#222222"
_AUTO: Final = "#0b6fb8"
_RIVAL: Final = "#e08214"
_SHORT: Final = "#d7191c"
_COLOURS: Final = ("#9ecae1", "#c7e9c0", "#fdd0a2", "#dadaeb", "#fcbba1", "#d9d9d9", "#fee391", "#bcbddc", "#a1d99b")
_DAYS: Final = 3
"""How many days of each replay are shown: they end half a day after the largest shortage of auto or of headroom."""


def write_page(name: str, replays: Sequence[Replayed], path: Path) -> None:
    """Write the page as a PNG file."""
    figure = Figure(figsize=(15, 3.4 * len(replays)), dpi=90, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    figure.suptitle(f"{name}: replicas needed, and serving at equal replica-hours", fontsize=13, fontweight="bold")
    for place, each in enumerate(replays):
        _draw(figure.add_subplot(len(replays), 1, place + 1), each)
    canvas.print_figure(path)


def _draw(axes: Axes, found: Replayed) -> None:
    some = _shown(found)
    times = (1000 * found.history.times()[some]).astype("datetime64[ms]")
    needed, serving, rival = found.needed[some], found.serving[some], found.rival_serving[some]
    most = usual_top(np.concatenate([needed, serving, rival]).tolist())
    leading = np.array(found.in_use[some], dtype=str)
    for colour, model in zip(_COLOURS, sorted(set(leading.tolist())), strict=False):
        axes.fill_between(
            times, 0, 1.05 * most, where=leading == model, color=colour, alpha=0.35, linewidth=0, label=f"{model} leads"
        )
    axes.plot(times, needed, color=_NEEDED, linewidth=0.9, label="needed")
    axes.step(times, rival, color=_RIVAL, linewidth=0.8, where="post", label="headroom of equal cost")
    axes.step(times, serving, color=_AUTO, linewidth=1.1, where="post", label="auto")
    with np.errstate(invalid="ignore"):
        axes.fill_between(times, serving, needed, where=needed > serving, color=_SHORT, step="post", label="auto short")
    auto = found.auto
    axes.set_title(
        f"start-up {found.startup_seconds:g} s: short {_text(auto.tau_under_versus_headroom)} as often and "
        f"{_text(auto.theta_under_versus_headroom)} as much as headroom of {100 * auto.cost_as_headroom_ratio:.0f}%, "
        f"regret {found.regret.regret:+.2f} against {found.regret.best}",
        fontsize=10,
        loc="left",
    )
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_ylim(0, 1.05 * most)
    mark_cut_off(axes, found.history.times()[some] / DAY_SECONDS, np.fmax(needed, np.fmax(serving, rival)), 1.05 * most)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _shown(found: Replayed) -> slice:
    day = max(1, round(DAY_SECONDS / found.history.step_seconds))
    missing = np.nan_to_num(np.fmax(found.needed - found.serving, found.needed - found.rival_serving))
    worst = int(np.argmax(np.where(found.judged, missing, -np.inf)))
    end = min(len(missing), worst + day // 2)
    return slice(max(0, end - _DAYS * day), end)


def _text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f} times"
