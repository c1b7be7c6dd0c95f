"""The four filters of a pod's volumes, in the scheduler's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.predicates.shapes import Refusal
from recommender.kinds.cluster_size.predicates.volumes.node_volume_limits import LimitsFilter
from recommender.kinds.cluster_size.predicates.volumes.volume_binding import BindingFilter
from recommender.kinds.cluster_size.predicates.volumes.volume_restrictions import RestrictionsFilter, missing_claim
from recommender.kinds.cluster_size.predicates.volumes.volume_zone import ZoneFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo, PodKey
    from recommender.kinds.cluster_size.predicates.shapes import PodShape
    from recommender.kinds.cluster_size.predicates.volumes.storage_view import StorageView


class VolumeFilter:
    """VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone for one shape."""

    def __init__(self, storage: StorageView, claim_uses: Mapping[PodKey, int], shape: PodShape) -> None:
        self.problem = _unknown(storage, shape) or missing_claim(storage, shape)
        """Why no node can take the pod."""
        self._filters: tuple[RestrictionsFilter | LimitsFilter | BindingFilter | ZoneFilter, ...] = ()
        if self.problem is None:
            binding = BindingFilter(storage, shape)
            self.problem = binding.problem
            self._filters = (
                RestrictionsFilter(storage, claim_uses, shape),
                LimitsFilter(storage, shape),
                binding,
                ZoneFilter(binding.volumes),
            )

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusals by the first filter that refuses the node."""
        for one in self._filters:
            found = one.refusals(info)
            if found:
                return found
        return ()


def _unknown(storage: StorageView, shape: PodShape) -> Refusal | None:
    """Return that the claims of a pod cannot be judged. The reason is not one of the scheduler's."""
    if not shape.scheduling.claims or not storage.unknown:
        return None
    return Refusal("VolumeBinding", "the pod's PersistentVolumeClaims cannot be judged", storage.unknown)
