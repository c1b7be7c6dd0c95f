"""The report of a replay as a picture: the number of nodes over time with each policy, and the cost of each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from recommender.plots.labels import cut_axis, legend_beside, shorten_name
from recommender.plots.limits import cut_off_text, top_of_few
from recommender.plots.literal_text import literal_text
from recommender.plots.times import amount_text, time_axis, whole_numbers
from recommender.recording.recording import RecordingError
from recommender.replay.policy_outcome import DAY_SECONDS, PolicyOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.replay.reports.report import ReplayReport

_RECORDED: Final = "#222222"
_USED: Final = "#0b6fb8"
_UNKNOWN: Final = "#e6e6e6"
_OTHERS: Final = ("#e08214", "#7b5ea7", "#4d9a6a", "#b0a030", "#a05050", "#50a0a0", "#c080b0", "#606060")
_POINTS: Final = 1400
_TITLE_WIDTH: Final = 150
_NODES_INCHES: Final = 7.0
_ROW_INCHES: Final = 0.3
_LEAST_ROWS: Final = 6


@literal_text()
def write_replay_plot(report: ReplayReport, path: Path) -> None:
    """Write the picture in the format of the file's suffix, such as `.png`. Raises RecordingError."""
    # The lower panel has a row for each policy.
    rows = max(_LEAST_ROWS, len(report.policies))
    figure = Figure(figsize=(14, _NODES_INCHES + _ROW_INCHES * rows), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    nodes, costs = figure.subplots(2, 1, height_ratios=(_NODES_INCHES, _ROW_INCHES * rows))
    figure.suptitle("\n".join(textwrap.wrap(report.verdict.reason, _TITLE_WIDTH)), fontsize=11, ha="left", x=0.01)
    _draw_nodes(nodes, report)
    _draw_costs(costs, report)
    try:
        canvas.print_figure(str(path))
    except (OSError, ValueError) as error:
        raise RecordingError(f"--plot: {path} cannot be written: {error}") from error


def _colours(report: ReplayReport) -> list[str]:
    used = report.verdict.use or report.policies[0].name
    others = iter(_OTHERS * (1 + len(report.policies) // len(_OTHERS)))
    return [_USED if one.name == used else next(others) for one in report.policies]


def _draw_nodes(panel: Axes, report: ReplayReport) -> None:
    grid = np.linspace(report.start, report.end, _POINTS, endpoint=False)
    moments = (grid * 1000).astype("datetime64[ms]")
    if report.gaps:
        spans = [(gap.start / DAY_SECONDS, (gap.end - gap.start) / DAY_SECONDS) for gap in report.gaps]
        across = panel.get_xaxis_transform()
        panel.broken_barh(spans, (0, 1), transform=across, color=_UNKNOWN, zorder=0, label="not recorded")
    recorded = _sizes(report.recorded, grid)
    panel.plot(moments, recorded, color=_RECORDED, linewidth=1.6, label="recorded", linestyle=":")
    days = grid / DAY_SECONDS
    lines = [(days, recorded)]
    for one, colour in zip(report.policies, _colours(report), strict=True):
        width, order = (1.8, 3) if colour == _USED else (0.9, 2)
        sizes = _sizes(one, grid)
        # The recommended one is drawn above the others, which are the same most of the time.
        panel.plot(moments, sizes, color=colour, linewidth=width, zorder=order, label=one.name)
        lines.append((days, sizes))
    time_axis(panel, report.start)
    cut_axis([panel], [lines], least=1.0)
    whole_numbers(panel)
    panel.set_ylabel("nodes")
    legend_beside(panel)


def _sizes(one: PolicyOutcome, grid: FloatArray) -> FloatArray:
    if not one.sizes:
        return np.zeros(len(grid))
    times, sizes = np.array(one.sizes, dtype=np.float64).T
    places = np.searchsorted(times, grid, side="right") - 1
    return np.asarray(np.where(places >= 0, sizes[np.maximum(places, 0)], 0.0))


def _draw_costs(panel: Axes, report: ReplayReport) -> None:
    """Draw each policy's cost, in money if all groups have a price, and how long pods wait with the policy."""
    priced = all(one.cost is not None for one in report.policies)
    values = [float((one.cost if priced and one.cost is not None else one.node_hours).sum()) for one in report.policies]
    places = np.arange(len(values))
    panel.barh(places, values, color=_colours(report), height=0.7)
    panel.set_yticks(places, [shorten_name(one.name) for one in report.policies], fontsize=8)
    top = 1.02 * (top_of_few(values) or 1.0)
    panel.set_xlim(0, top)
    for place, (one, value) in enumerate(zip(report.policies, values, strict=True)):
        cost = cut_off_text(value) if value > top else amount_text(value)
        minutes = amount_text(float(one.pending_minutes.sum()))
        waits = f"{minutes} pod-minutes pending, {one.evictions.sum():,.0f} evictions"
        # The text is in a column at the right: a short bar has no room for it.
        panel.text(1.01, place, f"{cost}; {waits}", transform=panel.get_yaxis_transform(), va="center", fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("cost" if priced else "node-hours")
