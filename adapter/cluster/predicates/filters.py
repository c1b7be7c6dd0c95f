"""All filters together, in the order of the scheduler's default profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.cluster.predicates.shapes import PodShape, Refusal
    from adapter.cluster.predicates.snapshot import NodeInfo, Snapshot


class PodFilter:
    """Judges nodes for pods of one shape. Follows all changes of the snapshot."""

    def __init__(self, snapshot: Snapshot, shape: PodShape) -> None:
        raise NotImplementedError

    def unschedulable(self) -> Refusal | None:
        """Return why no node can take the pod whatever its place, such as a claim that is missing; None otherwise."""
        raise NotImplementedError

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return why the node cannot take a pod, as the scheduler states it: of the first plugin that refuses; of
        NodeResourcesFit all reasons. Empty if it can take it.
        """
        raise NotImplementedError

    def fits(self, info: NodeInfo) -> bool:
        """Whether the node can take a pod. Faster than `refusals`."""
        raise NotImplementedError

    def room(self, info: NodeInfo, at_most: int) -> int:
        """Return how many pods of the shape fit on the node one after another, if nothing else changes.

        By division where the shape has no constraint that depends on its own pods; otherwise one at a time.
        """
        raise NotImplementedError

    @property
    def is_independent(self) -> bool:
        """Whether pods of this shape influence each other by requests alone: no ports, affinity, spread or volumes, and
        no pod in the snapshot has a term against them.
        """
        raise NotImplementedError

    def first_fit(self, nodes: Iterable[NodeInfo]) -> NodeInfo | None:
        """Return the first node that can take a pod."""
        raise NotImplementedError
