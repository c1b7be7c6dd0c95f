"""Plots the day of both fleets as a picture that explains itself."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from recommender.plots.labels import cut_axis, legend_beside
from recommender.plots.literal_text import literal_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from demo.forecasts import Choice
    from demo.moments import Moment
    from demo.verdict import FleetDay, Verdict

TITLE_COLUMNS = 84
WANTED, OPEN, CAPACITY, ASKED, PREDICTED, REFUSED = "#1f6fb2", "#0b2a4a", "#2a9d5c", "#7a5195", "#e08a00", "#c8332b"


@literal_text()
def plot_day(days: tuple[FleetDay, FleetDay], verdicts: tuple[Verdict, Verdict], choice: Choice, *, path: Path) -> None:
    """Write the load of each fleet, the capacity that followed it, the pods and the refused connections as a PNG."""
    figure = Figure(figsize=(17, 7.5), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(3, 1.3))
    for column, (day, verdict) in enumerate(zip(days, verdicts, strict=True)):
        _plot_load(axes[0][column], day)
        _plot_pods(axes[1][column], day)
        axes[0][column].set_title(_title(day, verdict, choice), fontsize=10, loc="left")
    for row in axes:
        _scale_row(row)
    axes[0][0].set_ylabel("connections")
    axes[1][0].set_ylabel("pods")
    for each in axes.flat:
        each.grid(visible=True, alpha=0.25)
        each.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        _headline(*days),
        fontsize=13,
        fontweight="bold",
        x=0.01,
        ha="left",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _scale_row(row: Sequence[Axes]) -> None:
    """Give both panels of a row the same scale, which an outlier does not flatten, and one legend at the right."""
    # Marks of refusals have no line between them: they are drawn at the number of wanted connections.
    curves = [
        [np.array(line.get_data(), dtype=np.float64) for line in panel.get_lines() if line.get_linestyle() != "None"]
        for panel in row
    ]
    cut_axis(row, [[(x, y) for x, y in lines] for lines in curves])
    entries: dict[str, Artist] = {}
    for panel in row:
        entries |= {name: handle for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    legend_beside(row[-1], entries, size=9)


def _headline(reactive: FleetDay, predictive: FleetDay) -> str:
    return (
        f"The same day, the same HPA, {reactive.pod_seconds:,.0f} and {predictive.pod_seconds:,.0f} pod-seconds: "
        f"{reactive.refused} connections refused with plain headroom, {predictive.refused} with a forecast"
    )


def _title(day: FleetDay, verdict: Verdict, choice: Choice) -> str:
    """Return a title that says what the fleet follows, why its verdict is as it is, and how its day ended."""
    last = day.moments[-1]
    name = "Predictive" if day.target.follows_forecast else "Reactive"
    result = "held" if verdict.held else "NOT HELD"
    how = (
        f"the predicted load is one more metric. {choice.reason}"
        if day.target.follows_forecast
        else f"{day.target.connections_per_pod} connections a pod as they are open now"
        + (f": headroom of {choice.headroom_ratio:.0%}, which costs what the forecasts cost" if choice.is_made else "")
    )
    lines = textwrap.wrap(f"{name} ({result}): {how}", TITLE_COLUMNS)
    lines.append(f"{last.refused} of {last.attempted} connections refused, {day.pod_seconds:,.0f} pod-seconds")
    return "\n".join(lines)


def _plot_load(load: Axes, day: FleetDay) -> None:
    moments = day.moments
    seconds, capacity, limit = [m.seconds for m in moments], [m.capacity for m in moments], moments[-1].limit
    load.fill_between(seconds, capacity, step="post", color=CAPACITY, alpha=0.18, linewidth=0)
    load.step(seconds, capacity, where="post", color=CAPACITY, label=f"capacity: serving pods x {limit} connections")
    load.plot(seconds, [m.wanted for m in moments], color=WANTED, linewidth=1.2, label="connections wanted")
    load.plot(seconds, [m.open for m in moments], color=OPEN, linewidth=1.8, label="connections open")
    predicted = _predicted(day)
    if predicted:
        load.plot(*zip(*predicted, strict=True), color=PREDICTED, linewidth=1.0, label="connections predicted")
    refusals = _refusals(moments)
    if refusals:
        load.plot(*zip(*refusals, strict=True), "v", color=REFUSED, label="connections refused here")


def _plot_pods(pods: Axes, day: FleetDay) -> None:
    seconds = [m.seconds for m in day.moments]
    pods.step(seconds, [m.replicas for m in day.moments], where="post", color=ASKED, label="pods asked for by the HPA")
    pods.step(seconds, [m.serving for m in day.moments], where="post", color=CAPACITY, label="pods serving")
    pods.set_xlabel("seconds since four in the morning of the compressed day")


def _predicted(day: FleetDay) -> list[tuple[float, float]]:
    """Return the predicted connections of each round, with its time."""
    return [
        (sync.seconds, sum(sync.predicted.values.values()) / 1000) for sync in day.syncs if sync.predicted is not None
    ]


def _refusals(moments: Sequence[Moment]) -> list[tuple[float, int]]:
    """Return when connections were refused, with the number of connections wanted then."""
    pairs = itertools.pairwise(moments)
    return [(after.seconds, after.wanted) for before, after in pairs if after.refused > before.refused]
