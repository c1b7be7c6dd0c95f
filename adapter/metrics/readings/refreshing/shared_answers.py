"""Stores equal answers once: a thousand selectors that all select the same series share one set of values."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from adapter.metrics.readings.samples.object_reading import ObjectReading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.asking.queries import Query, Reading

_LOOKED_AT = 64
_A_SLICE = 1000
_MOST_SHARED = 20_000
"""Limit on the values of a reading that is compared with others: comparing a larger one costs more than it is likely to
save."""


class SharedAnswers:
    """Shares equal values between readings. Thread-safe."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[int, Query] = WeakValueDictionary()

    def share(self, query: Query, reading: Reading) -> Reading:
        """Return a query's new reading, with another query's values in place of its own if both are equal."""
        if not isinstance(reading, ObjectReading) or not 0 < sum(map(len, reading.values.values())) <= _MOST_SHARED:
            return reading
        mark = _mark(reading.values)
        with self._lock:
            other = self._known.get(mark)
            if query.mark is not None and query.mark != mark and self._known.get(query.mark) is query:
                del self._known[query.mark]
            query.mark = mark
            held = None if other is None or other is query else other.reading
            if not isinstance(held, ObjectReading):
                self._known[mark] = query
        if not isinstance(held, ObjectReading):
            return reading
        if not self._equal(held.values, reading.values):
            # The other answer is older, or only their beginnings are equal: the next one is compared with this one.
            with self._lock:
                self._known[mark] = query
            return reading
        times = held.times if self._equal(held.times or {}, reading.times or {}) else reading.times
        return replace(reading, values=held.values, times=times)

    def _equal(self, one: Mapping[str, Mapping[str, float]], other: Mapping[str, Mapping[str, float]]) -> bool:
        if one is other:
            return True
        if one.keys() != other.keys():
            return False
        for namespace, values in one.items():
            found = other[namespace]
            if len(found) != len(values):
                return False
            for part in self._pace.slices(values.items(), _A_SLICE):
                if any(found.get(name) != value for name, value in part):
                    return False
        return True


def _mark(values: Mapping[str, Mapping[str, float]]) -> int:
    """Return a number that is equal for equal values and rarely for others; only the first few values count."""
    return hash(
        tuple(
            (namespace, len(found), *islice(found.items(), _LOOKED_AT))
            for namespace, found in islice(values.items(), 4)
        )
    )
