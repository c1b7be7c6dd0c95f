"""The report as a picture: whether auto beats plain headroom of the same cost, who was short, when, and how much."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from recommender.backtest.errors import BacktestError
from recommender.backtest.replayed_policies import AUTO
from recommender.backtest.reports.cost_panels import (
    AUTO_COLOUR,
    OTHER_COLOURS,
    RIVAL_COLOUR,
    draw_budgets,
    draw_frontier,
    tidy,
)
from recommender.backtest.reports.table import sentence
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.simulation.serving import needed_replicas
from recommender.plots.labels import mark_cut_off
from recommender.plots.limits import usual_top
from recommender.plots.literal_text import literal_text

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from recommender.backtest.report import BacktestReport
    from recommender.kinds.predictive.arrays import FloatArray, IntArray

_NEEDED: Final = "#222222"
_SHORT: Final = "#d7191c"
_FAR_ABOVE: Final = 10.0
"""A peak of the worst day that is more than this many times the usual peak is cut off."""
_GAP_RATIO: Final = 0.04
"""The gap between an axis's zero and the marks below it."""
_BINS: Final = 700
"""The number of bins in the overview, about one for every other pixel."""


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    serving: FloatArray
    colour: str
    width: float


@literal_text()
def write_plot(report: BacktestReport, path: Path) -> None:
    """Write the picture in the format of the file's suffix, such as `.png`. Raises BacktestError."""
    figure = Figure(figsize=(14, 11), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 2, height_ratios=[1.25, 1.25, 1.4], width_ratios=[1.7, 1.0])
    figure.suptitle(
        "\n".join(textwrap.wrap(sentence(report), 125)),
        fontsize=13,
        fontweight="bold",
        x=0.01,
        horizontalalignment="left",
    )
    lines = _lines(report)
    overview = figure.add_subplot(grid[0, 0])
    _overview(overview, report)
    _shortages(figure.add_subplot(grid[1, 0], sharex=overview), report, lines)
    draw_frontier(figure.add_subplot(grid[0, 1]), report)
    draw_budgets(figure.add_subplot(grid[1, 1]), report)
    _worst_day(figure.add_subplot(grid[2, :]), report, lines)
    try:
        canvas.print_figure(path)
    except OSError as error:
        raise BacktestError(
            f"{path}: the plot cannot be written: {error.strerror or error}: name another file"
        ) from error
    except ValueError as error:
        raise BacktestError(f"{path}: the plot cannot be written: write a name that ends with .png") from error


def _lines(report: BacktestReport) -> list[_Line]:
    """Return the policies to draw: auto and its rival first, then the others."""
    auto = report.policy(AUTO)
    ratio = auto.comparison.cost_as_headroom_ratio
    others = [each for each in report.policies if each.name != AUTO]
    return [
        _Line(AUTO, auto.fleet.serving, AUTO_COLOUR, 2.0),
        _Line(f"headroom {100 * ratio:.3g}%, same cost", report.rival.serving, RIVAL_COLOUR, 1.6),
        *(
            _Line(each.name, each.fleet.serving, OTHER_COLOURS[index % len(OTHER_COLOURS)], 0.7)
            for index, each in enumerate(others)
        ),
    ]


def _edges(report: BacktestReport) -> FloatArray:
    """Return the beginning of each step and the end of the last step, in days as matplotlib counts them."""
    history = report.history
    ends = history.start_seconds + history.step_seconds * np.arange(history.steps + 1)
    return np.asarray(ends / DAY_SECONDS, dtype=np.float64)


def _overview(axes: Axes, report: BacktestReport) -> None:
    """Draw the range of needed replicas in each bin, since lines through so many steps would merge into a blot."""
    needed = needed_replicas(report.load, report.fleet_settings.load_per_replica)
    starts, edges = _bins(len(needed)), _edges(report)
    ends = edges[np.append(starts, len(needed))]
    most, least = np.fmax.reduceat(needed, starts), np.fmin.reduceat(needed, starts)
    serving = report.policy(AUTO).fleet.serving
    mean = np.add.reduceat(serving, starts) / np.diff(np.append(starts, len(serving)))
    axes.stairs(most, ends, baseline=np.nan_to_num(least), fill=True, color="#9a9a9a", label="needed (range)")
    axes.stairs(most, ends, baseline=None, color="#7a7a7a", linewidth=0.8)
    axes.stairs(mean, ends, baseline=None, color=AUTO_COLOUR, linewidth=1.1, label=f"serving, {AUTO}")
    warm = int(np.argmax(report.judged))
    if warm:
        axes.axvspan(edges[0], edges[warm], color="#f0efe6", zorder=0)
        axes.text(edges[0], 0.97, " warm-up, not judged", transform=axes.get_xaxis_transform(), va="top", fontsize=9)
    axes.set_ylabel("replicas")
    top = 1.15 * usual_top(np.concatenate([most, mean]).tolist())
    axes.set_ylim(0, top)
    mark_cut_off(axes, ends[:-1], most, top)
    axes.set_title("Whole trace", loc="left", fontsize=11)
    # It is beside the title, where it covers no line.
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, fontsize=9, frameon=False, ncols=2)
    axes.tick_params(labelbottom=False)
    tidy(axes, dated=True)


