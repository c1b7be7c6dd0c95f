"""Storage in the form that the filters read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.objects.grouping import group_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.storage import CsiNodeFacts, Storage, StorageClassFacts, Volume, VolumeClaim
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo, PodKey

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""The label by which a new node has the limits of existing ones."""


@dataclass(frozen=True, slots=True)
class StorageView:
    """The known storage objects, or the reason why none are known."""

    unknown: str = ""
    """Why pods with claims cannot be judged; empty if they can."""
    claims: Mapping[PodKey, VolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    classes: Mapping[str, StorageClassFacts] = field(default_factory=dict)
    available: Mapping[str, tuple[Volume, ...]] = field(default_factory=dict)
    """By storage class, the volumes without a claim, the smallest first."""
    reserved: Mapping[PodKey, tuple[Volume, ...]] = field(default_factory=dict)
    """The volumes that name a claim, by claim."""
    csi_nodes: Mapping[str, CsiNodeFacts] = field(default_factory=dict)
    limits_by_type: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The smallest limit of the existing nodes, by instance type and driver."""

    def limits(self, info: NodeInfo) -> Mapping[str, int]:
        """Return how many volumes of each driver the node can attach; a driver without a limit is absent.

        A node that exists only in the simulation has the limits of nodes of its instance type.
        """
        facts = self.csi_nodes.get(info.node.name)
        if facts is not None:
            return facts.limits
        instance_type = info.node.labels.get(INSTANCE_TYPE)
        if not info.is_added or instance_type is None:
            return {}
        return self.limits_by_type.get(instance_type, {})

    def attachment(self, claim: PodKey) -> tuple[str, str] | None:
        """Return driver and handle of a claim's volume, by which it counts once on a node; None if it does not count.

        A claim without a volume counts for the driver that will make it.
        """
        found = self.claims.get(claim)
        if found is None:
            return None
        volume = self.volumes.get(found.volume) if found.volume else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver and volume.handle else None
        storage_class = self.classes.get(found.storage_class) if found.storage_class else None
        if storage_class is None or not storage_class.provisioner:
            return None
        return (storage_class.provisioner, f"claim {found.namespace}/{found.name}")


def storage_view(storage: Storage | None, nodes: Iterable[NodeInfo]) -> StorageView:
    """Return the known storage; `nodes` are those whose limits also hold for new nodes of their instance types."""
    if storage is None:
        return StorageView("storage is not watched")
    claims, volumes, classes, csi_nodes = storage.claims, storage.volumes, storage.classes, storage.csi_nodes
    if isinstance(claims, Unknown):
        return StorageView(f"PersistentVolumeClaims are unknown: {claims.reason}")
    if isinstance(volumes, Unknown):
        return StorageView(f"PersistentVolumes are unknown: {volumes.reason}")
    if isinstance(classes, Unknown):
        return StorageView(f"StorageClasses are unknown: {classes.reason}")
    if isinstance(csi_nodes, Unknown):
        return StorageView(f"CSINodes are unknown: {csi_nodes.reason}")
    return StorageView(
        claims=claims.value,
        volumes=volumes.value,
        classes=classes.value,
        available=_available(volumes.value.values()),
        reserved=_volumes_by_claim(volumes.value.values()),
        csi_nodes=csi_nodes.value,
        limits_by_type=_limits_by_type(csi_nodes.value, nodes),
    )


def _available(volumes: Iterable[Volume]) -> dict[str, tuple[Volume, ...]]:
    free = (one for one in volumes if one.claim is None and one.phase == "Available")
    by_class = group_values((one.storage_class, one) for one in free)
    return {name: tuple(sorted(found, key=lambda one: one.capacity_bytes)) for name, found in by_class.items()}


def _volumes_by_claim(volumes: Iterable[Volume]) -> dict[PodKey, tuple[Volume, ...]]:
    by_claim: dict[PodKey, tuple[Volume, ...]] = {}
    for volume in volumes:
        if volume.claim is not None:
            by_claim[volume.claim] = (*by_claim.get(volume.claim, ()), volume)
    return by_claim


def _limits_by_type(csi_nodes: Mapping[str, CsiNodeFacts], nodes: Iterable[NodeInfo]) -> dict[str, dict[str, int]]:
    by_type: dict[str, dict[str, int]] = {}
    for info in nodes:
        instance_type, facts = info.node.labels.get(INSTANCE_TYPE), csi_nodes.get(info.node.name)
        if instance_type is None or facts is None:
            continue
        limits = by_type.setdefault(instance_type, {})
        for driver, limit in facts.limits.items():
            limits[driver] = min(limit, limits.get(driver, limit))
    return by_type
