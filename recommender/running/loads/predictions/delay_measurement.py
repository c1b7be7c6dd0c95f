"""Measures how much time passes between a change of the load and a decision that knows it."""

from __future__ import annotations

import statistics
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.reach import LOOK_BACK_SECONDS
from recommender.decisions.loads.control_delays import ControlDelays, Delay, DelaySource, delay_of
from recommender.kinds.predictive.policy.sizing import longest_interval_seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from recommender.running.loads.load_needs import LoadNeed

SCRAPE_SECONDS: Final = 15.0
"""The longest delay that is assumed before the delay has been measured."""
_SCRAPE_POLLS: Final = 1.5
"""Assumed delay in poll intervals: a poll interval below ten seconds suggests that samples arrive more often."""
_MEASUREMENTS: Final = 100
_TENTH: Final = 10
_LONGEST_SECONDS: Final = 600.0
"""A longer time between two changes of the load is a pause."""


@dataclass(slots=True)
class _Seen:
    """The measurements of one load."""

    polled: float | None = None
    total: float | None = None
    changed: float | None = None
    """When the load last changed; None before the first change."""
    polls: deque[float] = field(default_factory=lambda: deque(maxlen=_MEASUREMENTS))
    changes: deque[float] = field(default_factory=lambda: deque(maxlen=_MEASUREMENTS))
    ages: deque[float] = field(default_factory=lambda: deque(maxlen=_MEASUREMENTS))

    def begin_again(self) -> None:
        """Forget the last poll and the last change: the time from them to the next ones is no measurement.

        Earlier measurements stay.
        """
        self.polled = self.total = self.changed = None


class DelayMeter:
    """The delays of each recommendation. Thread-safe.

    A load changes when it is scraped, so the time between two changes shows how old a sample becomes. A load that is
    scraped from several instances at different times changes more often, and its samples are accordingly younger on
    average. A load that stays the same for some scrapes, as small loads do, says nothing about their interval: times
    that are much longer than the short ones are left out.

    Samples that arrive late, by remote write or from a slow exporter, are even older when they are read, and so is the
    value of a query with an `offset`. The larger of the two delays counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}

    def take_loads(
        self, need: LoadNeed, total: float, time: float, ages_seconds: Collection[float] = ()
    ) -> ControlDelays:
        """Take the sum of the loads of the poll at `time`; return the delays that are known by now.

        `ages_seconds` has the age of the data of each load. An age does not count if the data are too old to be used,
        or if the age is at least the look-back of Prometheus, which is a bound and not a measurement.
        """
        with self._lock:
            seen = self._seen.setdefault(need.name, _Seen())
            longest = longest_interval_seconds(need.poll_interval_seconds)
            if seen.polled is not None and time - seen.polled > longest:
                seen.begin_again()
            if seen.polled is not None and time > seen.polled:
                seen.polls.append(time - seen.polled)
            if seen.total is not None and total != seen.total:
                if seen.changed is not None and 0 < time - seen.changed <= _LONGEST_SECONDS:
                    seen.changes.append(time - seen.changed)
                seen.changed = time
            limit = min(need.stale_after_seconds, LOOK_BACK_SECONDS - 1)
            if ages := [age for age in ages_seconds if 0 <= age <= limit]:
                seen.ages.append(statistics.median(ages))
            seen.polled, seen.total = time, total
            return _delays(need, seen)

    def note_unanswered(self, need: LoadNeed) -> None:
        """Note a poll without loads: the time from the last one with loads to the next one says nothing."""
        with self._lock:
            if need.name in self._seen:
                self._seen[need.name].begin_again()

    def delays(self, need: LoadNeed) -> ControlDelays:
        """Return the delays that are known by now; without measurements, the assumed ones."""
        with self._lock:
            return _delays(need, self._seen.get(need.name, _Seen()))

    def keep(self, names: set[str]) -> None:
        """Forget the measurements of all but these recommendations."""
        with self._lock:
            self._seen = {name: each for name, each in self._seen.items() if name in names}


def _delays(need: LoadNeed, seen: _Seen) -> ControlDelays:
    assumed_seconds = min(SCRAPE_SECONDS, _SCRAPE_POLLS * need.poll_interval_seconds)
    between = delay_of(_without_pauses(sorted(seen.changes)), assumed_seconds)
    return ControlDelays(
        scrape=max(between, delay_of(seen.ages, 0.0), key=lambda delay: delay.seconds),
        refresh=delay_of(seen.polls, need.poll_interval_seconds),
        hpa_sync=Delay(need.settings.hpa_sync_seconds if need.is_published else 0.0, DelaySource.ASSUMED),
    )


def _without_pauses(ascending: Sequence[float]) -> Sequence[float]:
    """Return the times between changes that are at most twice as long as their first decile."""
    if not ascending:
        return ()
    longest = 2 * ascending[len(ascending) // _TENTH]
    return [seconds for seconds in ascending if seconds <= longest]
