"""From a reading to what one asker gets: for requests, which read from memory, and for explanations, which ask anew.

Both go through here, so an explanation cannot decide otherwise than the API does.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from adapter.readings.answers import ByName
from adapter.readings.errors import NoObjectsMatchError, ObjectsNotKnownError
from adapter.readings.policies import Asking, external_answer, objects_answer
from adapter.sources.objects import ObjectsError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection

    from adapter.objects.selectors import Selector
    from adapter.readings.answers import BySelector, ExternalAnswer, ObjectsAnswer
    from adapter.readings.queries import Reading
    from adapter.readings.rows import ExternalReading
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.readings.snapshot import Dropped, ObjectReading
    from adapter.rulebook.model import Metric
    from adapter.sources.objects import ObjectSource


class Answering:
    """Makes answers of readings. Any thread may call it."""

    def __init__(
        self,
        *,
        objects: ObjectSource,
        settings: ReadingSettings,
        clock: Clock,
        dropped: Callable[[Counter[Dropped]], None],
    ) -> None:
        """Tell `dropped` of rows that are nobody's value, once for each asker of a reading."""
        self._objects = objects
        self._settings = settings
        self._clock = clock
        self._dropped = dropped

    def names(self, metric: Metric, namespace: str | None, which: ByName | BySelector) -> Collection[str]:
        """Return the names of the objects that are asked for. Raises ReadingError where there are none."""
        if isinstance(which, ByName):
            return (which.name,)
        if metric.resource is None:
            raise NoObjectsMatchError(f"{metric.qualified} describes no objects: ask for it as an external metric")
        try:
            names = self._objects.names(metric.resource, namespace, which.selector)
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
    ) -> ObjectsAnswer:
        """Return the values of the objects of these names. Raises ReadingError."""
        exists = functools.partial(self._exists, metric, namespace)
        return objects_answer(self._asking(metric, reading), reading, namespace, which, names, exists)

    def external(
        self, metric: Metric, namespace: str | None, selector: Selector, reading: ExternalReading
    ) -> ExternalAnswer:
        """Return the rows of an external metric. Raises ReadingError."""
        return external_answer(self._asking(metric, reading), reading, namespace, selector, self._dropped)

    def _exists(self, metric: Metric, namespace: str | None, name: str) -> bool:
        """Return whether there is an object of that name. Raises ObjectsNotKnownError."""
        if metric.resource is None:
            return False
        try:
            return self._objects.labels_of(metric.resource, namespace, name) is not None
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error

    def _asking(self, metric: Metric, reading: Reading) -> Asking:
        age = reading.evaluated.age(self._clock.wall(), self._clock.monotonic())
        return Asking(metric.rule.policy, age, self._settings.look_back_seconds, metric.rule.ranges_seconds)
