"""The CPU and memory use of pods and nodes, combined from the readings of each resource.

Demand is counted by namespace, whatever the client or the selector: a hundred autoscalers of one namespace are one
demand, and if the wide query is proven, all namespaces together are one query per resource.

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
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Protocol, cast

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.objects import ObjectsError
from adapter.metrics.readings.answering.ended_containers import EndedContainers
from adapter.metrics.readings.answers import ByName, BySelector, NamedBySelector, UsageAnswer, UsageItem
from adapter.metrics.readings.asking.demand import DemandedRequest
from adapter.metrics.readings.errors import (
    FirstAnswerPendingError,
    NoSampleError,
    ObjectsNotKnownError,
    ReadingError,
)
from adapter.metrics.readings.notices import cause_of, unreadable
from adapter.metrics.readings.samples.object_reading import ROOT
from adapter.metrics.rulebook.parsing.resource_rules import NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.queries import Reading
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.object_reading import ObjectReading
    from adapter.metrics.rulebook.model import Metric

_GROUP = "metrics.k8s.io"
_ALL = BySelector(EVERYTHING)
_MOST_WARNINGS = 3
_CPU = "cpu"
_MEMORY = "memory"
_NO_SAMPLE = "Prometheus has no sample for it"


class Entries(Protocol):
    """Keeps the requests in demand. `QueryScheduler` implements it."""

    def entry(self, metric: Metric, request: DemandedRequest, part: Hashable, /) -> DemandEntry:
        """Register a request and return its entry. Raises ReadingError."""
        ...


@dataclass(slots=True)
class _Space:
    """The requested objects in one namespace, or outside of all."""

    namespace: str | None
    names: Collection[str]
    entries: dict[str, DemandEntry] = field(default_factory=dict)
    """Entries by resource: `cpu`, `memory`."""
    readings: dict[str, ObjectReading] = field(default_factory=dict)


class _Failures:
    """Failures of some resources or namespaces, for an answer that contains the others."""

    def __init__(self) -> None:
        self.first: ReadingError | None = None
        self._namespaces: dict[str, list[str]] = defaultdict(list)

    def note(self, metric: Metric, space: _Space, error: ReadingError) -> None:
        """Keep an error of one resource in one namespace."""
        self.first = self.first or error
        # The error's own words are not used: those of Prometheus may name series of other namespaces.
        self._namespaces[f"{metric.qualified} is missing: {cause_of(type(error))}"].append(space.namespace or "")

    def warnings(self) -> Iterator[str]:
        """Yield each different failure once, with the namespaces that it affects."""
        for number, (message, namespaces) in enumerate(self._namespaces.items()):
            if number == _MOST_WARNINGS:
                yield f"{len(self._namespaces) - number} more kinds of failures"
                return
            first, others = namespaces[0], len(namespaces) - 1
            more = f" and {others} more" if others else ""
            yield f"in {first}{more}: {message}" if first else message


class UsageAnswers:
    """Answers what objects use. Any thread may call it."""

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

        A list leaves out objects that lack a value; a single object that lacks one is a NoSampleError.
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
            raise failures.first or _no_sample(answered, which.name)
        moments = [reading.evaluated.wall for space in answered for reading in space.readings.values()]
        is_list = isinstance(which, BySelector)
        unlisted = _unlisted_reasons(kind, answered, metrics) if is_list and not items else ()
        lacking = unreadable(kind, self._objects.unreadable(kind, namespace)) if is_list else ()
        warnings = (*self._age_warnings(answered), *failures.warnings(), *unlisted, *_cautions(answered), *lacking)
        return UsageAnswer(items, catalogue.resource.window_seconds, min(moments, default=None), warnings)

    def _spaces(
        self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector
    ) -> list[_Space]:
        """Return the objects by namespace; those without any are left out. Raises ReadingError."""
        try:
            if isinstance(which, ByName):
                if self._objects.labels_of(kind, namespace, which.name) is None:
                    raise NoSampleError(f"there is no {kind.singular} of this name")
                return [_Space(namespace, (which.name,))]
            everywhere = kind.namespaced and namespace is None
            namespaces = sorted(self._objects.namespaces_of(kind)) if everywhere else [namespace]
            spaces = [_Space(one, self._names(kind, one, which)) for one in namespaces]
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error
        return [space for space in spaces if space.names]

    def _names(self, kind: Resource, namespace: str | None, which: BySelector | NamedBySelector) -> Collection[str]:
        if isinstance(which, BySelector):
            return self._objects.names(kind, namespace, which.selector)
        labels = self._objects.labels_of(kind, namespace, which.name)
        return () if labels is None or not which.selector.matches(labels) else (which.name,)

    def _enter(self, space: _Space, which: Hashable, metrics: Iterable[Metric], failures: _Failures) -> None:
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

    def _read(self, space: _Space, until: float, failures: _Failures) -> None:
        for resource, entry in space.entries.items():
            try:
                space.readings[resource] = cast("ObjectReading", self._current(entry, until))
            except FirstAnswerPendingError:
                # Clients would read the missing half as 0, just because we did not wait.
                raise
            except ReadingError as error:
                failures.note(entry.metric, space, error)

    def _age_warnings(self, spaces: Iterable[_Space]) -> Iterator[str]:
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

    def _items(self, kind: Resource, space: _Space, window_seconds: float) -> Iterator[UsageItem]:
        evaluated_at = min(reading.evaluated.wall for reading in space.readings.values())
        ended = self._ended_of(space, window_seconds)
        for name in space.names:
            used = _usage_of(space, name, ended)
            if used is None:
                continue
            labels = self._objects.labels_of(kind, space.namespace, name)
            if labels is not None:
                yield UsageItem(space.namespace, name, labels, evaluated_at, used)

    def _ended_of(self, space: _Space, window_seconds: float) -> Container[str]:
        """Return the containers of a namespace that have ended and may still have CPU."""
        memory = space.readings.get(_MEMORY)
        if space.namespace is None or memory is None:
            return ()
        values = memory.values.get(space.namespace, {})
        return self._ended.look(space.namespace, values, self._clock.monotonic(), window_seconds)


def _usage_of(space: _Space, name: str, ended: Container[str]) -> Mapping[str, Mapping[str, float]] | None:
    """Return what an object's containers use by resource; those of a node have an empty name.

    Containers that have `ended` are left out. None if a value is missing that would be read as 0.
    """
    used: dict[str, dict[str, float]] = {}
    for resource, reading in space.readings.items():
        values = reading.values.get(space.namespace or ROOT, {})
        keys = reading.keys(space.namespace, name)
        if not keys:
            return None
        for key in keys:
            value = values.get(key)
            if value is None:
                return None
            if key in ended:
                continue
            used.setdefault(key[len(name) + 1 :], {})[resource] = value
    if _CPU in space.readings and not all(_CPU in own for own in used.values()):
        return None
    return dict(sorted(used.items()))


def _cautions(answered: Iterable[_Space]) -> list[str]:
    """Return the doubts about the values of each resource, each once."""
    found = (
        f"{space.entries[resource].metric.qualified}: {reading.caution}"
        for space in answered
        for resource, reading in space.readings.items()
        if reading.caution is not None and any(_names_with_values(space, resource, name) for name in space.names)
    )
    return list(dict.fromkeys(found))


def _unlisted_reasons(kind: Resource, answered: Collection[_Space], metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield why no object is listed, if a resource has no value for any requested object."""
    served = [metric for metric in metrics if any(metric.name in space.readings for space in answered)]
    lacking = [metric for metric in served if not any(_has_value(space, metric.name) for space in answered)]
    for metric in lacking:
        # Prometheus usually names nodes by their addresses.
        values = (space.readings[metric.name].values.get(ROOT, {}) for space in answered) if kind == NODES else ()
        stranger = next(chain.from_iterable(values), None)
        if stranger is not None:
            yield (
                f"{metric.qualified} has no value for any requested node: the label {metric.object_label!r} holds "
                "names "
                f"such as {stranger!r}"
            )
        elif len(lacking) < len(served):
            yield f"{metric.qualified} has no value for any requested {kind.singular}, so none is listed"


