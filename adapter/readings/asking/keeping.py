"""Whether a new reading may be held, and which others go for it: `Holdings` decides, this carries it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.readings.asking.holdings import Holdings, parcel_of
from adapter.readings.errors import TooMuchDemandError
from adapter.readings.failure import Failure
from adapter.rulebook.model import PlanKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.readings.asking.changes import Change
    from adapter.readings.asking.lanes import Lanes
    from adapter.readings.asking.queries import Query, Reading
    from adapter.readings.settings import ReadingSettings

TOO_MUCH_SECONDS = 30.0
"""Shortest time until a query whose answer was too large is sent again."""


class Keeping:
    """Takes readings in. Not thread-safe: its owner holds a lock."""

    def __init__(self, settings: ReadingSettings, lanes: Lanes) -> None:
        self.holdings = Holdings(settings.max_values, settings.max_values_per_namespace)
        self._lanes = lanes

    def take_in(self, change: Change, query: Query, reading: Reading, now: float) -> Reading | Failure:
        """Enter what a query's new reading holds and return it; a Failure where that would be too much."""
        owner, shared = owner_of(query)
        parcel = parcel_of(reading)
        verdict = self.holdings.judge(query, parcel, owner, shared=shared)
        if verdict.refusal is not None:
            change.gone.append(reading)
            return Failure(TooMuchDemandError, verdict.refusal)
        self._shed(change, verdict.shed, now)
        self.holdings.hold(query, parcel, owner, shared=shared)
        return reading

    def _shed(self, change: Change, queries: Iterable[Query], now: float) -> None:
        for query in queries:
            self.holdings.release(query)
            # Set before the reading goes, so that a request that finds none also finds the reason.
            query.failure = Failure(TooMuchDemandError, self.holdings.beyond_all())
            query.failures += 1
            if query.reading is not None:
                change.gone.append(query.reading)
                query.reading = None
            if not self._lanes.runs(query):
                self._lanes.set(query, now + TOO_MUCH_SECONDS)


def owner_of(query: Query) -> tuple[str | None, bool]:
    """Return for which namespace a query's values count, and whether it serves several, so that they count for none."""
    if query.kind is not PlanKind.WIDE and query.key.namespace is not None:
        return query.key.namespace, False
    askers = query.askers()
    first = next(askers, None)
    return first, any(other != first for other in askers)


def is_too_much(failure: Failure) -> bool:
    """Return whether it is not the rule that fails: what is asked for is more than may be held."""
    return failure.error is TooMuchDemandError
