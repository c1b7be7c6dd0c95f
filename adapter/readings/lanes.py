"""How many queries run at once: those that take long have lanes of their own, so they hold up nobody but each other.

Without that one rule whose queries run into the deadline, asked for by thirty autoscalers, would keep all lanes busy,
and the answers of every other rule would grow old.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from adapter.readings.schedule import Schedule

if TYPE_CHECKING:
    from adapter.readings.queries import Query
    from adapter.readings.settings import ReadingSettings


class Lane(Enum):
    """What is known of how long a query takes."""

    FIRST = "first"
    """Nothing: it has not been asked yet, and somebody may be waiting for it."""
    QUICK = "quick"
    SLOW = "slow"


class Lanes:
    """Queries that are due, and those that run. Not thread-safe: its owner locks."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._slow_seconds = settings.slow_query_seconds
        self._due: dict[Lane, Schedule[Query]] = {lane: Schedule() for lane in Lane}
        self._running: Counter[Lane] = Counter()
        self._most = {
            Lane.FIRST: settings.max_concurrent_first_queries,
            Lane.QUICK: settings.max_concurrent_refreshes,
            Lane.SLOW: settings.max_concurrent_slow_queries,
        }

    @property
    def running(self) -> int:
        """How many queries run."""
        return self._running.total()

    def set(self, query: Query, due: float) -> None:
        """Make a query that does not run due at that time."""
        self._due[query.lane].set(query, due)

    def hasten(self, query: Query, due: float) -> None:
        """Make a query that waits due at that time if it would be later."""
        self._due[query.lane].hasten(query, due)

    def discard(self, query: Query) -> None:
        """Forget when the query is due."""
        self._due[query.lane].discard(query)

    def begin(self, now: float) -> list[Query]:
        """Return the queries to run now: those that are due, as many as each lane may run."""
        begun: list[Query] = []
        for lane, due in self._due.items():
            queries = due.pop_due(now, self._most[lane] - self._running[lane])
            self._running[lane] += len(queries)
            begun += queries
        for query in begun:
            query.started_at = now
        return begun

    def end(self, query: Query, now: float) -> None:
        """Take a query out that has run, and tell its lane from the time that it took."""
        self._running[query.lane] -= 1
        query.lane = Lane.SLOW if now - query.started_at >= self._slow_seconds else Lane.QUICK

    def next_due(self) -> float | None:
        """Return when the next query is due that may run; None where there is none."""
        due = (self._due[lane].next_due() for lane in Lane if self._running[lane] < self._most[lane])
        return min((moment for moment in due if moment is not None), default=None)
