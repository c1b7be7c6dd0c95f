"""The size of an object with a scale subresource, for every kind that has `spec.replicas`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

import msgspec

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.decoders import convert, decoder_of
from adapter.foundation.objects.integers import INT32_MAX

PAUSED_ANNOTATION = "tidewatch.io/paused"

_MOST_MANAGERS: Final = 20
"""Limit far above the number of programs that really write an object's size. Messages name each of these programs,
and whoever writes the object can add thousands."""
_COUNTS_UPDATED = frozenset({"Deployment", "StatefulSet"})
"""Kinds whose status always has `updatedReplicas`; the API server omits a 0."""

ONE_BY_DEFAULT = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds for which the API server sets `spec.replicas` to 1; a file may omit it."""
_BUILT_IN_GROUPS = frozenset({"", "apps"})


class ScaleTarget(Protocol):
    """An object with a scale subresource."""

    @property
    def api_version(self) -> str:
        """The API version, such as `apps/v1`."""

    @property
    def kind(self) -> str:
        """The kind, such as `Deployment`."""

    @property
    def namespace(self) -> str:
        """The namespace of the object."""

    @property
    def name(self) -> str:
        """The name of the object."""


class NoReplicasError(FactError):
    """The object's `spec.replicas` is missing, or is no size; its scale subresource may still state a size."""


@dataclass(frozen=True, slots=True)
class ScaledObject:
    """The size of an object, and who writes it."""

    replicas: int
    """`spec.replicas`; 1 if it is not stated, as the API server sets it."""
    rollout: bool
    """Whether a new version of its pods is being rolled out."""
    paused: str | None
    """The annotation `tidewatch.io/paused`, cut to the length of its longest valid value."""
    replicas_managers: tuple[str, ...]
    """Field managers that set `spec.replicas`, directly or by the scale subresource; of very many, the first ones."""


class _Fields(msgspec.Struct, gc=False, rename={"spec": "f:spec"}):
    spec: dict[str, Any] = {}


class _ManagedFields(msgspec.Struct, gc=False, rename={"fields": "fieldsV1"}):
    manager: str = ""
    fields: _Fields | None = None


class _ScaledMeta(msgspec.Struct, gc=False, rename={"managed": "managedFields"}):
    name: str = ""
    namespace: str | None = None
    generation: int | None = None
    annotations: dict[str, str] | None = None
    managed: list[_ManagedFields] | None = None


class _ScaledSpec(msgspec.Struct, gc=False, rename={"update_strategy": "updateStrategy"}):
    replicas: Any = None
    update_strategy: Any = None


_RENAMED = {
    "observed_generation": "observedGeneration",
    "updated_replicas": "updatedReplicas",
    "current_revision": "currentRevision",
    "update_revision": "updateRevision",
}


class _ScaledStatus(msgspec.Struct, gc=False, rename=_RENAMED):
    """The part of a status that describes the size. Custom kinds use some of these keys with types of their own."""

    observed_generation: Any = None
    replicas: Any = None
    updated_replicas: Any = None
    current_revision: Any = None
    update_revision: Any = None


_META = decoder_of(_ScaledMeta)
_SPEC: msgspec.json.Decoder[_ScaledSpec | None] = decoder_of(_ScaledSpec | None)
_STATUS: msgspec.json.Decoder[_ScaledStatus | None] = decoder_of(_ScaledStatus | None)


