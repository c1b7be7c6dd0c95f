"""What a target's object says about its size: replicas, rollout, pause, and who wrote the replicas. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from recommender.decisions.inputs import FieldManager, TargetState

if TYPE_CHECKING:
    from collections.abc import Mapping

PAUSED_ANNOTATION = "tidewatch.io/paused"
_ALWAYS_COUNTS_UPDATED = frozenset({"Deployment", "StatefulSet"})
"""Kinds whose status states `updatedReplicas`; the API leaves a 0 out."""


def target_state(document: Mapping[str, Any]) -> TargetState | None:
    """Return what an object states; None if it has no `spec.replicas`, so that only its scale can tell its size."""
    spec, status = _mapping(document.get("spec")), _mapping(document.get("status"))
    replicas = _count(spec.get("replicas"))
    if replicas is None:
        return None
    return TargetState(
        replicas=replicas,
        ready_replicas=_ready(status),
        rollout=is_rolling_out(document),
        paused=paused(document),
        replicas_managers=replicas_managers(document),
    )


def is_rolling_out(document: Mapping[str, Any]) -> bool:
    """Return whether a new version of the pods is being rolled out.

    A controller that has not seen the latest generation yet counts as rolling out; a mere change of the size shows no
    difference between `replicas` and `updatedReplicas`. A StatefulSet that is told to keep old pods is not rolling out.
    """
    metadata, spec = _mapping(document.get("metadata")), _mapping(document.get("spec"))
    status = _mapping(document.get("status"))
    generation, observed = _count(metadata.get("generation")), _count(status.get("observedGeneration"))
    if generation is not None and observed is not None and observed < generation:
        return True
    if _keeps_old_pods(spec):
        return False
    updated = _count(status.get("updatedReplicas"))
    if updated is None and document.get("kind") in _ALWAYS_COUNTS_UPDATED:
        updated = 0
    replicas = _count(status.get("replicas")) or 0
    return updated is not None and updated < replicas


def paused(document: Mapping[str, Any]) -> str | None:
    """Return the annotation that pauses a target; None if there is none."""
    value = _mapping(_mapping(document.get("metadata")).get("annotations")).get(PAUSED_ANNOTATION)
    return value if isinstance(value, str) else None


def replicas_managers(document: Mapping[str, Any]) -> tuple[FieldManager, ...]:
    """Return who wrote `spec.replicas`, from `metadata.managedFields` (FieldsV1, KEP-555)."""
    entries = _mapping(document.get("metadata")).get("managedFields")
    found = []
    for entry in entries if isinstance(entries, list) else ():
        about = _mapping(entry)
        spec = _mapping(_mapping(about.get("fieldsV1")).get("f:spec"))
        if "f:replicas" in spec:
            name, operation = about.get("manager"), about.get("operation")
            found.append(FieldManager(str(name or ""), str(operation or ""), _seconds(about.get("time"))))
    return tuple(found)


def _keeps_old_pods(spec: Mapping[str, Any]) -> bool:
    strategy = _mapping(spec.get("updateStrategy"))
    partition = _count(_mapping(strategy.get("rollingUpdate")).get("partition"))
    return strategy.get("type") == "OnDelete" or bool(partition)


def _ready(status: Mapping[str, Any]) -> int | None:
    """Return `readyReplicas`; the API leaves a 0 out, so it is 0 where the status counts replicas at all."""
    ready = _count(status.get("readyReplicas"))
    return 0 if ready is None and _count(status.get("replicas")) is not None else ready


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _seconds(value: object) -> float | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
