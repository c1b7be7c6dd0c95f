"""The CPU and memory use of pods and nodes, combined from the readings of each resource.

Demand is counted by namespace, whatever the client or the selector: a hundred autoscalers in one namespace count as one
request, and if the wide query is proven, one query per resource serves all namespaces.

A value is never made up, but clients replace missing ones: `kubectl top` and the VPA's recommender read a
container without `cpu` as one that uses none. So a pod is left out while one of its containers has no CPU, or has
samples of a resource but no value; to an HPA both are the same. metrics-server leaves such pods out, too. Only memory
may be missing for a container. A container that has ended, but whose CPU lingers for the range of the query's rate, is
left out (`ended_containers`); any other appears without memory, and an HPA counts its pod as missing.

If the rule of one resource gives no values, the answer contains only the other; while its first answer is pending,
nothing is answered.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Protocol, cast

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.reports.counts import count_of
from adapter.foundation.sources.objects import ObjectsError
from adapter.metrics.readings.answer_warnings import unreadable_warnings
from adapter.metrics.readings.answering.ended_containers import EndedContainers
from adapter.metrics.readings.answering.namespace_usage import (
    NamespaceUsage,
    cautions,
    no_sample,
    unlisted_reasons,
    usage_of,
)
from adapter.metrics.readings.answers import ByName, BySelector, NamedBySelector, UsageAnswer, UsageItem
from adapter.metrics.readings.asking.demand import DemandedRequest, DemandEntry
from adapter.metrics.readings.errors import FirstAnswerPendingError, NoSampleError, ObjectsNotKnownError, ReadingError
from adapter.metrics.readings.public_reasons import cause_of
from adapter.metrics.rulebook.parsing.resource_rules import NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.asking.queries import Reading
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.object_reading import ObjectReading
    from adapter.metrics.rulebook.model import Metric

_GROUP = "metrics.k8s.io"
_ALL = BySelector(EVERYTHING)
_MOST_WARNINGS = 3
_MEMORY = "memory"


class Entries(Protocol):
    """Registers requests, and returns their entries. `QueryScheduler` implements it."""

    def entry(self, metric: Metric, request: DemandedRequest, part: Hashable, /) -> DemandEntry:
        """Register a request and return its entry. Raises ReadingError."""


class _Failures:
    """Failures of some resources or namespaces, for an answer that contains the others."""

    def __init__(self) -> None:
        self.first: ReadingError | None = None
        self._namespaces: dict[str, list[str]] = defaultdict(list)

    def note(self, metric: Metric, space: NamespaceUsage, error: ReadingError) -> None:
        """Keep an error of one resource in one namespace."""
        self.first = self.first or error
        # The error's own words are not used: those of Prometheus may name series of other namespaces.
        self._namespaces[f"{metric.qualified} is missing: {cause_of(type(error))}"].append(space.namespace or "")

    def warnings(self) -> Iterator[str]:
        """Yield each different failure once, with the namespaces that it affects."""
        for number, (message, namespaces) in enumerate(self._namespaces.items()):
            if number == _MOST_WARNINGS:
                yield f"{count_of(len(self._namespaces) - number, 'more kind')} of failures"
                return
            first, others = namespaces[0], len(namespaces) - 1
            more = f" and {others} more" if others else ""
            yield f"in {first}{more}: {message}" if first else message


class UsageAnswers:
    """Answers requests for the usage of objects. Any thread may call it."""

    def __init__(
        self, sources: ReadingSources, scheduler: Entries, current: Callable[[DemandEntry, float], Reading]
    ) -> None:
        """Read through `current`, which waits for the first reading of an entry until a time in monotonic seconds."""
        self._scheduler = scheduler
        self._objects = sources.objects
        self._current = current
        self._settings = sources.settings
        self._clock = sources.clock
        self._ended = EndedContainers()

    def prepare(self, catalogue: Catalogue) -> None:
        """Begin to watch nodes if their use is served, so that the first request need not be turned away."""
        if catalogue.usage_of(NODES):
            try:
                self._objects.names(NODES, None, EVERYTHING)
            except ObjectsError:
                # A request gets this error, too, and the watch logs it.
                return

    def answer(
        self,
        catalogue: Catalogue,
        kind: Resource,
        namespace: str | None,
        which: ByName | BySelector | NamedBySelector,
    ) -> UsageAnswer:
        """Return what objects of a kind use; `namespace` None means all namespaces. Raises ReadingError.

        A list leaves out objects that lack a value; for a single object that lacks one, NoSampleError is raised.
        """
        metrics = catalogue.usage_of(kind)
        spaces = self._spaces(kind, namespace, which)
        failures = _Failures()
        for space in spaces:
            self._enter(space, which, metrics, failures)
        until = self._clock.monotonic() + self._settings.first_answer_wait_seconds
        for space in spaces:
            self._read(space, until, failures)
        answered = [space for space in spaces if space.readings]
        if not answered and failures.first is not None:
            raise failures.first
        window = catalogue.resource.window_seconds
        items = tuple(item for space in answered for item in self._items(kind, space, window))
        if isinstance(which, ByName) and not items:
            # Values that could not be queried may well exist.
            raise failures.first or no_sample(answered, which.name)
        moments = [reading.evaluated.wall for space in answered for reading in space.readings.values()]
        is_list = isinstance(which, BySelector)
        unlisted = unlisted_reasons(kind, answered, metrics) if is_list and not items else ()
        lacking = unreadable_warnings(kind, self._objects.unreadable(kind, namespace)) if is_list else ()
        warnings = (*self._age_warnings(answered), *failures.warnings(), *unlisted, *cautions(answered), *lacking)
        return UsageAnswer(items, catalogue.resource.window_seconds, min(moments, default=None), warnings)

    def _spaces(
        self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector
    ) -> list[NamespaceUsage]:
        """Return the objects by namespace; namespaces without objects are left out. Raises ReadingError."""
        try:
            if isinstance(which, ByName):
                if self._objects.labels_of(kind, namespace, which.name) is None:
                    raise NoSampleError(f"there is no {kind.singular} of this name")
                return [NamespaceUsage(namespace, (which.name,))]
            everywhere = kind.namespaced and namespace is None
            namespaces = sorted(self._objects.namespaces_of(kind)) if everywhere else [namespace]
            spaces = [NamespaceUsage(one, self._names(kind, one, which)) for one in namespaces]
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error
        return [space for space in spaces if space.names]

    def _names(self, kind: Resource, namespace: str | None, which: BySelector | NamedBySelector) -> Collection[str]:
        if isinstance(which, BySelector):
            return self._objects.names(kind, namespace, which.selector)
        labels = self._objects.labels_of(kind, namespace, which.name)
        return () if labels is None or not which.selector.matches(labels) else (which.name,)

    def _enter(self, space: NamespaceUsage, which: Hashable, metrics: Iterable[Metric], failures: _Failures) -> None:
        """Register the request; all its queries are under way before any of them is waited for."""
        # A number, since a selector may be long.
        part = hash(which)
        for metric in metrics:
            # The name contains the group: a custom metric of pods may also be called cpu.
            request = DemandedRequest(f"{_GROUP}/{metric.qualified}", space.namespace, _ALL, EVERYTHING)
            try:
                space.entries[metric.name] = self._scheduler.entry(metric, request, part)
            except ReadingError as error:
                failures.note(metric, space, error)

    def _read(self, space: NamespaceUsage, until: float, failures: _Failures) -> None:
        for resource, entry in space.entries.items():
            try:
                space.readings[resource] = cast("ObjectReading", self._current(entry, until))
            except FirstAnswerPendingError:
                # Clients would read the missing half as 0, just because we did not wait.
                raise
            except ReadingError as error:
                failures.note(entry.metric, space, error)

    def _age_warnings(self, spaces: Iterable[NamespaceUsage]) -> Iterator[str]:
        """Yield, for each resource that is not refreshed, the age of its oldest answer, and the reason."""
        oldest: dict[tuple[str, str], float] = {}
        wall, monotonic = self._clock.wall(), self._clock.monotonic()
        for space in spaces:
            for resource, reading in space.readings.items():
                failure = space.entries[resource].scope.query.failure
                if failure is not None:
                    key = resource, cause_of(failure.error)
                    oldest[key] = max(oldest.get(key, 0.0), reading.evaluated.age(wall, monotonic))
        for (resource, cause), age in oldest.items():
            yield f"{resource} is up to {age:.0f} s old: {cause}"

    def _items(self, kind: Resource, space: NamespaceUsage, window_seconds: float) -> Iterator[UsageItem]:
        evaluated_at = min(reading.evaluated.wall for reading in space.readings.values())
        ended = self._ended_of(space, window_seconds)
        for name in space.names:
            used = usage_of(space, name, ended)
            if used is None:
                continue
            labels = self._objects.labels_of(kind, space.namespace, name)
            if labels is not None:
                yield UsageItem(space.namespace, name, labels, evaluated_at, used)

    def _ended_of(self, space: NamespaceUsage, window_seconds: float) -> Container[str]:
        """Return the containers of a namespace that have ended and may still have CPU."""
        memory = space.readings.get(_MEMORY)
        if space.namespace is None or memory is None:
            return ()
        metric, values = space.entries[_MEMORY].metric, memory.values.get(space.namespace, {})
        return self._ended.look(space.namespace, metric, values, self._clock.monotonic(), window_seconds)
