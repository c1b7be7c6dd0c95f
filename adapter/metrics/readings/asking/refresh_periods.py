"""Determines how often a metric's query is refreshed: by how often it is requested, by the rule, and within limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.metrics.readings.asking.request_intervals import Arrivals, ArrivalsByPart
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.rulebook.model import Metric, Rule

SHORTEST_PERIOD_SECONDS = 1.0
"""Shortest time between two refreshes of a query."""


class Paces:
    """The period of a query that answers many requests: half of the shortest interval at which one is repeated.

    A request that came once has no interval, so it counts only while no interval is known.
    """

    __slots__ = ("_known", "_most", "_unknown")

    def __init__(self) -> None:
        self._known = self._unknown = self._most = math.inf

    def add(self, metric: Metric, arrivals: Arrivals | ArrivalsByPart, now: float, settings: ReadingSettings) -> None:
        """Add a request that is answered by the query."""
        self._most = min(self._most, most_period(metric, settings))
        if (interval := arrivals.interval(now)) < math.inf:
            self._known = min(self._known, period_of(metric, interval, settings))
        else:
            self._unknown = min(self._unknown, longest_period(metric, settings))

    @property
    def known(self) -> bool:
        """Whether the interval of any request is known."""
        return self._known < math.inf

    @property
    def seconds(self) -> float:
        """The seconds between two refreshes."""
        return min(self._known if self.known else self._unknown, self._most)


def period_for(interval: float, most: float) -> float:
    """Return the seconds between refreshes for a request that is repeated every `interval` seconds.

    It is half of the interval, so that an answer is never older than half of the requester's own period; never more
    than `most`.
    """
    return min(most, max(SHORTEST_PERIOD_SECONDS, interval / 2))


def most_period(metric: Metric, settings: ReadingSettings) -> float:
    """Return the longest time between two refreshes of a metric, in seconds, however rarely it is requested.

    It is a rule's own `refresh`, but never so long that answers, or samples (`maxSampleAge`), grow too old between two
    successful refreshes.
    """
    policy = metric.rule.policy
    most = min(settings.longest_refresh_seconds, policy.refresh_seconds or math.inf)
    if policy.max_sample_age_seconds is not None:
        most = min(most, policy.max_sample_age_seconds / 2)
    return max(SHORTEST_PERIOD_SECONDS, most)


def longest_period(metric: Metric, settings: ReadingSettings) -> float:
    """Return the seconds between refreshes of a metric while no client's interval is known.

    It is the rule's own `refresh`, or else the refresh interval, at most `most_period`.
    """
    own = metric.rule.policy.refresh_seconds or settings.refresh_interval_seconds
    return max(SHORTEST_PERIOD_SECONDS, min(own, most_period(metric, settings)))


def period_of(metric: Metric, interval: float, settings: ReadingSettings) -> float:
    """Return the seconds between refreshes of a metric that is requested every `interval` seconds.

    Frequent requests shorten it, unless the rule sets `refresh`: its author knows what the query costs.
    """
    if metric.rule.policy.refresh_seconds is not None or math.isinf(interval):
        return longest_period(metric, settings)
    return period_for(interval, most_period(metric, settings))


def long_refresh_warnings(rules: Iterable[Rule], settings: ReadingSettings) -> Iterator[str]:
    """Yield a warning for each rule whose `refresh` is so long that answers grow too old between refreshes."""
    longest = settings.longest_refresh_seconds
    for rule in rules:
        wanted = rule.policy.refresh_seconds
        if wanted is not None and wanted > longest:
            yield (
                f"{rule.place}: `refresh` is {wanted:g} s, but answers older than "
                f"{settings.max_answer_age_seconds:g} s are not served (--max-answer-age): it is refreshed "
                f"every {longest:g} s"
            )
