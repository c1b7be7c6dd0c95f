"""The one value from which all requests are answered: the load, the columns for scores, and the basis of scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from adapter.nodes.model.loads import AVG, LoadResource, LoadSnapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.nodes.model.columns import NodeColumns

ScoreBasis: TypeAlias = Literal["metrics", "none", "requests"]
"""The basis of scores: `metrics` while any node has usable metrics; otherwise `none` for five minutes, with which all
nodes get the middle score, and after that `requests` (best fit), if nodes and pods are known."""


@dataclass(frozen=True, slots=True, eq=False)
class NodesSnapshot:
    """Everything that is known at one moment. It is replaced as a whole, in one place."""

    columns: NodeColumns
    loads: LoadSnapshot | None
    """The load of all nodes; None before the first data."""
    basis: ScoreBasis
    nodes: tuple[ClusterNode, ...] = ()
    """Nodes in the order of `columns.names`; empty if Node objects are not known."""
    pods_by_node: Mapping[str, Sequence[ClusterPod]] = field(default_factory=dict)
    """Pods that are bound and have not ended."""
    pods_by_namespace: Mapping[str, Sequence[ClusterPod]] = field(default_factory=dict)
    daemon_sets: frozenset[str] = frozenset()
    """UIDs of all DaemonSets; empty if they are not known."""
    are_nodes_known: bool = True
    """Whether Node objects are known, and so the capacities of nodes. Without them, nothing can be scored."""
    are_pods_known: bool = True
    """Whether pods are known, and so what is left of nodes. Without them, only loads can be scored."""


REQUESTS_AFTER_SECONDS: Final = 300.0
"""How long all nodes get the middle score when no node has usable metrics. After that, scores rest on requests."""


def has_usable_metrics(loads: LoadSnapshot | None) -> bool:
    """Return whether any node has a measured average of its CPU."""
    cpu = None if loads is None else loads.resources.get(LoadResource.CPU)
    return cpu is not None and bool(np.any(~np.isnan(cpu.stats[0, AVG]) & ~cpu.is_estimated))


@dataclass(frozen=True, slots=True)
class BasisState:
    """The current basis of scores, and since when no node has had usable metrics."""

    basis: ScoreBasis
    without_since: float | None
    """Since when no node has had usable metrics, in seconds of a monotonic clock; None while some node has them."""

    def after(self, loads: LoadSnapshot | None, now: float, *, are_requests_known: bool = True) -> BasisState:
        """Return the state after these loads; `now` is a time of the same clock.

        While it is not known what pods request of nodes, scores cannot rest on that either.
        """
        if has_usable_metrics(loads):
            return BasisState("metrics", None)
        since = now if self.without_since is None else self.without_since
        is_due = are_requests_known and now - since >= REQUESTS_AFTER_SECONDS
        return BasisState("requests" if is_due else "none", since)


def basis_at_start(now: float) -> BasisState:
    """Return the state of a process that has just started; `now` is a time of a monotonic clock."""
    return BasisState("none", now)
