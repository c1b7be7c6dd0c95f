"""The plugin InterPodAffinity: required affinity and anti-affinity, of the pod and of pods that are bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.pods_by_shape import Census

_PLUGIN: Final = "InterPodAffinity"
_AFFINITY: Final = (Refusal(_PLUGIN, "node(s) didn't match pod affinity rules"),)
_ANTI_AFFINITY: Final = (Refusal(_PLUGIN, "node(s) didn't match pod anti-affinity rules"),)
_OPPONENTS: Final = (Refusal(_PLUGIN, "node(s) didn't satisfy existing pods anti-affinity rules"),)


class InterPodFilter:
    """The terms of one shape, and the anti-affinity terms of other pods that exclude it."""

    def __init__(self, census: Census, shape: PodShape) -> None:
        affinity, anti_affinity = shape.scheduling.affinity, shape.scheduling.anti_affinity
        self._friends = census.of_terms(affinity, if_unknown=False) if affinity else None
        self._is_own_friend = self._friends is not None and self._friends.matches(shape)
        self._enemies = tuple((one.topology_key, census.of_terms((one,), if_unknown=True)) for one in anti_affinity)
        self._opponents = census.opponents.against(shape)

    @property
    def has_opponents(self) -> bool:
        """Whether a pod of the snapshot has an anti-affinity term against the shape."""
        return self._opponents.exist

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of a node that decide, unless pods with further anti-affinity terms are added."""
        own = () if self._friends is None else self._friends.counts
        return self._opponents.label_keys.union(own, (key for key, _ in self._enemies))

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the first refusal: by the pod's affinity, its anti-affinity, or the anti-affinity of other pods."""
        labels = info.node.labels
        if self._friends is not None and not self._is_among_friends(info):
            return _AFFINITY
        for key, tally in self._enemies:
            if labels.get(key) in tally.counts[key]:
                return _ANTI_AFFINITY
        return _OPPONENTS if self._opponents.refuse(labels) else ()

    def _is_among_friends(self, info: NodeInfo) -> bool:
        """Return whether the node's domains have pods that match all terms.

        The first pod of a group whose pods have affinity to each other may run wherever the node has all topology keys.
        """
        if self._friends is None:
            return True
        labels = info.node.labels
        values = [(labels.get(key), counts) for key, counts in self._friends.counts.items()]
        if any(value is None for value, _ in values):
            return False
        if all(value in counts for value, counts in values):
            return True
        return self._is_own_friend and self._friends.total == 0
