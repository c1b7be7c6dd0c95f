"""Computes when the next poll is due."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.running.polls.poll_results import Decided

LEAST_SECONDS_APART: Final = 1.0
"""The minimum time from the decisions of one poll to the next poll, whatever time the decisions request."""
LATER_SECONDS: Final = 0.01
"""The time that is added to requested times: clocks differ by some milliseconds, and a decision that is made too soon
must be repeated."""


def next_decision_at(decided: Iterable[Decided]) -> float:
    """Return when the next decision is due, in seconds since the Unix epoch; infinite if none is requested."""
    asked = (decision.decide_again for each in decided for decision in each.decisions)
    return min((time for time in asked if time is not None), default=math.inf)


def seconds_to_next_poll(interval_left: float, asked_left: float, since_decided: float) -> float:
    """Return the seconds to the end of the interval, or to the requested time if that is earlier.

    `since_decided` is the number of seconds since the last decisions; the next poll is at least `LEAST_SECONDS_APART`
    after them. A requested time can be in the past, or infinite; it can only bring a poll forward.
    """
    return max(min(interval_left, asked_left + LATER_SECONDS), LEAST_SECONDS_APART - since_decided, 0.0)
