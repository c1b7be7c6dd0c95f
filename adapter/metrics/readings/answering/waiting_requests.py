"""Limits how many requests wait at once, so that an unresponsive source leaves places for requests to other sources.

A request that waits holds a thread of the server, so all together have a limit. While there is one Prometheus, the
places are given to whoever comes first. While there are several, a part of the places is reserved for each of them, and
a part for requests that wait for something else: lists of objects, and look-ups of series.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.readings.readings_settings import ReadingSettings

NO_PROMETHEUS: Final = "none"
"""The source for requests that wait for something other than the answer to a query."""

Awaited: TypeAlias = "Backend | str | None"
"""The source for which a request waits: a backend, None for the Prometheus of the flags, or `NO_PROMETHEUS`."""


class WaitingLimits(NamedTuple):
    """How many requests may wait for one source at once."""

    kept: int
    """How many always find a place, however many requests wait for other sources."""
    most: int
    """How many find a place while no request waits for another source."""
    most_per_namespace: int


def limits_of(sources: int, settings: ReadingSettings) -> WaitingLimits:
    """Return the limits for each source, given the number of Prometheus servers."""
    most, of_namespace = settings.max_waiting_requests, settings.max_waiting_requests_per_namespace
    if sources == 1:
        return WaitingLimits(0, most, of_namespace)
    others = sources  # The other servers, and the source for everything else.
    kept = max(1, most // (sources + 2))
    own = max(kept, most - kept * others)
    return WaitingLimits(kept, own, max(1, of_namespace * own // most))


class WaitingRequests:
    """The requests that wait. Thread-safe."""

    def __init__(self, settings: ReadingSettings, sources: Callable[[], int]) -> None:
        """Start without waiting requests; `sources` returns the number of Prometheus servers in use."""
        self._settings = settings
        self._sources = sources
        self._lock = threading.Lock()
        self._waiting: Counter[Awaited] = Counter()
        self._of_namespaces: Counter[tuple[Awaited, str | None]] = Counter()

    def limits(self) -> WaitingLimits:
        """Return how many requests may wait for each source now."""
        return limits_of(self._sources(), self._settings)

    def total(self) -> int:
        """Return how many requests wait."""
        with self._lock:
            return self._waiting.total()

    def has_joined(self, awaited: Awaited, namespace: str | None) -> bool:
        """Return whether one more request of the namespace may wait; it is counted from then on, until it leaves."""
        sources = self._sources()
        limits = limits_of(sources, self._settings)
        with self._lock:
            free = self._settings.max_waiting_requests - self._waiting.total()
            own = self._waiting[awaited]
            if free <= 0 or self._of_namespaces[awaited, namespace] >= limits.most_per_namespace:
                return False
            if own >= limits.kept and free <= self._kept_for_others(awaited, limits.kept, sources):
                return False
            self._waiting[awaited] += 1
            self._of_namespaces[awaited, namespace] += 1
            return True

    def leave(self, awaited: Awaited, namespace: str | None) -> None:
        """Free the place of a request that has waited."""
        with self._lock:
            # A difference of counters drops what is zero: namespaces and backends that no longer exist must not pile
            # up.
            self._waiting = self._waiting - Counter((awaited,))
            self._of_namespaces = self._of_namespaces - Counter(((awaited, namespace),))

    def _kept_for_others(self, awaited: Awaited, kept: int, sources: int) -> int:
        """Return how many free places are reserved for other sources."""
        taken = sum(min(count, kept) for other, count in self._waiting.items() if other != awaited)
        return max(0, kept * sources - taken)
