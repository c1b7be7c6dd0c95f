"""The plugin VolumeBinding: whether the volumes of a pod's claims can be used from a node, or created for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.predicates.node_affinity import matches_a_term, mentioned_keys
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.storage import StorageClassFacts, Volume, VolumeClaim
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.volumes.storage_view import StorageView

_PLUGIN: Final = "VolumeBinding"
_AFFINITY: Final = "node(s) didn't match PersistentVolume's node affinity"
_NOTHING_TO_BIND: Final = Refusal(_PLUGIN, "node(s) didn't find available persistent volumes to bind")
_IMMEDIATE: Final = Refusal(_PLUGIN, "pod has unbound immediate PersistentVolumeClaims")
_NO_PROVISIONERS: Final = frozenset({"", "kubernetes.io/no-provisioner"})


@dataclass(frozen=True, slots=True)
class _Unbound:
    """A claim that gets its volume when the pod gets its node."""

    claim: VolumeClaim
    storage_class: StorageClassFacts
    reserved: tuple[Volume, ...]
    """Volumes that name the claim, which gets no other volume if its node cannot use them."""
    available: tuple[Volume, ...]
    """Volumes without a claim that are large enough and have the access modes, the smallest first."""


class BindingFilter:
    """The volumes of one shape, all of whose claims exist."""

    def __init__(self, storage: StorageView, shape: PodShape) -> None:
        claims = [storage.claims[shape.namespace, name] for name in shape.scheduling.claims]
        unbound = [claim for claim in claims if not _is_bound(claim)]
        bound = [claim for claim in claims if _is_bound(claim)]
        delayed = [one for claim in unbound if (one := _delayed_claim(storage, claim)) is not None]
        self.problem = (
            _claim_refusal(claims)
            or (_IMMEDIATE if len(delayed) < len(unbound) else None)
            or _missing_volume_refusal(storage, bound)
        )
        self.volumes = tuple(storage.volumes[claim.volume] for claim in bound if claim.volume in storage.volumes)
        self._places = tuple((volume, Refusal(_PLUGIN, _AFFINITY, _place_text(volume))) for volume in self.volumes)
        """Each bound volume, with the refusal of nodes from which it cannot be used."""
        self._delayed_claim = tuple(sorted(delayed, key=lambda one: one.claim.request_bytes))

    @cached_property
    def label_keys(self) -> frozenset[str] | None:
        """The labels of a node that decide; None if its name does, too."""
        if any(one.claim.selected_node for one in self._delayed_claim):
            return None
        choices = (volume for one in self._delayed_claim for volume in (*one.reserved, *one.available))
        terms = [volume.node_terms for volume in (*self.volumes, *choices)]
        terms += [one.storage_class.allowed_topologies for one in self._delayed_claim]
        return frozenset[str]().union(*(mentioned_keys(each) for each in terms if each))

    def refusals(self, info: NodeInfo) -> tuple[Refusal, ...]:
        """Return the refusals by bound volumes, and by claims for which no volume exists or can be created."""
        labels = info.node.labels
        found = tuple(refusal for volume, refusal in self._places if not _is_usable(volume, labels))[:1]
        return found if not self._delayed_claim or self._can_bind(info) else (*found, _NOTHING_TO_BIND)

    def _can_bind(self, info: NodeInfo) -> bool:
        if any(one.claim.selected_node not in ("", info.node.name) for one in self._delayed_claim):
            return False
        labels = info.node.labels
        chosen: set[str] = set()
        for one in self._delayed_claim:
            volume = None if one.claim.selected_node else _matching_volume(one, labels, chosen)
            if volume is not None:
                chosen.add(volume.name)
            elif not _can_provision(one.storage_class, labels):
                return False
        return True


def _is_bound(claim: VolumeClaim) -> bool:
    return claim.is_bound and bool(claim.volume)


def _delayed_claim(storage: StorageView, claim: VolumeClaim) -> _Unbound | None:
    """Return a claim that waits for its pod's node; None if it should have a volume before."""
    storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
    if claim.volume or storage_class is None or not storage_class.binds_at_first_consumer:
        return None
    reserved = storage.reserved.get((claim.namespace, claim.name), ())
    available = storage.available.get(storage_class.name, ())
    return _Unbound(
        claim,
        storage_class,
        tuple(
            volume
            for volume in reserved
            if volume.storage_class == storage_class.name and volume.capacity_bytes >= claim.request_bytes
        ),
        tuple(
            volume
            for volume in available
            if volume.capacity_bytes >= claim.request_bytes and set(claim.access_modes) <= set(volume.access_modes)
        ),
    )


def _claim_refusal(claims: list[VolumeClaim]) -> Refusal | None:
    for claim in claims:
        if claim.is_lost:
            reason = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
            return Refusal(_PLUGIN, reason)
        if claim.is_terminating:
            return Refusal(_PLUGIN, f'persistentvolumeclaim "{claim.name}" is being deleted')
    return None


def _missing_volume_refusal(storage: StorageView, bound: list[VolumeClaim]) -> Refusal | None:
    """Return the refusal by a volume that does not exist, which the scheduler's VolumeZone notices first."""
    for claim in bound:
        if claim.volume not in storage.volumes:
            return Refusal("VolumeZone", f'persistentvolume "{claim.volume}" not found')
    return None


def _matching_volume(one: _Unbound, labels: Mapping[str, str], chosen: set[str]) -> Volume | None:
    for volume in one.reserved:
        if volume.name not in chosen:
            return volume if _is_usable(volume, labels) else None
    for volume in one.available:
        if volume.name not in chosen and _is_usable(volume, labels):
            return volume
    return None


def _is_usable(volume: Volume, labels: Mapping[str, str]) -> bool:
    # The scheduler compares the terms of volumes only with the labels of a node, not with its name.
    return volume.node_terms is None or matches_a_term(volume.node_terms, labels, None)


def _place_text(volume: Volume) -> str:
    """Return from which nodes a volume can be used: `volume pv-1: topology.kubernetes.io/zone in (eu-1)`."""
    terms = (" and ".join(map(str, term.labels)) for term in volume.node_terms or ())
    where = " or ".join(text for text in terms if text)
    return f"volume {volume.name}: {where}" if where else f"volume {volume.name}"


def _can_provision(storage_class: StorageClassFacts, labels: Mapping[str, str]) -> bool:
    if storage_class.provisioner in _NO_PROVISIONERS:
        return False
    return not storage_class.allowed_topologies or matches_a_term(storage_class.allowed_topologies, labels, None)
