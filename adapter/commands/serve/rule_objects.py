"""Watches the MetricRule objects, reads them, and puts them in force while `serve` runs.

If the cluster does not have their CustomResourceDefinition, one warning is logged, and everything else works. While the
API server cannot be reached, the last objects stay in force. An object that cannot be used does not affect the others.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from adapter.commands.serve.rule_object_statuses import RuleObjectStatuses
from adapter.commands.serve.rule_object_store import RuleObjectChanges, RuleObjectForm, rule_object_store
from adapter.foundation.cluster.values.state import ObjectKind
from adapter.foundation.cluster.watch.doubted_lists import when_empty
from adapter.foundation.cluster.watch.whole_objects.absent import fetch_absent, list_one
from adapter.foundation.cluster.watch.whole_objects.served import ServedKinds, ServedReflector
from adapter.foundation.options.clients import ObjectSettings, kubernetes_client
from adapter.foundation.promql.quoting import is_quoted_label_name
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import INTEGER, TEXT, Flag, FlagValues, in_group, switch
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch, WatchSettings
from adapter.foundation.sources.kubernetes.watches.reflector import Reflector
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.model import METRIC_RULE
from adapter.metrics.rulebook.objects.metric_rule import GROUP, PLURAL
from adapter.metrics.rulebook.objects.rule_object import ObjectContent, RuleObject, read_rule_object
from adapter.metrics.rulebook.objects.rule_object_status import collection_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Event

    from adapter.commands.serve.rule_object_store import RuleObjectStore
    from adapter.foundation.objects.resources import ResolveResource, Resource
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.readings import Readings

_log = logging.getLogger(__name__)

KIND = ObjectKind(GROUP, PLURAL, METRIC_RULE)
_GROUP = "MetricRule objects"
_LOOK_SECONDS = 0.2
"""The maximum time until a changed object is read."""
_RESOLVE_AGAIN_SECONDS = 15.0
"""The time between two attempts to read an object that names a kind that the cluster does not know."""
_FIRST_LIST_SECONDS = 10.0
"""The maximum time for which the loader, and with it each request for an unknown metric, waits for the first list."""
_READING_SECONDS = 1.0
"""The maximum time for which objects are read before those already read are put in force."""
_PAUSE_RATIO = 4.0
"""The pause of a namespace after its objects were read, as a multiple of the time that this took."""
_PAUSE_SECONDS = 0.001
"""The pause after each slice of reading, since a request may be waiting for the processor."""

METRIC_RULE_FLAGS = in_group(
    _GROUP,
    switch(
        "metric-rules",
        "Serve the metrics of MetricRule objects (metricrules.tidewatch.io), each to its own namespace, beside "
        "those of the rule files, which take precedence.",
    ),
    Flag(
        "metric-rules-namespace-label",
        TEXT,
        "Prometheus label that contains the namespace; every query of an object is confined to its own.",
        default="namespace",
    ),
    Flag(
        "max-metric-rules-per-namespace",
        INTEGER,
        "Limit on the MetricRule objects of one namespace that are served, the oldest first.",
        default=ReadingSettings().max_rule_objects_per_namespace,
    ),
    Flag(
        "max-metric-rule-series-per-namespace",
        INTEGER,
        "Limit on the series that the MetricRule objects of one namespace select together, the oldest first.",
        default=ReadingSettings().max_series_of_rule_objects_per_namespace,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleObjectSettings:
    """The settings for serving MetricRule objects."""

    namespace_label: str
    max_per_namespace: int
    """The maximum number of objects of a namespace that are read. Only the identity of the others is kept."""
    objects: ObjectSettings
    """The connection to the cluster."""


def rule_object_settings(values: FlagValues, objects: ObjectSettings) -> RuleObjectSettings | None:
    """Return the settings, or None if objects are not served. Raises UsageError."""
    label = values.text("metric-rules-namespace-label")
    if not is_quoted_label_name(label):
        raise UsageError(f"--metric-rules-namespace-label: {label!r} cannot be a label: use its name in Prometheus")
    if not values.boolean("metric-rules"):
        return None
    if objects.files is not None:
        raise UsageError("--metric-rules needs a cluster: leave out --objects, or --metric-rules")
    most = values.integer("max-metric-rules-per-namespace")
    return RuleObjectSettings(namespace_label=label, max_per_namespace=most, objects=objects)


class RuleObjectLoader:
    """Reads the objects that have changed, and puts all of them in force."""

    def __init__(
        self,
        store: RuleObjectStore,
        changes: RuleObjectChanges,
        resolve: ResolveResource,
        readings: Readings,
        namespace_label: str,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._changes = changes
        self._resolve = resolve
        self._readings = readings
        self._label = namespace_label
        self._pace = pace.with_pause(_PAUSE_SECONDS)
        self._clock = clock
        self._known: dict[tuple[str, str], RuleObject] = {}
        self._spent: dict[str, float] = {}
        """The seconds that reading the objects of each namespace has taken so far. Namespaces without objects are
        forgotten."""
        self._resolved_at = clock()
        self._has_read_all = False
        self._pauses_until: dict[str, float] = {}
        self._resumes_at = math.inf
        """When the first pause of a namespace with unread changes ends."""

    def run(self, stop: Event, first_list: Callable[[float], bool], is_removed: Callable[[], bool]) -> None:
        """Load objects until the stop is requested.

        `first_list` waits at most the given seconds for the first list, and returns whether it has arrived or failed.
        `is_removed` returns whether the API server has answered that the kind is not installed.
        """
        until = self._clock() + _FIRST_LIST_SECONDS
        while not first_list(_LOOK_SECONDS) and self._clock() < until and not stop.is_set():
            pass
        has_more = self.load()
        while not stop.is_set():
            if is_removed() and len(self._store):
                # The definition was deleted together with its objects while no watch was open.
                self._store.replacement().commit()
            if has_more or self._changes.contents.wait(_LOOK_SECONDS) or self._may_resolve() or self._may_resume():
                has_more = self.load()

    def load(self) -> bool:
        """Read changed objects for at most a second, and put them in force; return whether more can be read now.

        Namespaces whose objects have taken the least time so far are read first, so that a change does not have to wait
        for many or slow objects of another namespace. Once all objects have been read, a namespace pauses after each
        time, so that one whose objects change all the time does not take the processor from the requests of others. A
        former version stays in force until the new one has been read.
        """
        began = self._clock()
        self._changes.contents.clear()
        resolves = self._may_resolve()
        if resolves:
            self._resolved_at = began
        contents = {key: seen.content for key, seen in self._store.known.items()}
        known = {key: found for key, found in self._known.items() if key in contents}
        self._spent = {namespace: self._spent.get(namespace, 0.0) for namespace, _ in contents}
        self._pauses_until = {namespace: until for namespace, until in self._pauses_until.items() if until > began}
        changed = [
            key
            for key, content in contents.items()
            if key not in known or known[key].content != content or (resolves and known[key].waits_for_a_kind)
        ]
        self._resumes_at = min((self._pauses_until.get(key[0], math.inf) for key in changed), default=math.inf)
        due = sorted((key for key in changed if key[0] not in self._pauses_until), key=lambda key: self._spent[key[0]])
        before, number = dict(self._spent), 0
        while number < len(due) and self._clock() < began + _READING_SECONDS:
            known[due[number]] = self._read(contents[due[number]])
            number += 1
        has_more = number < len(due)
        self._known = known
        read_at = self._clock()
        self._readings.replace_rule_objects(tuple(known.values()), are_all=not has_more)
        if self._has_read_all:
            self._pause(due[:number], before, self._clock() - read_at)
        self._has_read_all |= not has_more
        return has_more

    def _pause(self, read: Sequence[tuple[str, str]], before: Mapping[str, float], in_force_seconds: float) -> None:
        """Let the namespaces of objects that have just been read pause.

        `before` is what their objects had taken until then, and `in_force_seconds` what it took to put all in force.
        """
        now = self._clock()
        for namespace, number in Counter(namespace for namespace, _ in read).items():
            seconds = self._spent[namespace] - before[namespace] + in_force_seconds * number / len(read)
            self._pauses_until[namespace] = now + _PAUSE_RATIO * seconds

    def _read(self, content: ObjectContent) -> RuleObject:
        began = self._clock()
        with self._pace.slice():
            try:
                found = read_rule_object(content, self._resolve, self._label)
            except Exception:  # noqa: BLE001 - the loop: an object on which the program fails must not stop the others
                _log.exception("%s could not be read: internal error", content.shown)
                found = RuleObject(content, None, (_internal_error(content),))
        self._spent[content.namespace] += self._clock() - began
        return found

    def _may_resume(self) -> bool:
        return self._clock() >= self._resumes_at

    def _may_resolve(self) -> bool:
        is_time = self._clock() - self._resolved_at >= _RESOLVE_AGAIN_SECONDS
        return is_time and any(found.waits_for_a_kind for found in self._known.values())


def _internal_error(content: ObjectContent) -> Finding:
    message = "the rule could not be checked, because of an error in the adapter"
    fix = "see the adapter's log, and write the rule in another way"
    return Finding(Severity.ERROR, Code.NOT_CONFINED, content.shown, 1, message, fix, content.shown)


def serve_rule_objects(
    settings: RuleObjectSettings,
    context: WorkerContext,
    readings: Readings,
    resolve: ResolveResource,
    pace: Pace,
    telemetry: WatchTelemetry,
) -> None:
    """Start the tasks that watch the objects, put them in force and write their statuses. Raises UsageError."""
    try:
        client = kubernetes_client(settings.objects.cluster, limit=settings.objects.limit)
        writing = ObjectClient(kubernetes_client(settings.objects.cluster))
    except KubernetesError as error:
        raise UsageError(f"{error}; or leave out --metric-rules") from error
    watches = WatchSettings(pace=pace, telemetry=telemetry)
    changes = RuleObjectChanges()
    store = rule_object_store(changes, most=settings.max_per_namespace)

    def reflector(resource: Resource, failed: Callable[[KubernetesError], None]) -> Reflector[RuleObjectForm]:
        which = ListWatch(resource, WHOLE_OBJECTS)
        return Reflector(client, which, RuleObjectForm, store, watches, failed, when_empty(store))

    watch = ServedReflector(KIND, ServedKinds(client, pace), reflector, watches)
    loader = RuleObjectLoader(store, changes, resolve, readings, settings.namespace_label, pace)
    statuses = RuleObjectStatuses(writing, store, changes, readings, pace)
    readings.expect_rule_objects(lambda: store.number_beyond)
    run = context.tasks.running
    run("watch MetricRules", watch.run, reads_only=True)
    is_removed = partial(_is_removed, watch)
    run("MetricRules", lambda stop: loader.run(stop, watch.tried.wait, is_removed), reads_only=True)
    fetch = partial(fetch_absent, partial(list_one, client, collection_path), RuleObjectForm, store)
    run("MetricRules within quotas", fetch, reads_only=True)
    # A status that is still unwritten when a process ends is written by the next process.
    run("statuses of MetricRules", statuses.run, reads_only=True)


def _is_removed(watch: ServedReflector) -> bool:
    """Return whether the kind is known not to be installed."""
    return isinstance(watch.refusal, NotFoundError)
