"""Decides which of the due queries run, and how many at once, so that no namespace delays another.

Slow queries have a lane of their own, so they delay only each other. Without it, a single rule whose queries run into
the deadline, requested by thirty autoscalers, would keep all places busy, and the answers of every other rule would
grow old. Within a lane, the namespace whose queries recently took the least time comes first (`namespace_fair_queue`).
One place of each lane is reserved for a namespace that runs nothing there, and for an answer that is near its maximum
age.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from adapter.foundation.time.due_queue import DueQueue
from adapter.metrics.readings.asking.namespace_fair_queue import FairQueue, Payer, QueryTimes
from adapter.metrics.readings.asking.queries import Lane, Query
from adapter.metrics.rulebook.model import PlanKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.readings.readings_settings import ReadingSettings

_KEPT = 1
_NEAR_RATIO = 0.5
"""Share of the maximum age from which an answer counts as nearly too old."""
_QUIET_RATIO = 0.25
"""Share of all places: while no more are in use, a slow query may run again at once."""
_FIRST_SECONDS = 0.1
"""Assumed seconds of a query that has not run yet."""
_MOST_AT_ONCE = 300
"""Limit on the due queries that one call of `begin` adds to a lane; the rest follow with the next call."""


class Lanes:
    """Queries that are due, and those that run. Not thread-safe: its owner holds a lock."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._slow_seconds = settings.slow_query_seconds
        self._near_seconds = _NEAR_RATIO * settings.max_answer_age_seconds
        self._query_times = QueryTimes()
        self._due: dict[Lane, DueQueue[Query]] = {lane: DueQueue() for lane in Lane}
        self._waiting: dict[Lane, FairQueue[Query]] = {lane: FairQueue(self._query_times) for lane in Lane}
        self._running: dict[Lane, Counter[Payer]] = {lane: Counter() for lane in Lane}
        self._paying: dict[Query, tuple[Payer, float]] = {}
        """Running queries with their payer and the seconds that are charged already."""
        self._most = {
            Lane.FIRST: settings.max_concurrent_first_queries,
            Lane.QUICK: settings.max_concurrent_refreshes,
            Lane.SLOW: settings.max_concurrent_slow_queries,
        }

    @property
    def running(self) -> int:
        """How many queries run."""
        return len(self._paying)

    @property
    def quiet(self) -> bool:
        """Whether at most a quarter of all places is in use."""
        return self.running <= _QUIET_RATIO * sum(self._most.values())

    def set(self, query: Query, due: float) -> None:
        """Set the time at which a query that is not running is due."""
        self._waiting[query.lane].discard(query)
        self._due[query.lane].set(query, due)

    def hasten(self, query: Query, due: float) -> None:
        """Let a waiting query be due at `due` if it is due later."""
        self._due[query.lane].hasten(query, due)

    def reassign(self, query: Query) -> None:
        """Recompute the payer of a waiting query after a new namespace asked for it: it may be cheaper now."""
        waiting = self._waiting[query.lane]
        if query.kind is PlanKind.WIDE and query in waiting:
            waiting.put(query, self._payer_of(query), query.started_at)

    def runs(self, query: Query) -> bool:
        """Return whether a query runs."""
        return query in self._paying

    def discard(self, query: Query) -> None:
        """Forget when the query is due."""
        self._waiting[query.lane].discard(query)
        self._due[query.lane].discard(query)

    def begin(self, now: float) -> list[Query]:
        """Return the queries to run now: as many of the due ones as each lane may run."""
        begun: list[Query] = []
        for lane, due in self._due.items():
            waiting = self._waiting[lane]
            for query in due.pop_due(now, _MOST_AT_ONCE):
                waiting.put(query, self._payer_of(query), query.started_at)
            while (chosen := self._next(lane, now)) is not None:
                self._start(chosen, lane, now)
                begun.append(chosen)
        return begun

    def end(self, query: Query, now: float) -> None:
        """Remove a query that has run; its duration decides its lane and its cost."""
        lane, (payer, paid) = query.lane, self._paying.pop(query)
        running = self._running[lane]
        running[payer] -= 1
        if not running[payer]:
            del running[payer]
        query.seconds = now - query.started_at
        self._query_times.charge(payer, query.seconds - paid, now)
        for waiting in self._waiting.values():
            waiting.reorder(payer)
        query.lane = Lane.SLOW if query.seconds >= self._slow_seconds else Lane.QUICK

    def next_due(self) -> float | None:
        """Return when the next query that may run is due; None if there is none."""
        free = (lane for lane in Lane if self._running[lane].total() < self._most[lane] + _KEPT)
        due = (self._due[lane].next_due() for lane in free)
        return min((moment for moment in due if moment is not None), default=None)

    def _next(self, lane: Lane, now: float) -> Query | None:
        running, most, waiting = self._running[lane], self._most[lane], self._waiting[lane]
        taken = running.total()
        if taken < most:
            return waiting.pop(lambda _payer, _query: True)
        if taken >= most + _KEPT:
            return None
        return waiting.pop(
            lambda payer, query: (
                not running[payer] or (2 * running[payer] <= most and self._is_near_its_age(query, now))
            )
        )

    def _start(self, query: Query, lane: Lane, now: float) -> None:
        payer = self._payer_of(query)
        paid = _FIRST_SECONDS if query.seconds is None else query.seconds
        self._query_times.charge(payer, paid, now)
        self._paying[query] = payer, paid
        self._running[lane][payer] += 1
        query.started_at = now

    def _is_near_its_age(self, query: Query, now: float) -> bool:
        reading = query.reading
        return reading is not None and now - reading.evaluated.monotonic > self._near_seconds

    def _payer_of(self, query: Query) -> Payer:
        if query.kind is not PlanKind.WIDE and query.key.namespace is not None:
            return query.key.namespace
        return self._query_times.cheapest(query.requesters())


class BackendLanes:
    """The lanes of each Prometheus, so that queries to a slow one take no places from queries to another.

    Not thread-safe: its owner holds a lock.
    """

    def __init__(self, settings: ReadingSettings) -> None:
        self._settings = settings
        self._lanes: dict[Backend | None, Lanes] = {}

    @property
    def running(self) -> int:
        """How many queries run."""
        return sum(lanes.running for lanes in self._lanes.values())

    def of(self, query: Query) -> Lanes:
        """Return the lanes of the Prometheus that a query is sent to."""
        backend = query.key.backend
        lanes = self._lanes.get(backend)
        if lanes is None:
            lanes = self._lanes[backend] = Lanes(self._settings)
        return lanes

    def begin(self, now: float) -> list[Query]:
        """Return those of the due queries that run now."""
        return [query for lanes in self._lanes.values() for query in lanes.begin(now)]

    def next_due(self) -> float | None:
        """Return when the next query that may run is due; None if there is none."""
        due = (lanes.next_due() for lanes in self._lanes.values())
        return min((moment for moment in due if moment is not None), default=None)

    def keep(self, backends: Collection[Backend | None]) -> None:
        """Forget the lanes of other backends, unless queries to them still run."""
        for backend, lanes in list(self._lanes.items()):
            if backend is not None and backend not in backends and not lanes.running:
                del self._lanes[backend]
