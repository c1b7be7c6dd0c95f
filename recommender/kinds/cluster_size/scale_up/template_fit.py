"""Determines whether a new node of a group could take a pod: one pod of each shape is tried for all equal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.template_nodes import add_new_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape, Refusal
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer

T = TypeVar("T")


class Exemplars:
    """Verdicts of new nodes on shapes. Verdicts that no other pod can change are remembered."""

    def __init__(self, snapshot: Snapshot, placer: Placer) -> None:
        self._snapshot = snapshot
        self._placer = placer
        self._known_refusals: dict[tuple[str, PodShape], tuple[Refusal, ...]] = {}
        self._known_fits: dict[tuple[str, PodShape], bool] = {}

    def refusals(self, group: NodeGroup, shapes: Iterable[PodShape]) -> dict[PodShape, tuple[Refusal, ...]]:
        """Return, by shape, why an empty new node refuses its pods; it can take all other shapes.

        The group must have a template.
        """
        return self._verdicts(group, shapes, self._known_refusals, PodFilter.refusals)

    def fits(self, group: NodeGroup, shapes: Iterable[PodShape]) -> dict[PodShape, bool]:
        """Return, by shape, whether an empty new node can take a pod. This is faster than `refusals`.

        The group must have a template.
        """
        return self._verdicts(group, shapes, self._known_fits, PodFilter.fits)

    def knows(self, group: NodeGroup, shape: PodShape) -> bool:
        """Return whether `fits` was asked about a shape before, and no other pod can change the verdict."""
        return (group.name, shape) in self._known_fits

    def _verdicts(
        self,
        group: NodeGroup,
        shapes: Iterable[PodShape],
        known: dict[tuple[str, PodShape], T],
        judged: Callable[[PodFilter, NodeInfo], T],
    ) -> dict[PodShape, T]:
        distinct = dict.fromkeys(shapes)
        found = {shape: known[group.name, shape] for shape in distinct if (group.name, shape) in known}
        if len(found) < len(distinct):
            mark = self._snapshot.checkpoint()
            (info,) = add_new_nodes(self._snapshot, group, 1)
            for shape in [each for each in distinct if each not in found]:
                judge = self._placer.filter_of(shape)
                found[shape] = judged(judge, info)
                if judge.is_independent:
                    known[group.name, shape] = found[shape]
            self._snapshot.revert(mark)
        return {shape: found[shape] for shape in distinct}