def _has_value(space: _Space, resource: str) -> bool:
    """Return whether any of the requested objects has a value of a resource."""
    return any(_names_with_values(space, resource, name) for name in space.names)


def _names_with_values(space: _Space, resource: str, name: str) -> set[str]:
    """Return the names under which an object has values of a resource."""
    reading = space.readings.get(resource)
    if reading is None:
        return set()
    values = reading.values.get(space.namespace or ROOT, {})
    return {key for key in reading.keys(space.namespace, name) if key in values}


def _no_sample(answered: Iterable[_Space], name: str) -> NoSampleError:
    """Return why one object is left out."""
    return NoSampleError(next((_why(space, name) for space in answered), _NO_SAMPLE))


def _why(space: _Space, name: str) -> str:
    for resource, reading in space.readings.items():
        faults = reading.faults.get(space.namespace or ROOT, {})
        for key in reading.keys(space.namespace, name):
            if key in faults:
                return f"{key.rstrip('/')!r} has no value of {resource}: {faults[key].reason}"
    found = {resource: _names_with_values(space, resource, name) for resource in space.readings}
    notes = {resource: reading.note for resource, reading in space.readings.items()}
    if not any(found.values()):
        return next((note for note in notes.values() if note), _NO_SAMPLE)
    for resource, own in found.items():
        if not own:
            return f"it has no value of {resource}: {notes[resource] or _NO_SAMPLE}"
    containers = set[str]().union(*found.values()) - found.get(_CPU, set())
    return f"{min(containers, default=name)!r} has no value of {_CPU}: {_NO_SAMPLE}"
