"""The report as a picture: whether auto beats plain headroom of the same cost, who was short when, and by how much."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from recommender.backtest.errors import BacktestError
from recommender.backtest.policies import AUTO
from recommender.backtest.table import sentence
from recommender.predictive.history import DAY_SECONDS
from recommender.predictive.simulation.serving import needed_replicas

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from recommender.backtest.report import BacktestReport
    from recommender.predictive.arrays import FloatArray, IntArray

_NEEDED: Final = "#222222"
_AUTO: Final = "#0b6fb8"
_RIVAL: Final = "#e08214"
_OTHERS: Final = ("#8c8c8c", "#7b5ea7", "#4d9a6a", "#b0a030", "#a05050", "#50a0a0", "#c080b0", "#606060")
_SHORT: Final = "#d7191c"
_BINS: Final = 700
"""About one for every other pixel of the overview."""


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    serving: FloatArray
    colour: str
    width: float


def write_plot(report: BacktestReport, path: Path) -> None:
    """Write the picture in the format of the file's suffix, such as `.png`. Raises BacktestError."""
    figure = Figure(figsize=(14, 11), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 2, height_ratios=[1.15, 1.25, 1.5], width_ratios=[2.1, 1.0])
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
    _frontier(figure.add_subplot(grid[0:2, 1]), report)
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
    """Return auto and its rival first, then the others."""
    auto = report.policy(AUTO)
    ratio = auto.comparison.cost_as_headroom_ratio
    others = [each for each in report.policies if each.name != AUTO]
    return [
        _Line(AUTO, auto.fleet.serving, _AUTO, 2.0),
        _Line(f"headroom of the same cost, {100 * ratio:.3g} %", report.rival.serving, _RIVAL, 1.6),
        *(
            _Line(each.name, each.fleet.serving, _OTHERS[index % len(_OTHERS)], 0.7)
            for index, each in enumerate(others)
        ),
    ]


def _times(report: BacktestReport) -> pd.DatetimeIndex:
    return pd.to_datetime(report.history.times(), unit="s")


def _overview(axes: Axes, report: BacktestReport) -> None:
    """Draw the range of needed and serving replicas in each bin: lines of so many steps would be a blot."""
    needed = needed_replicas(report.load, report.fleet_settings.load_per_replica)
    starts = _bins(len(needed))
    times = _times(report)[starts]
    with np.errstate(all="ignore"):
        most = np.fmax.reduceat(needed, starts)
        least = np.fmin.reduceat(needed, starts)
    serving = report.policy(AUTO).fleet.serving
    axes.fill_between(times, least, most, color="#9a9a9a", linewidth=0, step="post", label="needed (range)")
    axes.step(
        times,
        np.add.reduceat(serving, starts) / np.diff(np.append(starts, len(serving))),
        where="post",
        color=_AUTO,
        linewidth=1.1,
        label=f"serving, {AUTO}",
    )
    warm = np.flatnonzero(report.judged)
    if len(warm) and warm[0] > 0:
        axes.axvspan(times[0], _times(report)[warm[0]], color="#f0efe6", zorder=0)
        axes.text(times[0], 0.97, " warm-up, not judged", transform=axes.get_xaxis_transform(), va="top", fontsize=9)
    axes.set_ylabel("replicas")
    axes.set_ylim(bottom=0)
    axes.set_title("Whole trace", loc="left", fontsize=11)
    axes.legend(loc="upper right", fontsize=9, framealpha=0.85)
    axes.tick_params(labelbottom=False)
    _tidy(axes)


def _shortages(axes: Axes, report: BacktestReport, lines: list[_Line]) -> None:
    """Draw a row for each policy: the redder, the larger the share of short steps."""
    needed = needed_replicas(report.load, report.fleet_settings.load_per_replica)
    starts = _bins(len(needed))
    counted = report.judged & ~np.isnan(needed)
    counts = np.add.reduceat(counted.astype(np.float64), starts)
    times = _times(report)
    edges = times[np.append(starts, len(needed) - 1)]
    shares, labels = [], []
    for line in lines:
        short = (needed > line.serving) & counted
        binned = np.add.reduceat(short.astype(np.float64), starts)
        shares.append(np.divide(binned, counts, out=np.full(len(starts), np.nan), where=counts > 0))
        share = short.sum() / max(1, counted.sum())
        labels.append(f"{line.name.removeprefix('model:')}   {100 * share:.3g} %")
    colours = LinearSegmentedColormap.from_list("short", ["#f4f4f4", "#fcae91", _SHORT, "#67000d"])
    colours.set_bad("#ffffff")
    # The root lets a single short step of many show.
    axes.pcolormesh(
        edges, np.arange(len(lines) + 1), np.sqrt(np.ma.masked_invalid(shares)), cmap=colours, vmin=0, vmax=1
    )
    axes.set_yticks(np.arange(len(lines)) + 0.5, labels, fontsize=9)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(lines), 0)
    axes.set_title("When each policy was short (red), and in which share of the judged steps", loc="left", fontsize=11)
    _tidy(axes)


