"""All filters together, in the order of the scheduler's default profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.cluster.predicates.node_affinity import CONFLICT
from adapter.cluster.predicates.node_ports import PORT_REFUSALS, has_ports
from adapter.cluster.predicates.node_resources_fit import has_resources, resource_refusals, room_by_resources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.cluster.predicates.shapes import PodShape, Refusal
    from adapter.cluster.predicates.snapshot import NodeInfo, Snapshot


class PodFilter:
    """Judges nodes for pods of one shape. Follows all changes of the snapshot."""

    def __init__(self, snapshot: Snapshot, shape: PodShape) -> None:
        self._snapshot = snapshot
        self._shape = shape
        self._static = snapshot.static_filter(shape.scheduling)
        self._ports = shape.scheduling.host_ports

    def unschedulable(self) -> Refusal | None:
        """Return why no node can take the pod whatever its place, such as a claim that is missing; None otherwise."""
        if self._static.names is not None and not self._static.names:
            return CONFLICT
        return None

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return why the node cannot take a pod, as the scheduler states it; empty if it can.

        The reasons are those of the first plugin that refuses; NodeResourcesFit gives one for each resource.
        """
        found = self._static.refusals(info)
        if not found and self._ports and not has_ports(info, self._ports):
            found = PORT_REFUSALS
        if not found and not has_resources(info, self._shape):
            found = resource_refusals(info, self._shape)
        return found

    def fits(self, info: NodeInfo) -> bool:
        """Whether the node can take a pod. Faster than `refusals`."""
        if not has_resources(info, self._shape) or self._static.refusals(info):
            return False
        return not self._ports or has_ports(info, self._ports)

    def room(self, info: NodeInfo, at_most: int) -> int:
        """Return how many pods of the shape fit on the node one after another, if nothing else changes.

        By division where the shape has no constraint that depends on its own pods; otherwise one at a time.
        """
        if self._static.refusals(info):
            return 0
        room = room_by_resources(info, self._shape, at_most)
        if self.is_independent:
            return room
        placed = 0
        while placed < room and self.fits(info):
            self._snapshot.try_pods(self._shape, info, 1)
            placed += 1
        self._snapshot.try_pods(self._shape, info, -placed)
        return placed

    @property
    def is_independent(self) -> bool:
        """Whether pods of this shape influence each other by requests alone.

        They have no ports, affinity, spread or volumes, and no pod in the snapshot has a term against them.
        """
        return not self._ports

    def first_fit(self, nodes: Iterable[NodeInfo]) -> NodeInfo | None:
        """Return the first node that can take a pod."""
        return next(filter(self.fits, nodes), None)