def _shortages(axes: Axes, report: BacktestReport, lines: list[_Line]) -> None:
    """Draw a row for each policy: the redder, the larger the share of short steps."""
    needed = needed_replicas(report.load, report.fleet_settings.load_per_replica)
    starts = _bins(len(needed))
    counted = report.judged & ~np.isnan(needed)
    counts = np.add.reduceat(counted.astype(np.float64), starts)
    edges = _edges(report)[np.append(starts, len(needed))]
    shares, labels = [], []
    for line in lines:
        short = (needed > line.serving) & counted
        binned = np.add.reduceat(short.astype(np.float64), starts)
        shares.append(np.divide(binned, counts, out=np.full(len(starts), np.nan), where=counts > 0))
        share = short.sum() / max(1, counted.sum())
        labels.append(f"{line.name.removeprefix('model:')}   {100 * share:.3g}%")
    colours = LinearSegmentedColormap.from_list("short", ["#f4f4f4", "#fcae91", _SHORT, "#67000d"], bad="#ffffff")
    # The root lets a single short step of many show.
    axes.pcolormesh(
        edges, np.arange(len(lines) + 1), np.sqrt(np.ma.masked_invalid(shares)), cmap=colours, vmin=0, vmax=1
    )
    axes.set_yticks(np.arange(len(lines)) + 0.5, labels, fontsize=9)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(lines), 0)
    axes.set_title("When each policy was short (red), and in which share of the judged steps", loc="left", fontsize=11)
    tidy(axes, dated=True)


def _worst_day(axes: Axes, report: BacktestReport, lines: list[_Line]) -> None:
    """Draw the day with the largest shortage of auto and its rival."""
    needed = needed_replicas(report.load, report.fleet_settings.load_per_replica)
    begin, end = _worst(report, needed, lines[:2])
    edges, part = _edges(report)[begin : end + 1], needed[begin:end]
    auto, rival, *others = ((line, line.serving[begin:end]) for line in lines)
    for index, (line, serving) in enumerate(others):
        label = "serving, other policies" if index == 0 else None
        axes.stairs(serving, edges, baseline=None, color=line.colour, linewidth=line.width, alpha=0.45, label=label)
    for line, serving in (rival, auto):
        label = f"serving, {line.name}"
        axes.stairs(serving, edges, baseline=None, color=line.colour, linewidth=line.width, label=label)
    axes.stairs(part, edges, baseline=None, color=_NEEDED, linewidth=1.0, label="needed")
    top = 1.25 * usual_top([*part, *auto[1], *rival[1]], outlier_ratio=_FAR_ABOVE)
    mark_cut_off(axes, edges[:-1], np.fmax(part, np.fmax(auto[1], rival[1])), top)
    for row, (line, serving) in enumerate((auto, rival), 1):
        bottom = -(0.06 * row + _GAP_RATIO) * top
        short = np.where(part > serving, bottom + 0.05 * top, bottom)
        axes.stairs(short, edges, baseline=bottom, fill=True, color=_SHORT, edgecolor=_SHORT, linewidth=0.5)
        axes.text(
            -0.005,
            bottom + 0.025 * top,
            f"short, {line.name.split(' ')[0].removeprefix('model:')}",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=8,
            color=line.colour,
        )
    axes.axhline(0, color=_NEEDED, linewidth=0.6)
    axes.set_ylabel("replicas")
    axes.set_ylim(-(0.13 + _GAP_RATIO) * top, top)
    axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= top])
    axes.set_xlim(edges[0], edges[-1])
    axes.set_title(
        "The worst day, with the largest shortage of auto and of headroom at the same cost; red: serving is below "
        "needed",
        loc="left",
        fontsize=11,
    )
    handles, names = axes.get_legend_handles_labels()
    # It is below the axis, where it covers neither a line nor the mark of a peak.
    axes.legend(
        handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(0, -0.1), fontsize=9, ncols=4, frameon=False
    )
    tidy(axes, dated=True)


def _worst(report: BacktestReport, needed: FloatArray, lines: list[_Line]) -> tuple[int, int]:
    """Return the steps of the worst day, or of the day with the most load if nothing is short."""
    day = max(2, round(DAY_SECONDS / report.history.step_seconds))
    first = int(np.argmax(report.judged)) if report.judged.any() else 0
    missing = np.sum([np.nan_to_num(np.maximum(needed - line.serving, 0.0)) for line in lines], axis=0)
    weights = np.asarray(missing if np.any(missing[first:]) else np.nan_to_num(needed))[first:]
    totals = np.concatenate([[0.0], np.cumsum(weights)])
    if len(weights) <= day:
        return first, len(needed)
    # These are whole days of the trace, not any 24 hours: they begin at the same time of day as the trace.
    starts = np.arange(0, len(weights) - day + 1, day)
    begin = first + int(starts[np.argmax(totals[starts + day] - totals[starts])])
    return begin, begin + day


def _bins(steps: int) -> IntArray:
    """Return the first step of each bin of the overview."""
    return np.unique(np.linspace(0, steps, min(_BINS, steps), endpoint=False).astype(np.int64))
