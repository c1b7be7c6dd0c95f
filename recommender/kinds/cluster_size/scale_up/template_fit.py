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
        self._known: dict[tuple[str, int], tuple[Refusal, ...]] = {}

    def refusals(self, group: NodeGroup, shapes: Iterable[PodShape]) -> dict[int, tuple[Refusal, ...]]:
        """Return, by identity of the shape, why an empty new node refuses its pods; it can take all other shapes.

        The group must have a template.
        """
        distinct = {id(shape): shape for shape in shapes}
        unknown = [shape for key, shape in distinct.items() if (group.name, key) not in self._known]
        asked = self._refusals_of(group, unknown) if unknown else {}
        return {key: asked[key] if key in asked else self._known[group.name, key] for key in distinct}

    def _refusals_of(self, group: NodeGroup, shapes: list[PodShape]) -> dict[int, tuple[Refusal, ...]]:
        found: dict[int, tuple[Refusal, ...]] = {}
        mark = self._snapshot.checkpoint()
        (info,) = add_new_nodes(self._snapshot, group, 1)
        for shape in shapes:
            judge = self._placer.filter_of(shape)
            found[id(shape)] = refusals = judge.refusals(info)
            if judge.is_independent:
                self._known[group.name, id(shape)] = refusals
        self._snapshot.revert(mark)
        return found


def refusal_text(refusals: Iterable[Refusal]) -> str:
    """Return refusals as one text, in the words of the scheduler."""
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in refusals)
