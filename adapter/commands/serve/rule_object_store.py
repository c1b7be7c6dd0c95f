"""MetricRule objects as the API server sends them, and the store that a watch fills and that notes changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity
from adapter.foundation.cluster.stores.quota_store import KeptObject, ObjectChange, QuotaStore
from adapter.foundation.objects.metadata import ObjectMeta
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.objects.rule_object import ObjectContent
from adapter.metrics.rulebook.objects.rule_object_status import says_too_many


class RuleObjectMeta(
    ObjectMeta, gc=False, rename={"created": "creationTimestamp", "resource_version": "resourceVersion"}
):
    """The part of the metadata of an object that is read."""

    uid: str = ""
    generation: int = 0
    created: str = ""
    resource_version: str = ""


class RuleObjectForm(msgspec.Struct):
    """The parts of a MetricRule object that are read."""

    metadata: RuleObjectMeta
    spec: Any = None
    status: Any = None


@dataclass(frozen=True, slots=True)
class SeenStatus:
    """The status of an object as the API server sent it."""

    uid: str
    content: dict[str, Any]
    """The content of the status; empty for an object that has no status yet."""
    since: float
    """When this process first saw the object with this status, in seconds of the monotonic clock."""


@dataclass(frozen=True, slots=True)
class SeenObject:
    """An object within the quota of its namespace."""

    content: ObjectContent
    status: SeenStatus
    resource_version: str = ""
    """The resourceVersion with which it was last seen."""


RuleObjectStore: TypeAlias = "QuotaStore[RuleObjectForm, SeenObject]"


class RuleObjectChanges:
    """The changes of a store since it was last examined. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: set[str] = set()
        self.contents = threading.Event()
        """An event that is set when a spec has changed or an object was added or deleted; the reader clears it."""

    def note(self, changes: Sequence[ObjectChange[SeenObject]]) -> None:
        """Record changes of the store."""
        if any((each.before and each.before.content) != (each.after and each.after.content) for each in changes):
            self.contents.set()
        with self._lock:
            self._statuses |= {
                each.key[0]
                for each in changes
                if each.after is not None and each.after.status is not (each.before and each.before.status)
            }

    def take_statuses(self) -> frozenset[str]:
        """Return the namespaces in which the status of an object has changed since the last call."""
        with self._lock:
            changed = frozenset(self._statuses)
            self._statuses.clear()
            return changed


def rule_object_store(
    changes: RuleObjectChanges,
    clock: Callable[[], float] = time.monotonic,
    most: int = ReadingSettings().max_rule_objects_per_namespace,
) -> RuleObjectStore:
    """Return an empty store, which passes its changes to `changes`.

    It keeps the full content of at most `most` objects of each namespace, and only the identity of the others.
    """

    def convert(item: RuleObjectForm, before: SeenObject | None) -> KeptObject[SeenObject]:
        metadata = item.metadata
        identity = ObjectIdentity(
            metadata.namespace or "", metadata.name, metadata.uid, metadata.generation, metadata.created
        )
        is_reported = isinstance(item.status, dict) and says_too_many(item.status, identity.generation)
        return KeptObject(identity, _seen_object(identity, item, before, clock()), is_reported)

    return QuotaStore(most, convert, changes.note)


def _seen_object(identity: ObjectIdentity, item: RuleObjectForm, before: SeenObject | None, now: float) -> SeenObject:
    """Return the object, which shares with `before` the parts that are equal."""
    content = ObjectContent(
        identity.namespace, identity.name, identity.uid, identity.generation, identity.created, item.spec
    )
    status = item.status if isinstance(item.status, dict) else {}
    version = item.metadata.resource_version
    if before is None:
        return SeenObject(content, SeenStatus(identity.uid, status, now), version)
    is_same = (before.status.uid, before.status.content) == (identity.uid, status)
    return SeenObject(
        before.content if before.content == content else content,
        before.status if is_same else SeenStatus(identity.uid, status, now),
        version,
    )
