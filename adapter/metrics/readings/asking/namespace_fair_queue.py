"""Orders waiting queries by what their namespaces have spent, so that the namespace that spends the most waits longest.

Namespaces pay for query time. A namespace pays for its own queries. For a query that serves several namespaces, the one
that has spent the least pays, so that no namespace waits longer for a query because others share it. Spent time halves
each minute, so the queries of an hour ago no longer matter.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from adapter.foundation.time.due_queue import DueQueue

Payer: TypeAlias = "str | None"
"""A namespace; None for objects that are in none."""

HALF_LIFE_SECONDS = 60.0
_LARGEST_UNIT = 2.0**40
_MOST_HALVINGS = 100
"""Limit on the halvings of one charge: large enough that nothing is left, and too small to overflow a float."""
_FORGOTTEN_SECONDS = 1e-3
_MOST_COMPARED = 1000
"""Limit on the payers of one query that are compared."""


class QueryTimes:
    """Query time of each payer in seconds, weighted by its age. Not thread-safe: the owner must lock."""

    def __init__(self) -> None:
        self._spent: dict[Payer, float] = {}
        self._since = 0.0
        # Instead of reducing the weight of earlier seconds, later ones weigh more, so the order of payers only changes
        # when they pay.
        self._unit = 1.0
        self.units = 0
        """How many times the unit of ranks has changed; ranks from before a change cannot be compared with later ones.
        """

    def charge(self, payer: Payer, seconds: float, now: float) -> None:
        """Add seconds to the time of a payer; negative seconds are refunded."""
        self._unit *= 2.0 ** min(max(0.0, now - self._since) / HALF_LIFE_SECONDS, _MOST_HALVINGS)
        self._since = max(self._since, now)
        self._spent[payer] = max(0.0, self._spent.get(payer, 0.0) + seconds * self._unit)
        if self._unit > _LARGEST_UNIT:
            spent = ((one, value / self._unit) for one, value in self._spent.items())
            self._spent = {one: seconds for one, seconds in spent if seconds >= _FORGOTTEN_SECONDS}
            self._unit = 1.0
            self.units += 1

    def rank(self, payer: Payer) -> float:
        """Return the sort key of a payer: the one with the least time comes first."""
        return self._spent.get(payer, 0.0)

    def seconds(self, payer: Payer) -> float:
        """Return how many seconds a payer has spent, as of the last charge."""
        return self.rank(payer) / self._unit

    def cheapest(self, payers: Iterable[Payer]) -> Payer:
        """Return the payer that has spent the least; None if there are no payers."""
        best, least = None, float("inf")
        for payer in itertools.islice(payers, _MOST_COMPARED):
            rank = self.rank(payer)
            if rank < least:
                best, least = payer, rank
                if not rank:
                    break
        return best


K = TypeVar("K")


class FairQueue(Generic[K]):
    """A queue: payers are ordered by what they have spent, their items by the time at which they were due.

    Not thread-safe: its owner must lock.
    """

    def __init__(self, query_times: QueryTimes) -> None:
        self._query_times = query_times
        self._waiting: dict[Payer, DueQueue[K]] = {}
        self._payers: dict[K, Payer] = {}
        self._turns: list[tuple[float, int, Payer]] = []
        """Heap of payers; of each payer, only the entry with the rank in `_entered` is valid."""
        self._entered: dict[Payer, float] = {}
        self._units = query_times.units
        """The unit of the ranks in the heap."""
        self._order = itertools.count()

    def put(self, key: K, payer: Payer, due: float) -> None:
        """Add a key to the queue; a key that is already waiting moves to this payer."""
        self.discard(key)
        self._payers[key] = payer
        waiting = self._waiting.get(payer)
        if waiting is None:
            waiting = self._waiting[payer] = DueQueue()
            self._enter(payer)
        waiting.set(key, due)

    def discard(self, key: K) -> None:
        """Forget the key."""
        if key in self._payers:
            payer = self._payers.pop(key)
            self._waiting[payer].discard(key)
            self._tidy(payer)

    def reorder(self, payer: Payer) -> None:
        """Update the order after a payer got seconds back; if it spent more, `pop` notices that itself."""
        if payer in self._waiting and self._query_times.rank(payer) < self._entered.get(payer, float("inf")):
            self._enter(payer)

    def pop(self, admits: Callable[[Payer, K], bool]) -> K | None:
        """Remove and return the next admitted key, which is one of the payer that has spent the least."""
        if self._units != self._query_times.units:
            self._enter_all()
        passed: list[Payer] = []
        found: K | None = None
        while self._turns and found is None:
            rank, _, payer = heapq.heappop(self._turns)
            if self._entered.get(payer) != rank:
                continue
            if rank < self._query_times.rank(payer):
                self._enter(payer)
                continue
            key = self._waiting[payer].first()
            passed.append(payer)
            found = key if key is not None and admits(payer, key) else None
        for payer in passed:
            self._enter(payer)
        if found is not None:
            self.discard(found)
        return found

    def __contains__(self, key: K) -> bool:
        return key in self._payers

    def __len__(self) -> int:
        return len(self._payers)

    def _enter(self, payer: Payer) -> None:
        rank = self._entered[payer] = self._query_times.rank(payer)
        heapq.heappush(self._turns, (rank, next(self._order), payer))

    def _enter_all(self) -> None:
        """Enter all payers again after the unit of their ranks has changed."""
        self._units = self._query_times.units
        self._turns.clear()
        for payer in self._waiting:
            self._enter(payer)

    def _tidy(self, payer: Payer) -> None:
        if not len(self._waiting[payer]):
            del self._waiting[payer], self._entered[payer]
