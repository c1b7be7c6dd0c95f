"""The day as a picture that explains itself."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demo.moments import Moment


def plot_day(moments: Sequence[Moment], *, target: int, verdict: str, path: Path) -> None:
    """Write the load, the capacity that followed it, the pods and the refused connections as a PNG."""
    seconds = [moment.seconds for moment in moments]
    figure = Figure(figsize=(11, 7), layout="constrained")
    load, pods = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.3))
    limit = moments[-1].limit
    load.fill_between(seconds, [m.capacity for m in moments], step="post", color="#2a9d5c", alpha=0.18, linewidth=0)
    load.step(
        seconds,
        [m.capacity for m in moments],
        where="post",
        color="#2a9d5c",
        label=f"capacity: serving pods x {limit} connections",
    )
    load.plot(seconds, [m.wanted for m in moments], color="#1f6fb2", linewidth=1.2, label="connections wanted")
    load.plot(seconds, [m.open for m in moments], color="#0b2a4a", linewidth=1.8, label="connections open")
    load.set_ylabel("connections")
    refusals = _refusals(moments)
    if refusals:
        load.plot(*zip(*refusals, strict=True), "v", color="#c8332b", label="connections refused here")
    load.legend(loc="upper left", frameon=False)
    load.set_title(
        f"One compressed day: the HPA keeps about {target} connections a pod, reading from Tidewatch\n{verdict}",
        fontsize=11,
        loc="left",
    )
    pods.step(seconds, [m.replicas for m in moments], where="post", color="#7a5195", label="pods asked for by the HPA")
    pods.step(seconds, [m.serving for m in moments], where="post", color="#2a9d5c", label="pods serving")
    pods.set_ylabel("pods")
    pods.set_xlabel("seconds since midnight of the compressed day")
    pods.legend(loc="upper left", frameon=False)
    for axes in (load, pods):
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _refusals(moments: Sequence[Moment]) -> list[tuple[float, int]]:
    """Return where refusals happened: time, and connections wanted then."""
    pairs = itertools.pairwise(moments)
    return [(after.seconds, after.wanted) for before, after in pairs if after.refused > before.refused]
