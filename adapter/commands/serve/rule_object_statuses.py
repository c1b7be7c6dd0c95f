"""Writes changed statuses of MetricRule objects by server-side apply, at a limited rate."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    is_of_the_server,
)
from adapter.foundation.time.due_queue import DueQueue
from adapter.foundation.time.rate_limit import RateLimit
from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.catalogue.object_catalogues import NamespaceObjects
from adapter.metrics.rulebook.objects.metric_rule import rule_object_text
from adapter.metrics.rulebook.objects.rule_object_status import (
    apply_document,
    collection_path,
    seconds_until_due,
    status_of,
)
from adapter.metrics.rulebook.objects.rule_object_verdict import KnownObject, too_many_rules_verdict, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Event

    from adapter.commands.serve.rule_object_store import RuleObjectChanges, RuleObjectStore
    from adapter.foundation.cluster.stores.oldest_objects import Key, ObjectIdentity
    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.readings import Readings

_log = logging.getLogger(__name__)

FIELD_MANAGER: Final = "tidewatch-adapter"
_ROUND_SECONDS: Final = 0.3
_WRITES_A_SECOND: Final = 20.0
_MOST_WRITES_AT_ONCE: Final = 40
_RETRY_SECONDS: Final = 10.0
"""The pause of all writes after the API server has failed, and the pause of an object after a write."""
_SHARE: Final = 2
"""The maximum number of statuses of one namespace that a pass writes if several namespaces are due."""
_NOTHING: Final = NamespaceObjects()
_PAUSE_RATIO: Final = 4.0
"""The pause of a namespace after it was examined, as a multiple of the time that the examination took."""


class RuleObjectStatuses:
    """Compares the wanted and the current status of each object by namespace, and writes statuses that differ."""

    def __init__(
        self,
        client: ObjectClient,
        store: RuleObjectStore,
        changes: RuleObjectChanges,
        readings: Readings,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._too_many = too_many_rules_verdict(store.most)
        self._client = client
        self._store = store
        self._changes = changes
        self._readings = readings
        self._pace = pace
        self._clock = clock
        self._wall = wall
        self._limit = RateLimit(_WRITES_A_SECOND, _MOST_WRITES_AT_ONCE, clock=clock)
        self._log = StateLog(_log)
        self._seen: dict[str, NamespaceObjects] = {}
        self._files: Catalogue | None = None
        self._due: DueQueue[str] = DueQueue()
        """When each namespace is examined next."""
        self._resumes_at = -math.inf
        self._written_at: dict[str, float] = {}
        """When a status of each namespace was last written."""
        self._refused: dict[Key, float] = {}
        """The time at which each refused status of an object beyond the quota is tried again."""

    def run(self, stop: Event) -> None:
        """Write statuses until the stop is requested."""
        while not stop.wait(_ROUND_SECONDS):
            self.look()

    def look(self) -> None:
        """Examine the namespaces that have changed or are due, and write the statuses that differ there."""
        now = self._clock()
        objects, files = self._readings.rule_objects(), self._readings.catalogue
        changed = self._changes.take_statuses()
        for namespace, found in objects.items():
            if files is not self._files or self._seen.get(namespace) is not found or namespace in changed:
                self._due.set(namespace, now)
        self._files, self._seen = files, dict(objects)
        for key in [key for key, at in self._refused.items() if at <= now]:
            del self._refused[key]
            self._store.report_again(key)
        unreported = self._store.unreported()
        for namespace in unreported:
            self._due.set(namespace, now)
        if now < self._resumes_at:
            return
        known = objects.keys() | unreported
        self._written_at = {name: at for name, at in self._written_at.items() if name in known}
        due = [namespace for namespace in self._due.pop_due(now, len(known)) if namespace in known]
        # Namespaces that have waited longest come first, so that one whose objects change all the time does not take
        # every turn.
        for namespace in sorted(due, key=lambda name: self._written_at.get(name, -math.inf)):
            self._look_at(
                namespace, objects.get(namespace, _NOTHING), files, _SHARE if len(due) > 1 else _MOST_WRITES_AT_ONCE
            )

    def _look_at(self, namespace: str, objects: NamespaceObjects, files: Catalogue, most: int) -> None:
        """Write at most `most` of the statuses that are due in a namespace."""
        began = self._clock()
        with self._pace.slice():
            known = list(objects.judge(files))
        again, written = math.inf, 0
        for each in known:
            wait = self._settle(each, may_write=written < most)
            if wait == _RETRY_SECONDS:
                written += 1
            again = min(again, wait)
        while written < most and self._report_one(namespace):
            written += 1
        now = self._clock()
        if written:
            self._written_at[namespace] = now
        if again < math.inf:
            self._due.set(namespace, now + max(again, _PAUSE_RATIO * (now - began)))

    def _settle(self, known: KnownObject, *, may_write: bool) -> float:
        """Write the status of an object if it is due; return the seconds until the next check, or infinity."""
        content, now = known.found.content, self._clock()
        stored = self._store.value(content.key)
        if stored is None or stored.status.uid != content.uid:
            return math.inf
        seen = stored.status
        wanted = status_of(
            verdict_of(known), known.found.findings, content.generation, seen.content, rfc3339(self._wall())
        )
        wait = seconds_until_due(wanted, seen.content, now - seen.since)
        if wait is None:
            return math.inf
        if wait > 0:
            return wait
        if not may_write or now < self._resumes_at or not self._limit.take(0.0):
            return _ROUND_SECONDS
        self._write(content, wanted, stored.resource_version)
        # The watch brings the new status. The object is checked again in case the write failed.
        return _RETRY_SECONDS

    def _report_one(self, namespace: str) -> bool:
        """Write the status of one object beyond the quota of its namespace; return whether a write was attempted."""
        if namespace not in self._store.unreported() or self._clock() < self._resumes_at or not self._limit.take(0.0):
            return False
        identity = self._store.take_unreported(namespace)
        if identity is None:
            return False
        status = status_of(self._too_many, (), identity.generation, {}, rfc3339(self._wall()))
        if self._write(identity, status):
            self._refused.pop(identity.key, None)
        else:
            # If it were tried again at once, the same request would be repeated without end.
            self._refused[identity.key] = self._clock() + _RETRY_SECONDS
        return True

    def _write(self, identity: ObjectIdentity, status: Mapping[str, Any], resource_version: str = "") -> bool:
        """Write a status; return whether the write need not be retried."""
        path = f"{collection_path(identity.namespace)}/{identity.name}/status"
        shown = rule_object_text(identity.namespace, identity.name)
        try:
            self._client.apply(path, apply_document(identity, status, resource_version), FIELD_MANAGER)
        except (NotFoundError, ConflictError):
            # The object is gone or has changed, or another object has its name now; the watch brings this change.
            return True
        except KubernetesError as error:
            if is_of_the_server(error) or isinstance(error, ForbiddenError):
                self._resumes_at = self._clock() + _RETRY_SECONDS
                self._log.failed("write", f"statuses of MetricRules cannot be written, and are tried again: {error}")
            else:
                # It concerns a single object, and must not delay the others.
                self._log.failed(shown, f"the status of {shown} cannot be written, and is tried again: {error}")
            return False
        self._log.recovered("write", "statuses of MetricRules are written again")
        self._log.recovered(shown, f"the status of {shown} is written again")
        return True
