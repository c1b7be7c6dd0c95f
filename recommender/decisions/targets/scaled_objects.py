"""Determines which ScaledObject of KEDA names a target (pure).

KEDA creates an HPA for each ScaledObject, and deletes that HPA while the ScaledObject is paused. The target then still
belongs to KEDA, which may hold the target at a fixed size and creates the HPA again when the pause ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.values.hpas_by_namespace import AutoscalersByNamespace
from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, ObjectKind, Observed, Unknown
from recommender.decisions.targets.owners import KEDA_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.inputs import Inputs

GROUP: Final = "keda.sh"
PLURAL: Final = "scaledobjects"
KIND: Final = "ScaledObject"
_DEFAULT_TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}


def scaled_object_kinds(namespaces: Iterable[str]) -> frozenset[ObjectKind]:
    """Return the kinds of objects to read in each of the namespaces; an empty namespace means all."""
    return frozenset(ObjectKind(GROUP, PLURAL, KIND, each, is_optional=True) for each in namespaces)


def with_scaled_objects(inputs: Inputs) -> Inputs:
    """Return the inputs with `scaled_objects`, which are taken from the objects of the cluster."""
    return replace(inputs, scaled_objects=known_scaled_objects(inputs.cluster))


def known_scaled_objects(cluster: ClusterState) -> Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown]:
    """Return the ScaledObjects by namespace, as HPAs without metrics; empty if KEDA is not installed."""
    found: dict[str, Observed[tuple[Autoscaler, ...]] | Unknown] = {}
    for kind, fact in cluster.objects.items():
        if (kind.group, kind.resource) != (GROUP, PLURAL):
            continue
        if isinstance(fact, Observed):
            objects = tuple(as_autoscaler(each) for each in fact.value)
            found[kind.namespace] = Observed(objects, fact.time, fact.began_empty)
        elif not fact.is_absent:
            found[kind.namespace] = fact
    return AutoscalersByNamespace(found)


def as_autoscaler(document: Mapping[str, Any]) -> Autoscaler:
    """Return a ScaledObject in the form of an HPA without metrics."""
    metadata, spec = _mapping(document.get("metadata")), _mapping(document.get("spec"))
    stated = _mapping(spec.get("scaleTargetRef"))
    reference = _DEFAULT_TARGET | {key: value for key, value in stated.items() if value}
    name = str(metadata.get("name") or "")
    return Autoscaler(
        namespace=str(metadata.get("namespace") or ""),
        name=name,
        labels={KEDA_LABEL: name},
        target_api_version=str(reference["apiVersion"]),
        target_kind=str(reference["kind"]),
        target_name=str(reference.get("name") or ""),
        min_replicas=0,
        max_replicas=0,
        scale_up_tolerance_ratio=None,
        scale_down_tolerance_ratio=None,
        metrics=(),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
