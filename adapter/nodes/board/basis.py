"""What scores rest on: metrics, nothing, or requests. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import AVG, LoadResource

if TYPE_CHECKING:
    from adapter.nodes.model.board import ScoreBasis
    from adapter.nodes.model.loads import LoadSnapshot

REQUESTS_AFTER_SECONDS: Final = 300.0
"""For so long all nodes get the middle score when no node has usable metrics. Then scores rest on requests."""


def has_usable_metrics(loads: LoadSnapshot | None) -> bool:
    """Return whether any node has a measured average of its CPU."""
    cpu = None if loads is None else loads.resources.get(LoadResource.CPU)
    return cpu is not None and bool(np.any(~np.isnan(cpu.stats[0, AVG]) & ~cpu.is_estimated))


@dataclass(frozen=True, slots=True)
class BasisState:
    """What scores rest on now, and since when no node has had usable metrics."""

    basis: ScoreBasis
    without_since: float | None
    """Seconds of a monotonic clock; None while some node has usable metrics."""

    def after(self, loads: LoadSnapshot | None, now: float) -> BasisState:
        """Return the state that follows; `now` is of the same clock."""
        if has_usable_metrics(loads):
            return BasisState("metrics", None)
        since = now if self.without_since is None else self.without_since
        return BasisState("requests" if now - since >= REQUESTS_AFTER_SECONDS else "none", since)


def basis_at_start(now: float) -> BasisState:
    """Return the state of a process that has just started, by a monotonic clock."""
    return BasisState("none", now)
