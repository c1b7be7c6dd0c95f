"""The plugin NodeVolumeLimits: how many volumes of each CSI driver a node can attach."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.shapes import Refusal

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.shapes import PodShape
    from recommender.kinds.cluster_size.predicates.volumes.storage_view import StorageView


_PLUGIN: Final = "NodeVolumeLimits"
_REASON: Final = "node(s) exceed max volume count"


class LimitsFilter:
    """The volumes of one shape against what a node can still attach."""

    def __init__(self, storage: StorageView, shape: PodShape) -> None:
        claims = [(shape.namespace, name) for name in shape.scheduling.claims]
        self._storage = storage
        self._wanted = {volume for volume in map(storage.attachment, claims) if volume is not None}

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusal by the first driver of which the node would have too many volumes.

        A volume that several pods of the node use counts once.
        """
        limits = self._storage.limits(info) if self._wanted else {}
        if not limits:
            return ()
        attached = {volume for volume in map(self._storage.attachment, info.claims) if volume is not None}
        counts = Counter(driver for driver, _ in attached)
        for driver, count in sorted(Counter(driver for driver, _ in self._wanted - attached).items()):
            if driver in limits and counts[driver] + count > limits[driver]:
                detail = f"{driver}: {counts[driver]} of {limits[driver]} attached"
                return (Refusal(_PLUGIN, _REASON, detail, needs_other_node=False),)
        return ()
