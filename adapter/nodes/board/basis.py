"""What scores rest on, and since when nodes have been without usable metrics. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import AVG, SERVED_VERDICTS, VERDICTS, LoadResource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.board import ScoreBasis
    from adapter.nodes.model.loads import LoadSnapshot, ResourceLoad
    from adapter.nodes.model.samples import Floats

REQUESTS_AFTER_SECONDS: Final = 300.0
"""For so long all nodes get the middle score when no node has usable metrics. Then scores rest on requests."""

_SERVED: Final = np.array([verdict in SERVED_VERDICTS for verdict in VERDICTS])


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


@dataclass(frozen=True, slots=True, eq=False)
class BadSince:
    """Since when the metrics of nodes have not been usable, in Unix seconds, by resource; +inf for usable ones."""

    nodes: tuple[str, ...] = ()
    since: Mapping[LoadResource, Floats] = field(default_factory=dict)

    def after(self, loads: LoadSnapshot) -> BadSince:
        """Return the same for the nodes of a snapshot. A node that was not known before becomes bad only now."""
        rows = _rows(loads.nodes, self.nodes)
        return BadSince(
            loads.nodes,
            {
                resource: _since(load, self._before(resource, rows), loads.assembled_at)
                for resource, load in loads.resources.items()
            },
        )

    def _before(self, resource: LoadResource, rows: NDArray[np.intp]) -> Floats:
        known = self.since.get(resource)
        if known is None or not len(known):
            return np.full(len(rows), np.inf)
        return np.where(rows >= 0, known[rows], np.inf)


def _since(load: ResourceLoad, before: Floats, now: float) -> Floats:
    usable = _SERVED[load.verdicts] & (load.taken_from[0] >= 0)
    return np.where(usable, np.inf, np.minimum(before, now))


def _rows(nodes: tuple[str, ...], among: tuple[str, ...]) -> NDArray[np.intp]:
    if nodes == among:
        return np.arange(len(nodes))
    index = {name: row for row, name in enumerate(among)}
    return np.fromiter((index.get(name, -1) for name in nodes), np.intp, len(nodes))
