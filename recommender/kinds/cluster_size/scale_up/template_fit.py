"""Determines whether a new node of a group could take a pod: one pod of each shape is tried for all equal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.template_nodes import add_new_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape, Refusal
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer


class Exemplars:
    """Verdicts of new nodes on shapes. Verdicts that no other pod can change are remembered."""

    def __init__(self, snapshot: Snapshot, placer: Placer) -> None:
        self._snapshot = snapshot
        self._placer = placer
        self._known: dict[tuple[str, PodShape], tuple[Refusal, ...]] = {}

    def refusals(self, group: NodeGroup, shapes: Iterable[PodShape]) -> dict[PodShape, tuple[Refusal, ...]]:
        """Return, by shape, why an empty new node refuses its pods; it can take all other shapes.

        The group must have a template.
        """
        distinct = dict.fromkeys(shapes)
        unknown = [shape for shape in distinct if (group.name, shape) not in self._known]
        asked = self._refusals_of(group, unknown) if unknown else {}
        return {shape: asked[shape] if shape in asked else self._known[group.name, shape] for shape in distinct}

    def _refusals_of(self, group: NodeGroup, shapes: list[PodShape]) -> dict[PodShape, tuple[Refusal, ...]]:
        found: dict[PodShape, tuple[Refusal, ...]] = {}
        mark = self._snapshot.checkpoint()
        (info,) = add_new_nodes(self._snapshot, group, 1)
        for shape in shapes:
            judge = self._placer.filter_of(shape)
            found[shape] = refusals = judge.refusals(info)
            if judge.is_independent:
                self._known[group.name, shape] = refusals
        self._snapshot.revert(mark)
        return found