class ScaledForm(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    """Any object. Its parts are decoded only when its size is needed, since kinds use the same keys differently."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    kind: str = ""
    api_version: str = ""
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


def group_of(api_version: str) -> str:
    """Return the API group of `GROUP/VERSION`; empty for the core group."""
    return api_version.rpartition("/")[0]


def has_size_in_spec(api_version: str, kind: str) -> bool:
    """Return whether the size of the kind is certainly its `spec.replicas`; a custom kind may have it anywhere."""
    return kind in ONE_BY_DEFAULT and group_of(api_version) in _BUILT_IN_GROUPS


def scaled_object_of(document: Mapping[str, Any], size: int | None = None) -> ScaledObject:
    """Return what a document from the API server states. Raises FactError (NoReplicasError if it states no size).

    `size` is the size that its scale subresource states, for a kind that has it elsewhere than in `spec.replicas`.
    """
    kind = document.get("kind")
    kind = kind if isinstance(kind, str) else ""
    try:
        metadata = convert(document.get("metadata") or {}, _ScaledMeta)
        spec = convert(document.get("spec"), _ScaledSpec | None)
        status = convert(document.get("status"), _ScaledStatus | None)
    except msgspec.ValidationError as error:
        raise FactError(f"{kind}: the size cannot be read: {error}") from error
    stated = spec or _ScaledSpec()
    if size is not None:
        stated.replicas = size
    return _scaled_object(kind, metadata, stated, status or _ScaledStatus())


def scaled_object(form: ScaledForm) -> ScaledObject:
    """Return what an object in a file states. Raises FactError (NoReplicasError if it states no size)."""
    try:
        metadata = _META.decode(form.metadata)
        spec = _SPEC.decode(form.spec)
        status = _STATUS.decode(form.status)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FactError(f"{form.kind}: the size cannot be read: {error}") from error
    return _scaled_object(form.kind, metadata, spec or _ScaledSpec(), status or _ScaledStatus())


def _scaled_object(kind: str, metadata: _ScaledMeta, spec: _ScaledSpec, status: _ScaledStatus) -> ScaledObject:
    replicas = _count(spec.replicas)
    if replicas is None or replicas > INT32_MAX:
        if spec.replicas is not None:
            problem = f"spec.replicas is not a whole number from 0 to {INT32_MAX}"
            raise NoReplicasError(f"{kind} {metadata.name}: the size cannot be read: {problem}")
        if kind not in ONE_BY_DEFAULT:
            message = f"{kind} {metadata.name} has no spec.replicas: name an object that can be scaled"
            raise NoReplicasError(message)
        replicas = 1
    paused = (metadata.annotations or {}).get(PAUSED_ANNOTATION)
    return ScaledObject(
        replicas=replicas,
        rollout=_rolls_out(kind, metadata, spec, status),
        paused=None if paused is None else shorten(paused),
        replicas_managers=tuple(islice(_managers(metadata.managed or []), _MOST_MANAGERS)),
    )


def _rolls_out(kind: str, metadata: _ScaledMeta, spec: _ScaledSpec, status: _ScaledStatus) -> bool:
    """Return whether a new version of the pods is being rolled out.

    A rollout lasts while the controller has not observed the newest generation, and while pods of an earlier template
    remain. A change of `spec.replicas` alone is not a rollout, so the conditions of `kubectl rollout status` that
    compare with `spec.replicas` are left out. A StatefulSet that is meant to keep pods of an earlier template is not
    rolling out either, since its rollout would never end.
    """
    observed = _count(status.observed_generation)
    if metadata.generation is not None and observed is not None and observed < metadata.generation:
        return True
    if _keeps_old_pods(spec.update_strategy):
        return False
    updated = _count(status.updated_replicas)
    if isinstance(status.current_revision, str) and isinstance(status.update_revision, str):
        # The revisions stay apart until every pod is ready, which one that crashes or is full may never be.
        return status.current_revision != status.update_revision and (updated or 0) < max(
            _count(status.replicas) or 0, _count(spec.replicas) or 0
        )
    if updated is None and kind in _COUNTS_UPDATED:
        updated = 0
    return updated is not None and updated < (_count(status.replicas) or 0)


def _keeps_old_pods(strategy: object) -> bool:
    if not isinstance(strategy, dict):
        return False
    rolling = strategy.get("rollingUpdate")
    return strategy.get("type") == "OnDelete" or bool(isinstance(rolling, dict) and rolling.get("partition"))


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _managers(managed: list[_ManagedFields]) -> Iterator[str]:
    for entry in managed:
        if entry.fields is not None and "f:replicas" in entry.fields.spec:
            yield entry.manager
