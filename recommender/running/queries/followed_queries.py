"""Queries that are sent again and again: a value that has fallen may lack series, and this is looked up.

Only a fall leads to a look-up, so that a load that rises or stays costs Prometheus nothing more. A value that lacks
series for longer than any removed ones are found is looked up less often.
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
_COUNTED_AGAIN_SECONDS: Final = 60.0
"""The time between two look-ups of a query that has lacked series for `_FOUND_SECONDS`."""
_FOUND_SECONDS: Final = 3 * WHOLE_SECONDS
"""For how long a series that was removed, together with its pod for example, may be missing in look-ups: they look this
far back, `WHOLE_SECONDS` earlier with a range of less than ten minutes. Once no series are missing, the wait ends, so
that the next loss is waited for anew: until it has been looked up, a restart of the source would be followed at once.
"""


class QuerySource(Protocol):
    """What answers queries (`QueryValues`)."""

    def value(self, query: str) -> Observed[float] | Unknown:
        """Return the single value of the query at present."""

    def whole_value(
        self, query: str, found: Observed[float], seconds: float, took_seconds: float
    ) -> Observed[float] | None:
        """Return the value, like `found`, if the query has at least the series that it had that many seconds ago.

        `took_seconds` is how long the source took for `found`.
        """


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
    lacking_since: float | None = None
    """Since when each look-up has found that series are missing, by the monotonic clock; None if none are."""
    counted: float = -math.inf
    """When the series were last looked up, by the monotonic clock."""

    def is_due(self, now: float) -> bool:
        """Return whether a fall is looked up now, which is in each poll as long as removed series may be found."""
        since = self.lacking_since
        return since is None or now - since < _FOUND_SECONDS or now - self.counted >= _COUNTED_AGAIN_SECONDS

    def young_seconds(self, now: float) -> float | None:
        """Return for how long this process has followed a source that began young; None once that is long enough."""
        seconds = now - self.first_answer
        return max(_LEAST_SECONDS, seconds) if self.began_young and seconds < WHOLE_SECONDS else None


class FollowedQueries:
    """Answers queries. `value` is for any number of threads, but for one at a time with the same query."""

    def __init__(
        self, source_of: Callable[[AskedQuery], QuerySource], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`source_of` returns the backend of a query. No query is followed until `follow` names it."""
        self._source_of = source_of
        self._clock = clock
        self._queries: frozenset[AskedQuery] = frozenset()
        self._followed: dict[AskedQuery, _Followed] = {}

    def follow(self, queries: Collection[AskedQuery]) -> None:
        """Follow these queries, and no others. This may run at any time."""
        self._queries = frozenset(queries)
        # The list is made in one step, while others are asked.
        for query in list(self._followed):
            if query not in self._queries:
                self._followed.pop(query, None)

    def forget(self) -> None:
        """Forget all values: another process leads, or has led. This may run at any time."""
        # A query that is under way adds its value to the former dictionary.
        self._followed = {}

    def value(self, asked: AskedQuery) -> Observed[float] | Unknown:
        """Return the single value of the query at present.

        It is a QueryAnswer if the query is followed and its series may not be complete.
        """
        source, followed = self._source_of(asked), self._followed
        began = self._clock()
        found = source.value(asked.text)
        if isinstance(found, Unknown) or not math.isfinite(found.value) or asked not in self._queries:
            return found
        now, former = self._clock(), followed.get(asked)
        before = former
        if before is not None and now - before.last_answer > WHOLE_SECONDS:
            # The source of a query that had answers before has only restarted: its first series may be a part.
            before = None
        young_seconds = None if before is None else before.young_seconds(now)
        seconds = WHOLE_SECONDS if young_seconds is None else young_seconds
        if before is not None and found.value >= before.value:
            followed[asked] = replace(before, value=found.value, last_answer=now, lacking_since=None)
            return found if young_seconds is None else QueryAnswer(found.value, found.time, whole_seconds=seconds)
        is_due = before is None or before.is_due(now)
        whole = source.whole_value(asked.text, found, seconds, now - began) if is_due else None
        is_whole = whole is not None
        found = whole or found
        if before is None:
            began_young = former is None and not is_whole
            followed[asked] = _Followed(now, began_young, found.value, now)
        else:
            followed[asked] = _after_fall(before, found.value, now, is_due=is_due, is_whole=is_whole)
        return QueryAnswer(found.value, found.time, whole_seconds=seconds if is_whole else 0.0)


def _after_fall(before: _Followed, value: float, now: float, *, is_due: bool, is_whole: bool) -> _Followed:
    """Return what is known after a smaller value, whose series were looked up if that was due."""
    if is_whole:
        return replace(before, value=value, last_answer=now, lacking_since=None, counted=now)
    since = now if before.lacking_since is None else before.lacking_since
    return replace(before, last_answer=now, lacking_since=since, counted=now if is_due else before.counted)
