"""The four filters of a pod's volumes, in the scheduler's order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal
from recommender.kinds.cluster_size.predicates.volumes.storage_view import INSTANCE_TYPE
from recommender.kinds.cluster_size.predicates.volumes.volume_binding import BindingFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.storage import Volume
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo, PodKey
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.volumes.storage_view import StorageView

_ZONE_PLUGIN: Final = "VolumeZone"
_ZONE_REASON: Final = "node(s) had no available volume zone"
_SUCCESSORS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS: Final = (*_SUCCESSORS, *_SUCCESSORS.values())
_SEPARATOR: Final = "__"


class ZoneFilter:
    """The zones and regions of the volumes of one shape."""

    def __init__(self, volumes: Iterable[Volume]) -> None:
        self._demands = tuple(
            (volume.name, label, zones)
            for volume in volumes
            for label in _LABELS
            if (zones := _zones(volume.labels.get(label)))
        )

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusal by the first volume of another zone; empty for a node without any zone or region label."""
        labels = info.node.labels
        if not self._demands or not any(label in labels for label in _LABELS):
            return ()
        for volume, label, zones in self._demands:
            if _value(labels, label) not in zones:
                return (Refusal(_ZONE_PLUGIN, _ZONE_REASON, f"volume {volume}: {label} in {', '.join(sorted(zones))}"),)
        return ()


def _value(labels: Mapping[str, str], label: str) -> str | None:
    found = labels.get(label)
    return labels.get(_SUCCESSORS.get(label, label)) if found is None else found


def _zones(text: str | None) -> frozenset[str]:
    """Return the zones of a label, which separates several by `__`; none if the label is absent or broken."""
    zones = frozenset(zone.strip() for zone in text.split(_SEPARATOR)) if text is not None else frozenset()
    return frozenset() if "" in zones else zones


_LIMITS_PLUGIN: Final = "NodeVolumeLimits"
_LIMITS_REASON: Final = "node(s) exceed max volume count"


class LimitsFilter:
    """Compares the volumes of one shape with the number that a node can still attach."""

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
                return (Refusal(_LIMITS_PLUGIN, _LIMITS_REASON, detail),)
        return ()


class VolumeFilter:
    """VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone for one shape."""

    def __init__(self, storage: StorageView, claim_uses: Mapping[PodKey, int], shape: PodShape) -> None:
        self.problem = _unknown(storage, shape) or _missing_claim(storage, shape)
        """Why no node can take the pod."""
        self._filters: tuple[_RestrictionsFilter | LimitsFilter | BindingFilter | ZoneFilter, ...] = ()
        self._binding: BindingFilter | None = None
        if self.problem is None:
            binding = self._binding = BindingFilter(storage, shape)
            self.problem = binding.problem
            self._filters = (
                _RestrictionsFilter(storage, claim_uses, shape),
                LimitsFilter(storage, shape),
                binding,
                ZoneFilter(binding.volumes),
            )

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The labels of a node that decide; None if its name does, too, or if no node can take the pod."""
        keys = None if self._binding is None else self._binding.label_keys
        return None if keys is None else keys.union(_LABELS, (INSTANCE_TYPE,))

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusals by the first filter that refuses the node."""
        for one in self._filters:
            found = one.refusals(info)
            if found:
                return found
        return ()


def _unknown(storage: StorageView, shape: PodShape) -> Refusal | None:
    """Return the refusal of a pod whose claims cannot be judged, with a reason of our own; None for other pods."""
    if not shape.scheduling.claims or not storage.unknown:
        return None
    return Refusal("VolumeBinding", "the pod's PersistentVolumeClaims cannot be judged", storage.unknown)


_PLUGIN: Final = "VolumeRestrictions"
_DISK: Final = (Refusal(_PLUGIN, "node(s) had no available disk"),)
_ONE_POD: Final = (
    Refusal(
        _PLUGIN,
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
        " another pod",
    ),
)
_READ_ONLY: Final = ":ro"
_NEVER_SHARED: Final = "awsElasticBlockStore/"


class _RestrictionsFilter:
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


def _missing_claim(storage: StorageView, shape: PodShape) -> Refusal | None:
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
