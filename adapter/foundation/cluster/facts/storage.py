"""Turns decoded storage objects into their values. Every function raises FactError for what it cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.pod_constraints import annotations_of
from adapter.foundation.cluster.facts.requirements import node_terms_of
from adapter.foundation.cluster.values.constraints import NodeSelectorTerm
from adapter.foundation.cluster.values.storage import CsiNodeFacts, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.objects.pod_requests import units_of
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.objects.requirements import Operator, Requirement, SelectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.forms.objects import QuantityText
    from adapter.foundation.cluster.forms.scheduling_objects import (
        ClaimForm,
        CsiNodeForm,
        PersistentVolumeForm,
        StorageClassForm,
        TopologyTerm,
    )

_BOUND: Final = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_MODES: Final = frozenset({"Immediate", "WaitForFirstConsumer"})


def claim_of(form: ClaimForm) -> VolumeClaim:
    """Return the facts of a PersistentVolumeClaim. Raises FactError."""
    metadata, spec = form.metadata, form.spec
    namespace = metadata.namespace or "default"
    where = f"PersistentVolumeClaim {namespace}/{metadata.name}"
    if spec is None:
        raise FactError(f"{where}: spec is missing")
    annotations = annotations_of(where, bytes(metadata.annotations))
    phase = (form.status.phase if form.status else None) or ""
    return VolumeClaim(
        namespace=namespace,
        name=metadata.name,
        volume=spec.volume_name or "",
        storage_class=annotations.get(_OLD_CLASS, spec.storage_class_name),
        is_bound=bool(spec.volume_name) and (phase == "Bound" or _BOUND in annotations),
        is_lost=phase == "Lost",
        is_terminating=metadata.deleted is not None,
        request_bytes=_bytes(f"{where}: spec.resources.requests", spec.resources.requests if spec.resources else None),
        access_modes=tuple(spec.access_modes or ()),
        selected_node=annotations.get(_SELECTED_NODE, ""),
    )


def volume_of(form: PersistentVolumeForm) -> Volume:
    """Return the facts of a PersistentVolume. Raises FactError."""
    metadata, spec = form.metadata, form.spec
    where = f"PersistentVolume {metadata.name}"
    if spec is None:
        raise FactError(f"{where}: spec is missing")
    affinity = spec.node_affinity
    return Volume(
        name=metadata.name,
        labels=metadata.labels or {},
        node_terms=node_terms_of(f"{where}: spec.nodeAffinity.required", affinity.required if affinity else None),
        storage_class=annotations_of(where, bytes(metadata.annotations)).get(_OLD_CLASS, spec.storage_class_name or ""),
        capacity_bytes=_bytes(f"{where}: spec.capacity", spec.capacity),
        access_modes=tuple(spec.access_modes or ()),
        driver=spec.csi.driver if spec.csi else "",
        handle=spec.csi.volume_handle if spec.csi else "",
        claim=(spec.claim_ref.namespace, spec.claim_ref.name) if spec.claim_ref else None,
        phase=(form.status.phase if form.status else None) or "",
    )


def storage_class_of(form: StorageClassForm) -> StorageClassFacts:
    """Return the facts of a StorageClass. Raises FactError."""
    where = f"StorageClass {form.metadata.name}"
    mode = form.volume_binding_mode or "Immediate"
    if mode not in _MODES:
        known = " or ".join(sorted(_MODES))
        raise FactError(f"{where}: volumeBindingMode {mode!r} is not known: use {known}")
    if not form.provisioner:
        raise FactError(f"{where}: provisioner is missing")
    return StorageClassFacts(
        name=form.metadata.name,
        provisioner=form.provisioner,
        binds_at_first_consumer=mode == "WaitForFirstConsumer",
        allowed_topologies=tuple(_topology(where, term) for term in form.allowed_topologies)
        if form.allowed_topologies
        else None,
    )


def csi_node_of(form: CsiNodeForm) -> CsiNodeFacts:
    """Return how many volumes of each driver the node can attach."""
    drivers = (form.spec.drivers if form.spec else None) or ()
    limits = {one.name: one.allocatable.count for one in drivers if one.allocatable}
    return CsiNodeFacts(form.metadata.name, {name: count for name, count in limits.items() if count is not None})


def _topology(where: str, form: TopologyTerm) -> NodeSelectorTerm:
    try:
        return NodeSelectorTerm(
            tuple(
                Requirement(one.key, Operator.IN, tuple(one.values or ())) for one in form.match_label_expressions or ()
            )
        )
    except SelectorError as error:
        raise FactError(f"{where}: allowedTopologies: {error}") from error


def _bytes(where: str, texts: Mapping[str, QuantityText] | None) -> int:
    text = (texts or {}).get("storage")
    if text is None:
        return 0
    try:
        return units_of("storage", parse_quantity(str(text)))
    except QuantityError as error:
        raise FactError(f"{where}.storage: {error}") from error
