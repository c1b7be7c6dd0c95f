"""The plugin VolumeRestrictions: disks that a pod spec names directly, and claims that only one pod may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo, PodKey
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.volumes.storage_view import StorageView

_PLUGIN: Final = "VolumeRestrictions"
_DISK: Final = (Refusal(_PLUGIN, "node(s) had no available disk", needs_other_node=False),)
_ONE_POD: Final = (
    Refusal(
        _PLUGIN,
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
        " another pod",
        needs_other_node=False,
    ),
)
_READ_ONLY: Final = ":ro"
_NEVER_SHARED: Final = "awsElasticBlockStore/"


class RestrictionsFilter:
    """Compares the disks and claims of one shape with those that other pods use."""

    def __init__(self, storage: StorageView, claim_uses: Mapping[PodKey, int], shape: PodShape) -> None:
        self._disks = shape.scheduling.inline_volumes
        self._claim_uses = claim_uses
        keys = [(shape.namespace, name) for name in shape.scheduling.claims]
        self._exclusive = [key for key in keys if _is_exclusive(storage, key)]

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusal by a disk that a pod of the node uses, or by a claim that any pod uses."""
        if any(_conflicts(info, disk) for disk in self._disks):
            return _DISK
        return _ONE_POD if any(self._claim_uses.get(key) for key in self._exclusive) else ()


def missing_claim(storage: StorageView, shape: PodShape) -> Refusal | None:
    """Return the refusal by the first claim that does not exist."""
    for name in shape.scheduling.claims:
        if (shape.namespace, name) not in storage.claims:
            return Refusal(_PLUGIN, f'persistentvolumeclaim "{name}" not found')
    return None


def _is_exclusive(storage: StorageView, key: PodKey) -> bool:
    claim = storage.claims.get(key)
    return claim is not None and "ReadWriteOncePod" in claim.access_modes


def _conflicts(info: NodeInfo, disk: str) -> bool:
    writable = disk.removesuffix(_READ_ONLY)
    if writable in info.disks:
        return True
    return f"{writable}{_READ_ONLY}" in info.disks and (disk == writable or disk.startswith(_NEVER_SHARED))
