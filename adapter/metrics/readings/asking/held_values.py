"""Limits the values in memory, by namespace and in total, and decides which readings are dropped beyond the limits.

Each reading counts once, however many clients request it, and equal answers that queries share count once together. The
values of a namespace's own queries count toward its limit; the values of a query that serves several namespaces count
toward no namespace's limit. When a namespace has reached its limit, its new requests are refused, and answers that
would exceed the limit are not stored. When all together have reached the total limit, the namespace that holds the most
gives way, its newest queries first. No answer is ever truncated: a query has its whole answer, or an error that says
why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.metrics.readings.errors import TooMuchDemandError
from adapter.metrics.readings.samples.object_reading import ObjectReading

if TYPE_CHECKING:
    from adapter.metrics.readings.asking.namespace_fair_queue import Payer
    from adapter.metrics.readings.asking.queries import Query, Reading

VALUES_OF_A_ROW = 8
"""How many values of objects a row of an external metric counts as, since it has labels of its own."""
_BYTES_OF_A_VALUE = 70
"""Memory that a value takes: long labels of rows count as the values that take as much."""


@dataclass(frozen=True, slots=True)
class ReadingSize:
    """The size and identity of a reading's values."""

    key: int
    """A key that is equal for readings that share their values."""
    values: int


@dataclass(frozen=True, slots=True)
class HoldingVerdict:
    """Whether an answer may be kept in memory."""

    refusal: str | None = None
    """Why the answer must not be kept."""
    shed: tuple[Query, ...] = ()
    """Queries of the namespace with the most values, whose readings must be dropped for the answer."""


@dataclass(slots=True)
class _Held:
    owner: Payer
    values: int
    holders: int = 0


_SHARED = "\0shared"
"""The owner of queries that serve several namespaces; no namespace can have this name."""


def size_of_reading(reading: Reading) -> ReadingSize:
    """Return the size of a reading: values and faults of objects, times of samples, rows with their labels."""
    if isinstance(reading, ObjectReading):
        parts = (*reading.values.values(), *reading.faults.values(), *(reading.times or {}).values())
        return ReadingSize(id(reading.values), sum(map(len, parts)))
    rows = sum(map(len, reading.pieces()))
    return ReadingSize(id(reading), VALUES_OF_A_ROW * rows + reading.long_characters // _BYTES_OF_A_VALUE)


class HeldValues:
    """The values held for all queries. Not thread-safe: its owner must lock."""

    def __init__(self, most: int, most_per_namespace: int) -> None:
        self._most = most
        self._most_per_namespace = most_per_namespace
        self._held: dict[int, _Held] = {}
        self._sizes: dict[Query, ReadingSize] = {}
        self._owned: Counter[Payer] = Counter()
        self.total = 0
        """The number of values held for all queries."""

    def check_room(self, namespace: Payer) -> None:
        """Raise TooMuchDemandError if a namespace has reached its limit of values and may request nothing new.

        The limit also counts as reached if the total limit is reached and no other namespace holds more values.
        """
        if self._owned[namespace] >= self._most_per_namespace:
            raise TooMuchDemandError(self._own_limit_message(namespace))
        if self.total >= self._most and self._owned[namespace] >= self._heaviest()[1]:
            raise TooMuchDemandError(self.beyond_all())

    def judge(self, query: Query, size: ReadingSize, owner: Payer, *, shared: bool) -> HoldingVerdict:
        """Return whether a query may hold values of this size instead of its current ones, and which queries give way.

        `shared` means that the query serves several namespaces; then `owner` is ignored.
        """
        growth = 0 if size.key in self._held else size.values
        freed = self._freed_by(query)
        own = 0 if shared else self._owned[owner] + growth - freed
        if own > self._most_per_namespace and growth > freed:
            return HoldingVerdict(self._own_limit_message(owner))
        excess = self.total + growth - freed - self._most
        if excess <= 0 or growth <= freed:
            return HoldingVerdict()
        heaviest, held = self._heaviest()
        if held <= own or (heaviest == owner and not shared):
            return HoldingVerdict(self.beyond_all())
        shed = self._newest(heaviest, excess)
        return HoldingVerdict(shed=shed) if shed else HoldingVerdict(self.beyond_all())

    def hold(self, query: Query, size: ReadingSize, owner: Payer, *, shared: bool) -> None:
        """Record the values that a query holds from now on, in place of its former ones."""
        held = self._held.get(size.key)
        if held is None:
            held = self._held[size.key] = _Held(_SHARED if shared else owner, size.values)
            self.total += held.values
            self._owned[held.owner] += held.values
        held.holders += 1
        former = self._sizes.get(query)
        # A query that is known already keeps its place in the order: the newest are the first to give way.
        self._sizes[query] = size
        self._let_go(former)

    def release(self, query: Query) -> None:
        """Forget the values of a query."""
        self._let_go(self._sizes.pop(query, None))

    def _let_go(self, size: ReadingSize | None) -> None:
        if size is None:
            return
        held = self._held[size.key]
        held.holders -= 1
        if not held.holders:
            del self._held[size.key]
            self.total -= held.values
            self._owned[held.owner] -= held.values
            if not self._owned[held.owner]:
                del self._owned[held.owner]

    def _freed_by(self, query: Query) -> int:
        size = self._sizes.get(query)
        if size is None:
            return 0
        held = self._held[size.key]
        return held.values if held.holders == 1 else 0

    def _heaviest(self) -> tuple[Payer, int]:
        owned = ((namespace, values) for namespace, values in self._owned.items() if namespace != _SHARED)
        return max(owned, key=lambda pair: pair[1], default=(None, 0))

    def _newest(self, namespace: Payer, excess: int) -> tuple[Query, ...]:
        """Return the newest queries of a namespace that together free `excess` values; none if all free fewer."""
        chosen: list[Query] = []
        for query in reversed(self._sizes):
            if excess <= 0:
                break
            if self._held[self._sizes[query].key].owner == namespace and (freed := self._freed_by(query)):
                chosen.append(query)
                excess -= freed
        return tuple(chosen) if excess <= 0 else ()

    def _own_limit_message(self, namespace: Payer) -> str:
        where = f"namespace {namespace!r}" if namespace else "cluster-scoped objects"
        return (
            f"{where}: the answers to its requests would hold more than {self._most_per_namespace} values "
            "(--max-values-per-namespace): ask with fewer different selectors, or for fewer objects"
        )

    def beyond_all(self) -> str:
        """Return why an answer is not held, or no longer held, when the total limit is reached."""
        return (
            f"the answers to all requests would hold more than {self._most} values (--max-values), and no namespace "
            "holds more than this one: ask with fewer different selectors, or for fewer objects"
        )
