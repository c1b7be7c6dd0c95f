"""Queries that are sent again and again: a value that has fallen may lack series, and this is looked up.

Only a fall leads to a look-up, so that a load that rises or stays costs Prometheus nothing more.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.inputs import WHOLE_SECONDS, QueryAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from recommender.configuration.needs import AskedQuery

_LEAST_SECONDS: Final = 1.0


class QuerySource(Protocol):
    """What answers queries (`QueryValues`)."""

    def value(self, query: str) -> Observed[float] | Unknown:
        """Return the single value of the query at present."""

    def has_all_series(self, query: str, seconds: float) -> bool:
        """Return whether the query has at least the series that it had that many seconds ago, when it had some."""


@dataclass(frozen=True, slots=True)
class _Followed:
    first_answer: float
    """When this process had the first answer, by the monotonic clock."""
    began_young: bool
    """Whether the source had no series of the query `WHOLE_SECONDS` before the first answer, or more of them."""
    value: float
    """The last value that was no fall, or that had all series."""
    last_answer: float
    """When this process had the last answer, by the monotonic clock."""

    def young_seconds(self, now: float) -> float | None:
        """Return for how long this process has followed a source that began young; None once that is long enough."""
        seconds = now - self.first_answer
        return max(_LEAST_SECONDS, seconds) if self.began_young and seconds < WHOLE_SECONDS else None


class FollowedQueries:
    """Answers queries. `value` is for any number of threads, but for one at a time with the same query."""

    def __init__(
        self, source_of: Callable[[AskedQuery], QuerySource], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`source_of` returns the backend of a query."""
        self._source_of = source_of
        self._clock = clock
        self._followed: dict[AskedQuery, _Followed] = {}

    def keep(self, queries: Collection[AskedQuery]) -> None:
        """Forget all other queries. This may run at any time: the list is made in one step, while others are asked."""
        for query in list(self._followed):
            if query not in queries:
                self._followed.pop(query, None)

    def value(self, asked: AskedQuery) -> Observed[float] | Unknown:
        """Return the single value of the query at present, as a QueryAnswer if its series may not be complete."""
        source = self._source_of(asked)
        found = source.value(asked.text)
        if isinstance(found, Unknown) or not math.isfinite(found.value):
            return found
        now, former = self._clock(), self._followed.get(asked)
        before = former
        if before is not None and now - before.last_answer > WHOLE_SECONDS:
            # Another process may have led meanwhile, and have followed other values.
            before = None
        young_seconds = None if before is None else before.young_seconds(now)
        seconds = WHOLE_SECONDS if young_seconds is None else young_seconds
        has_fallen = before is None or found.value < before.value
        is_whole = not has_fallen or source.has_all_series(asked.text, seconds)
        if before is None:
            # The source of a query that had answers before has only restarted: its first series may be a part.
            self._followed[asked] = _Followed(now, former is None and not is_whole, found.value, now)
        else:
            self._followed[asked] = replace(before, value=found.value if is_whole else before.value, last_answer=now)
        if not has_fallen and young_seconds is None:
            return found
        return QueryAnswer(found.value, found.time, whole_seconds=seconds if is_whole else 0.0)
