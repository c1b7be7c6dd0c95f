"""Remembers which machine is behind each node name, so that no machine inherits what another one measured. Pure.

A node may register again: with the same machine, which keeps its past, or with another one under the same name, as when
a machine is replaced or a managed node pool is upgraded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.samples import MachineRecord
from adapter.nodes.windows.grid import column_times

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.samples import SampleGrid, SampleSet
    from adapter.nodes.queries.refresh_results import RefreshResult

REMEMBERED_SECONDS: Final = 4 * 3600.0
"""How long a machine without a Node object keeps its past. After a longer time, too much of its last day is missing."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine behind a node name."""

    node: ClusterNode | MachineRecord
    """Its last Node object, or what the state file says of it."""
    measured_since: float = -math.inf
    """Unix seconds before which another machine had the name; minus infinity if none is known."""

    @property
    def record(self) -> MachineRecord:
        """Return what the state file says of it."""
        since = None if self.measured_since == -math.inf else self.measured_since
        return MachineRecord(self.node.system_uuid, self.node.provider_id, self.node.uid, since)


@dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """The machines of all nodes, including those that lost their Node object a short time ago."""

    nodes: tuple[ClusterNode, ...] | None = None
    """The current Node objects; None if they are not known."""
    by_name: Mapping[str, Machine] = field(default_factory=dict)
    gone_at: Mapping[str, float] = field(default_factory=dict)
    """Unix seconds at which each machine among them had no Node object any more."""
    replaced: frozenset[str] = frozenset()
    """Nodes that have another machine than at the refresh before."""
    seen_at: float = -math.inf
    """Unix seconds at which the Node objects were last known."""

    @classmethod
    def of_file(cls, samples: SampleSet) -> Machines:
        """Return the machines that the state file had with these samples; their Node objects are not known yet."""
        by_name = {
            name: Machine(one, -math.inf if one.measured_since is None else one.measured_since)
            for name, one in samples.machines.items()
        }
        return cls(
            by_name=by_name, seen_at=max((float(grid.end) for grid in samples.grids.values()), default=-math.inf)
        )

    def with_records(self, samples: SampleSet) -> SampleSet:
        """Return the samples for the state file, with their machines."""
        return replace(samples, machines={name: one.record for name, one in self.by_name.items()})

    @property
    def names(self) -> tuple[str, ...] | None:
        """The sorted names of the nodes whose past is kept; None if Node objects are not known."""
        return None if self.nodes is None else tuple(sorted(self.by_name))

    def after(self, nodes: tuple[ClusterNode, ...] | None, now: float) -> Machines:
        """Return the machines at the next refresh (Unix seconds), which has these Node objects."""
        if nodes is None:
            return replace(self, nodes=None, replaced=frozenset())
        replaced = frozenset(
            node.name for node in nodes if (one := self.by_name.get(node.name)) and not _is_same(one.node, node)
        )
        # For thousands of nodes, making nothing anew saves most of the time.
        found = {node.name: self._of(node, now, is_new=node.name in replaced) for node in nodes}
        gone_at = {name: self.gone_at.get(name, now) for name in self.by_name if name not in found}
        gone_at = {name: at for name, at in gone_at.items() if abs(now - at) < REMEMBERED_SECONDS}
        return Machines(nodes, found | {name: self.by_name[name] for name in gone_at}, gone_at, replaced, now)

    def _of(self, node: ClusterNode, now: float, *, is_new: bool) -> Machine:
        former = self.by_name.get(node.name)
        if former is None:
            return Machine(node)
        if is_new:
            return Machine(node, self._replaced_at(former, node, now))
        if former.node is node and former.measured_since <= now:
            return former
        return Machine(node, min(former.measured_since, now))

    def _replaced_at(self, former: Machine, node: ClusterNode, now: float) -> float:
        """Return the time from which samples are of the new machine: the creation of its own Node object, or now.

        What was measured while the former machine was still seen is not of the new one, whatever the object states.
        """
        if node.created is None or node.uid == former.node.uid:
            return now
        return min(now, max(node.created, self.seen_at))

    def own(self, grid: SampleGrid) -> SampleGrid:
        """Return the grid without the steps that begin before a node had its current machine."""
        known = [one.measured_since if (one := self.by_name.get(name)) else -math.inf for name in grid.nodes]
        if max(known, default=-math.inf) == -math.inf:
            return grid
        since = np.array(known)
        is_foreign = column_times(grid) - grid.step_seconds < since[:, None]
        newest = np.where(grid.newest < since, np.nan, grid.newest)
        return replace(grid, values=np.where(is_foreign, np.nan, grid.values), newest=newest)

    def select_current(self, result: RefreshResult) -> RefreshResult:
        """Return a refresh's result with the samples of current machines alone."""
        if all(one.measured_since == -math.inf for one in self.by_name.values()):
            return result
        grids = {resource: self.own(grid) for resource, grid in result.samples.grids.items()}
        return replace(result, samples=replace(result.samples, grids=grids), moved=result.moved | self.replaced)


def _is_same(former: ClusterNode | MachineRecord, current: ClusterNode) -> bool:
    """Return whether a Node object is of the machine that had the name before, by the best evidence of both.

    A provider ID may be that of the name alone, as on Google Cloud, so the machine's own UUID comes first.
    """
    if former is current:
        return True
    if former.system_uuid and current.system_uuid:
        return former.system_uuid.lower() == current.system_uuid.lower()
    if former.provider_id and current.provider_id:
        return former.provider_id == current.provider_id
    return former.uid == current.uid or not (former.uid and current.uid)
