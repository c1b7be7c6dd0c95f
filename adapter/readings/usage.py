"""What pods and nodes use of CPU and memory, put together of the readings of each resource.

Asked for by namespace, whoever asks and by which selector: so a hundred autoscalers of one namespace are one demand,
and where the query is proven to be wide, all namespaces together are one query a resource.

A value is never made up. What one resource's rule cannot tell is missing in the answer, and the other's is there; a
container that has samples and no value stands there with what it has, so that nobody adds its pod up without it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from adapter.objects.selectors import EVERYTHING
from adapter.readings.answers import ByName, BySelector, UsageAnswer, UsageItem
from adapter.readings.demand import Request
from adapter.readings.errors import NoSampleError, ObjectsNotKnownError, ReadingError
from adapter.readings.notices import cause_of
from adapter.readings.snapshot import ROOT
from adapter.rulebook.resource_rules import NODES
from adapter.sources.objects import ObjectsError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from adapter.objects.resources import Resource
    from adapter.readings.board import Board
    from adapter.readings.catalogue import Catalogue
    from adapter.readings.demand import Entry
    from adapter.readings.queries import Reading
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.readings.snapshot import ObjectReading
    from adapter.rulebook.model import Metric
    from adapter.sources.objects import ObjectSource

_GROUP = "metrics.k8s.io"
_ALL = BySelector(EVERYTHING)
_MOST_WARNINGS = 3


@dataclass(slots=True)
class _Space:
    """The objects asked for in one namespace, or outside of all."""

    namespace: str | None
    names: Collection[str]
    entries: dict[str, Entry] = field(default_factory=dict)
    """By resource: `cpu`, `memory`."""
    readings: dict[str, ObjectReading] = field(default_factory=dict)


class _Failures:
    """What could not be told, for those who are told the rest."""

    def __init__(self) -> None:
        self.first: ReadingError | None = None
        self._namespaces: dict[str, list[str]] = defaultdict(list)

    def note(self, metric: Metric, space: _Space, error: ReadingError) -> None:
        """Keep an error of one resource in one namespace."""
        self.first = self.first or error
        # Not the error's own words: those of Prometheus may name series of other namespaces.
        self._namespaces[f"{metric.qualified} is missing: {cause_of(type(error))}"].append(space.namespace or "")

    def warnings(self) -> Iterator[str]:
        """Yield each different failure once, with the namespaces that it is of."""
        for number, (message, namespaces) in enumerate(self._namespaces.items()):
            if number == _MOST_WARNINGS:
                yield f"{len(self._namespaces) - number} more kinds of failures"
                return
            first, others = namespaces[0], len(namespaces) - 1
            more = f" and {others} more" if others else ""
            yield f"in {first}{more}: {message}" if first else message


class UsageReadings:
    """Answers what objects use. Any thread may call it."""

    def __init__(
        self,
        *,
        board: Board,
        objects: ObjectSource,
        current: Callable[[Entry, float], Reading],
        settings: ReadingSettings,
        clock: Clock,
    ) -> None:
        """Ask through `current`: the reading of an entry, its first awaited until a time in monotonic seconds."""
        self._board = board
        self._objects = objects
        self._current = current
        self._settings = settings
        self._clock = clock

    def prepare(self, catalogue: Catalogue) -> None:
        """Begin to watch nodes where what they use is served: so that the first who asks need not be turned away."""
        if catalogue.usage_of(NODES):
            try:
                self._objects.names(NODES, None, EVERYTHING)
            except ObjectsError:
                # Told to whoever asks, and logged by the watch.
                return

    def answer(
        self, catalogue: Catalogue, kind: Resource, namespace: str | None, which: ByName | BySelector
    ) -> UsageAnswer:
        """Return what objects of a kind use; `namespace` None means all of them. Raises ReadingError.

        Of a list those that have no value are left out; one object without any is a NoSampleError.
        """
        metrics = catalogue.usage_of(kind)
        spaces = self._spaces(kind, namespace, which)
        failures = _Failures()
        for space in spaces:
            self._enter(space, metrics, failures)
        until = self._clock.monotonic() + self._settings.first_answer_wait_seconds
        for space in spaces:
            self._read(space, until, failures)
        told = [space for space in spaces if space.readings]
        if not told and failures.first is not None:
            raise failures.first
        items = tuple(item for space in told for item in self._items(kind, space))
        if isinstance(which, ByName) and not items:
            # What could not be asked may well be there.
            raise failures.first or _no_sample(told, which.name)
        moments = [reading.evaluated.wall for space in told for reading in space.readings.values()]
        strangers = () if items else _strangers(kind, told, metrics)
        warnings = (*self._aged(told), *failures.warnings(), *strangers)
        return UsageAnswer(items, catalogue.resource.window_seconds, min(moments, default=None), warnings)

    def _spaces(self, kind: Resource, namespace: str | None, which: ByName | BySelector) -> list[_Space]:
        """Return the objects by namespace; those without any are left out. Raises ReadingError."""
        try:
            if isinstance(which, ByName):
                if self._objects.labels_of(kind, namespace, which.name) is None:
                    raise NoSampleError(f"there is no {kind.singular} of this name")
                return [_Space(namespace, (which.name,))]
            everywhere = kind.namespaced and namespace is None
            namespaces = sorted(self._objects.namespaces_of(kind)) if everywhere else [namespace]
            spaces = [_Space(one, self._objects.names(kind, one, which.selector)) for one in namespaces]
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error
        return [space for space in spaces if space.names]

    def _enter(self, space: _Space, metrics: Iterable[Metric], failures: _Failures) -> None:
        """Count the request in; all that it needs is under way before any of it is waited for."""
        for metric in metrics:
            # Named with the group: a custom metric of pods may be called cpu too.
            request = Request(f"{_GROUP}/{metric.qualified}", space.namespace, _ALL, EVERYTHING)
            try:
                space.entries[metric.name] = self._board.entry(metric, request)
            except ReadingError as error:
                failures.note(metric, space, error)

    def _read(self, space: _Space, until: float, failures: _Failures) -> None:
        for resource, entry in space.entries.items():
            try:
                space.readings[resource] = cast("ObjectReading", self._current(entry, until))
            except ReadingError as error:
                failures.note(entry.metric, space, error)

    def _aged(self, spaces: Iterable[_Space]) -> Iterator[str]:
        """Yield of each resource that is not refreshed how old its oldest answer is, and why."""
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

    def _items(self, kind: Resource, space: _Space) -> Iterator[UsageItem]:
        evaluated_at = min(reading.evaluated.wall for reading in space.readings.values())
        for name in space.names:
            used = _used(space, name)
            if not any(used.values()):
                continue
            labels = self._objects.labels_of(kind, space.namespace, name)
            if labels is not None:
                yield UsageItem(space.namespace, name, labels, evaluated_at, used)


def _used(space: _Space, name: str) -> Mapping[str, Mapping[str, float]]:
    """Return what an object's containers use by resource; those of a node have an empty name."""
    used: dict[str, dict[str, float]] = {}
    for resource, reading in space.readings.items():
        values = reading.values.get(space.namespace or ROOT, {})
        for key in reading.keys(space.namespace, name):
            own = used.setdefault(key[len(name) + 1 :], {})
            value = values.get(key)
            if value is not None:
                own[resource] = value
    return dict(sorted(used.items()))


def _strangers(kind: Resource, told: Iterable[_Space], metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield which of the rules' labels hold other names than the cluster's nodes have: addresses, most often."""
    if kind != NODES:
        return
    labels = {metric.name: metric.object_label for metric in metrics}
    for space in told:
        for resource, reading in space.readings.items():
            name = next(iter(reading.values.get(ROOT, {})), None)
            if name is not None:
                yield (
                    f"nodes/{resource} is of no node that is asked for: the label {labels[resource]!r} holds names "
                    f"such as {name!r}"
                )


def _no_sample(told: Iterable[_Space], name: str) -> NoSampleError:
    """Return why one object has no value."""
    for space in told:
        for resource, reading in space.readings.items():
            faults = reading.faults.get(space.namespace or ROOT, {})
            for key in reading.keys(space.namespace, name):
                if key in faults:
                    return NoSampleError(f"{key!r} has no value of {resource}: {faults[key].reason}")
            if reading.note is not None:
                return NoSampleError(reading.note)
    return NoSampleError("Prometheus has no sample for it")
