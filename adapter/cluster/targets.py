"""What an object with a scale subresource states about its size, for every kind that has `spec.replicas`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adapter.cluster.facts import FactError, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PAUSED_ANNOTATION = "tidewatch.io/paused"

_ONE_BY_DEFAULT = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds of which the API server sets `spec.replicas` to 1; a file may omit it."""


@dataclass(frozen=True, slots=True)
class ReplicasManager:
    """Who wrote `spec.replicas`, as `metadata.managedFields` states it."""

    name: str
    operation: str
    """`Apply` or `Update`."""
    time: float | None
    """Seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class ScaledObject:
    """The size of an object, and who writes it."""

    replicas: int
    """`spec.replicas`; 1 if it is not stated, as the API server sets it."""
    ready_replicas: int | None
    """`status.readyReplicas`; None if the object has no status."""
    rollout: bool
    """Whether pods of an earlier version of its template are still there."""
    paused: str | None
    """The annotation `tidewatch.io/paused`."""
    replicas_managers: tuple[ReplicasManager, ...]
    """Everybody who set `spec.replicas`, also by its scale subresource."""


class _Fields(msgspec.Struct, gc=False, rename={"spec": "f:spec"}):
    spec: dict[str, msgspec.Raw] = {}


class _ManagedFields(msgspec.Struct, gc=False, rename={"fields": "fieldsV1"}):
    manager: str = ""
    operation: str = ""
    time: str | None = None
    fields: _Fields | None = None


class _ScaledMeta(msgspec.Struct, gc=False, rename={"managed": "managedFields"}):
    name: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None
    managed: list[_ManagedFields] | None = None


class _ScaledSpec(msgspec.Struct, gc=False):
    replicas: int | None = None


_RENAMED = {
    "ready_replicas": "readyReplicas",
    "updated_replicas": "updatedReplicas",
    "current_revision": "currentRevision",
    "update_revision": "updateRevision",
}


class _ScaledStatus(msgspec.Struct, gc=False, rename=_RENAMED):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int | None = None
    current_revision: str | None = None
    update_revision: str | None = None


class ScaledForm(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    """Any object. Its parts are decoded only where its size is needed, since kinds use the same keys differently."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    kind: str = ""
    api_version: str = ""
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


def scaled_object_of(body: bytes) -> ScaledObject:
    """Return what an object states, from its JSON as the API server sends it. Raises FactError."""
    try:
        form = msgspec.json.decode(body, type=ScaledForm)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FactError(f"the object cannot be read: {error}") from error
    return scaled_object(form)


def scaled_object(form: ScaledForm) -> ScaledObject:
    """Return what the object states. Raises FactError if its kind has no `spec.replicas`, or it cannot be read."""
    try:
        metadata = msgspec.json.decode(form.metadata, type=_ScaledMeta)
        spec = msgspec.json.decode(form.spec, type=_ScaledSpec | None)
        status = msgspec.json.decode(form.status, type=_ScaledStatus | None)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FactError(f"{form.kind}: the size cannot be read: {error}") from error
    replicas = spec.replicas if spec else None
    if replicas is None:
        if form.kind not in _ONE_BY_DEFAULT:
            raise FactError(f"{form.kind} {metadata.name} has no spec.replicas: name an object that can be scaled")
        replicas = 1
    return ScaledObject(
        replicas=replicas,
        ready_replicas=None if status is None else status.ready_replicas,
        rollout=status is not None and _rolls_out(form.kind, status),
        paused=(metadata.annotations or {}).get(PAUSED_ANNOTATION),
        replicas_managers=tuple(_managers(metadata.managed or [])),
    )


def _rolls_out(kind: str, status: _ScaledStatus) -> bool:
    """Return whether pods of an earlier template remain.

    A change of `spec.replicas` alone is no rollout, so the conditions of `kubectl rollout status` that compare with it
    are left out. Only a Deployment without any updated pod omits `updatedReplicas`.
    """
    if status.update_revision is not None:
        return status.current_revision != status.update_revision
    if status.updated_replicas is None:
        return kind == "Deployment" and status.replicas > 0
    return status.updated_replicas < status.replicas


def _managers(managed: list[_ManagedFields]) -> Iterator[ReplicasManager]:
    for entry in managed:
        if entry.fields is not None and "f:replicas" in entry.fields.spec:
            yield ReplicasManager(entry.manager, entry.operation, _time(entry.time))


def _time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return seconds_of(text)
    except ValueError:
        return None
