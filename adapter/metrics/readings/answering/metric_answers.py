"""Makes answers from readings: for requests, which read from memory, and for explanations, which query Prometheus.

Both use this code, so an explanation always agrees with the API.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from adapter.foundation.sources.objects import ObjectsError, ObjectSource
from adapter.metrics.readings.answer_warnings import unreadable_warnings
from adapter.metrics.readings.answers import ByName, BySelector, ExternalAnswer, ObjectsAnswer
from adapter.metrics.readings.errors import NoObjectsMatchError, ObjectsNotKnownError
from adapter.metrics.readings.samples.no_data_and_sample_age import Asking, asking_of, external_answer, objects_answer

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.readings.asking.queries import Reading
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.external_reading import ExternalReading
    from adapter.metrics.readings.samples.object_reading import Dropped, ObjectReading
    from adapter.metrics.rulebook.model import Metric


T = TypeVar("T")


class Listing(Protocol):
    """Reads objects whose first list may not have arrived yet. `CurrentReadings` is one, and waits for that list."""

    def look_when_listed(self, objects: ObjectSource, resource: Resource, until: float, look: Callable[[], T]) -> T:
        """Return what `look` returns; may wait for the first list until a time in monotonic seconds.

        Raises ObjectsError.
        """


class ReadsWithoutWaiting:
    """Reads the objects that are known now, without waiting for a first list."""

    def look_when_listed(self, objects: ObjectSource, resource: Resource, until: float, look: Callable[[], T]) -> T:  # noqa: ARG002 - see Listing
        """Return what `look` returns. Raises ObjectsError."""
        return look()


class MetricAnswers:
    """Makes answers from readings. Any thread may call it."""

    def __init__(
        self, sources: ReadingSources, dropped: Callable[[Counter[Dropped]], None], listing: Listing | None = None
    ) -> None:
        """Make answers for one process. `dropped` is called with the counts of dropped rows, once for each requester.

        `listing` waits for the first list of a kind; with None, no caller waits.
        """
        self._listing = listing or ReadsWithoutWaiting()
        self._objects = sources.objects
        self._settings = sources.settings
        self._clock = sources.clock
        self._dropped = dropped

    def names(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, until: float = 0.0
    ) -> Collection[str]:
        """Return the names of the requested objects. Raises ReadingError if there are none.

        Waits for the first list of the kind until a time in monotonic seconds.
        """
        if isinstance(which, ByName):
            return (which.name,)
        if metric.resource is None:
            raise NoObjectsMatchError(f"{metric.qualified} describes no objects: ask for it as an external metric")
        look = functools.partial(self._objects.names, metric.resource, namespace, which.selector)
        try:
            names = self._listing.look_when_listed(self._objects, metric.resource, until, look)
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error
        if not names:
            where = f" in namespace {namespace!r}" if namespace else ""
            raise NoObjectsMatchError(f"no {metric.resource.qualified}{where} match the selector '{which.selector}'")
        return names

    def objects(
        self,
        metric: Metric,
        namespace: str | None,
        which: ByName | BySelector,
        names: Collection[str],
        reading: ObjectReading,
        until: float = 0.0,
    ) -> ObjectsAnswer:
        """Return the values of the objects of these names. Raises ReadingError."""
        exists = functools.partial(self._exists, metric, namespace, until)
        answer = objects_answer(self._asking(metric, reading), reading, namespace, which, names, exists)
        if isinstance(which, ByName) or metric.resource is None:
            return answer
        own = namespace if metric.resource.namespaced else None
        lacking = unreadable_warnings(metric.resource, self._objects.unreadable(metric.resource, own))
        return replace(answer, warnings=(*answer.warnings, *lacking)) if lacking else answer

    def external(
        self, metric: Metric, namespace: str | None, selector: Selector, reading: ExternalReading
    ) -> ExternalAnswer:
        """Return the rows of an external metric. Raises ReadingError."""
        return external_answer(self._asking(metric, reading), reading, namespace, selector, self._dropped)

    def _exists(self, metric: Metric, namespace: str | None, until: float, name: str) -> bool:
        """Return whether there is an object of that name. Raises ObjectsNotKnownError."""
        if metric.resource is None:
            return False
        try:
            own = namespace if metric.resource.namespaced else None
            look = functools.partial(self._objects.labels_of, metric.resource, own, name)
            return self._listing.look_when_listed(self._objects, metric.resource, until, look) is not None
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error

    def _asking(self, metric: Metric, reading: Reading) -> Asking:
        age = reading.evaluated.age(self._clock.wall(), self._clock.monotonic())
        return asking_of(metric, age, self._settings)