def _frontier(axes: Axes, report: BacktestReport) -> None:
    """Draw shortage over cost: below the line a policy beats plain headroom."""
    measures = [point.measures for point in report.frontier]
    hours = np.array([each.replica_hours for each in measures])
    taus = np.array([each.tau_under_percent for each in measures])
    shown = [policy for policy in report.policies if policy.name != "model:headroom"]
    floor = _floor([*taus, *(policy.measures.tau_under_percent for policy in shown)])
    axes.plot(hours, np.maximum(taus, floor), color=_RIVAL, linewidth=2, label="plain headroom")
    last = -np.inf
    for point, hour, tau in zip(report.frontier, hours, np.maximum(taus, floor), strict=True):
        if hour - last > 0.09 * (hours[-1] - hours[0] or 1.0):
            axes.annotate(
                f"{100 * point.headroom_ratio:.3g} %",
                (hour, tau),
                xytext=(3, 4),
                textcoords="offset points",
                fontsize=8,
                color=_RIVAL,
            )
            axes.plot(hour, tau, "o", color=_RIVAL, markersize=3)
            last = hour
    for index, policy in enumerate(shown):
        is_auto = policy.name == AUTO
        place = (policy.measures.replica_hours, max(policy.measures.tau_under_percent, floor))
        axes.plot(
            *place,
            "D" if is_auto else "s",
            color=_AUTO if is_auto else _OTHERS[index % len(_OTHERS)],
            markersize=9 if is_auto else 6,
            zorder=3,
        )
        axes.annotate(
            policy.name.removeprefix("model:"),
            place,
            xytext=(7, -10 if index % 2 else 5),
            textcoords="offset points",
            fontsize=10 if is_auto else 8,
            fontweight="bold" if is_auto else "normal",
            color=_AUTO if is_auto else _NEEDED,
        )
    axes.set_yscale("log")
    most = max(policy.measures.replica_hours for policy in shown)
    axes.set_xlim(0.97 * hours[0], 1.15 * max(most, 1.02 * hours[0]) or 1.0)
    axes.set_xlabel("cost: replica-hours")
    axes.set_ylabel("short: % of the judged steps")
    axes.set_title("Below the line: better than headroom of that cost", loc="left", fontsize=11)
    _tidy(axes)


def _floor(taus: list[float]) -> float:
    """Return where a shortage of 0 is drawn on a logarithmic axis."""
    return 0.5 * min((tau for tau in taus if tau > 0), default=0.2)


def _worst_day(axes: Axes, report: BacktestReport, lines: list[_Line]) -> None:
    """Draw the day in which auto and its rival lacked most."""
    needed = needed_replicas(report.load, report.fleet_settings.load_per_replica)
    begin, end = _worst(report, needed, lines[:2])
    times = _times(report)[begin:end]
    part = needed[begin:end]
    for line in reversed(lines):
        axes.step(
            times,
            line.serving[begin:end],
            where="post",
            color=line.colour,
            linewidth=line.width,
            label=f"serving, {line.name}",
            alpha=1.0 if line.width > 1 else 0.7,
        )
    axes.step(times, part, where="post", color=_NEEDED, linewidth=1.0, label="needed")
    auto = lines[0].serving[begin:end]
    axes.fill_between(
        times,
        auto,
        part,
        where=part > auto,
        step="post",
        color=_SHORT,
        alpha=0.75,
        linewidth=0,
        label=f"short with {AUTO}",
    )
    axes.set_ylabel("replicas")
    seen = np.concatenate([part, auto, lines[1].serving[begin:end]])
    axes.set_ylim(0, 1.12 * max(1.0, float(np.nanmax(seen)) if not np.isnan(seen).all() else 1.0))
    axes.set_title(
        "The worst day: the one in which auto and headroom of the same cost lacked most", loc="left", fontsize=11
    )
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], loc="upper left", fontsize=8, ncols=4, framealpha=0.85)
    _tidy(axes)


def _worst(report: BacktestReport, needed: FloatArray, lines: list[_Line]) -> tuple[int, int]:
    """Return the steps of the worst day; of the fullest one where nothing is short."""
    day = max(2, round(DAY_SECONDS / report.history.step_seconds))
    first = int(np.argmax(report.judged)) if report.judged.any() else 0
    missing = np.sum([np.nan_to_num(np.maximum(needed - line.serving, 0.0)) for line in lines], axis=0)
    weights = np.asarray(missing if np.any(missing[first:]) else np.nan_to_num(needed))[first:]
    totals = np.concatenate([[0.0], np.cumsum(weights)])
    if len(weights) <= day:
        return first, len(needed)
    # Whole days of the trace, not any 24 hours: they begin at the same time as the trace does.
    starts = np.arange(0, len(weights) - day + 1, day)
    begin = first + int(starts[np.argmax(totals[starts + day] - totals[starts])])
    return begin, begin + day


def _bins(steps: int) -> IntArray:
    """Return the first step of each bin of the overview."""
    return np.unique(np.linspace(0, steps, min(_BINS, steps), endpoint=False).astype(np.int64))


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if axes.get_xlabel() == "":
        locator = AutoDateLocator(minticks=4, maxticks=10)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
