"""Checks that Prometheus's own clock and ours agree, by what it says itself.

The `Date` of an answer (`date_header`) may be that of a gateway. A Prometheus whose clock is an hour ahead stores
samples an hour in the future, so queries with our time return what was scraped an hour ago. If its clock is minutes
behind, a range that ends at our time has no samples in its last minutes, so that a rate is too low, or there is no data
although there is load. Therefore it is asked for its time once a minute, after a query that it has answered.

A check that times out says nothing, and an overloaded server may be wrong, too. So no answer is believed before the
first check has ended otherwise, unless several in a row time out: a server that never states its time stays usable.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.deadlines import Deadline, DeadlinePassedError
from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import read_instant
from adapter.foundation.sources.prometheus.errors import (
    ClockError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.queries.date_header import MOST_CLOCK_DIFFERENCE_SECONDS, refuse_difference
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_QUERY: Final = "vector(time())"
"""Sent without a time, so that the server evaluates it at its own."""
TIME_LIMITS: Final = AnswerLimits(max_bytes=1 << 16, max_samples=1)
_EVERY_SECONDS: Final = 60.0
_SOON_SECONDS: Final = 5.0
"""The time between checks while the server's clock is wrong, or does not show because the server is overloaded."""
_MOST_SOON: Final = 12
"""After so many failures in a row, it is asked as seldom as before: no overload, but a server that never answers."""
_MOST_TIMEOUTS: Final = 3
"""After so many timeouts in a row, a server that has never answered a check is believed."""
_USED_SECONDS: Final = 2 * _EVERY_SECONDS
"""How long the last result is used while another thread asks again."""
_MOST_FIRST_SECONDS: Final = 5.0
"""The longest time of a check without which no answer is believed: giving up early would gain nothing."""
_MOST_SECONDS: Final = 2.0
_SHARE: Final = 0.25
"""The largest share of a query's remaining time that the check may use, unless that time is very short."""
_LEAST_SECONDS: Final = 0.1
_MOST_OFFSET_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class StatedTime:
    """The times that an answer to `TIME_QUERY` states, in Unix seconds by the server's clock."""

    present: float
    """The time that the sample bears."""
    evaluated: float
    """The time for which the query was evaluated.

    VictoriaMetrics evaluates it in the past, by its `latencyOffset`, but gives the sample its current time.
    """


def stated_time(body: bytearray) -> StatedTime:
    """Return the server's times, as the body of its answer to `TIME_QUERY` states them.

    Raises PrometheusError if the answer is another one.
    """
    answer = read_instant(TIME_QUERY, body, evaluated_at=0.0, limits=TIME_LIMITS, pace=UNPACED)
    samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    if len(samples) != 1 or not abs(samples[0].timestamp - samples[0].value) <= _MOST_OFFSET_SECONDS:
        raise UnexpectedAnswerError(TIME_QUERY, "the answer is not a time")
    return StatedTime(samples[0].timestamp, samples[0].value)


@dataclass(frozen=True, slots=True)
class _Known:
    """The result of the checks so far."""

    seconds_ahead: float = 0.0
    """By how much the server's clock was ahead of ours in the last check that showed it; 0 before the first one.

    It is negative if the clock was behind.
    """
    asked_at: float = -math.inf
    """When the last check ended, in monotonic seconds."""
    failures: int = 0
    """How many checks in a row timed out or did not reach the server."""
    is_settled: bool = False
    """Whether any check has ended in another way than by a timeout."""

    @property
    def is_wrong(self) -> bool:
        """Return whether the server's clock is too far ahead or behind."""
        return abs(self.seconds_ahead) > MOST_CLOCK_DIFFERENCE_SECONDS

    @property
    def is_open(self) -> bool:
        """Return whether no answer is believed before another check."""
        return not self.is_settled and self.failures < _MOST_TIMEOUTS

    def is_due(self, now: float) -> bool:
        """Return whether it is time for the next check."""
        is_soon = self.is_wrong or 0 < self.failures < _MOST_SOON
        return now - self.asked_at >= (_SOON_SECONDS if is_soon else _EVERY_SECONDS)


class ServerTime:
    """Compares the server's time with ours, now and then. Thread-safe."""

    def __init__(
        self,
        ask: Callable[[float], float],
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ask` asks for the server's time, and must return within the seconds that it is given.

        It returns Unix seconds or raises PrometheusError. `clock` returns Unix seconds by this machine's clock.
        """
        self._ask = ask
        self._clock = clock
        self._monotonic = monotonic
        self._asking = threading.Lock()
        self._known = _Known()

    def refuse_if_wrong(self, query: str, deadline: Deadline) -> None:
        """Raise ClockError if the server's clock differs too much for an answer to be that of our time.

        So it does while the first checks time out. If it is time to ask, this is done first; `deadline` is that of the
        query, which has been answered. A later check that fails changes nothing. Raises PrometheusTimeoutError if the
        last result is old and another thread's check does not end by then.
        """
        known = self._known
        if known.is_due(self._monotonic()):
            known = self._recent_comparison(known, query, deadline)
        if known.is_open:
            # No timeout: that would mean that the query is too large.
            cause = f"its clock may be wrong, because it did not answer {TIME_QUERY} in time: look at its load"
            raise ClockError(query, cause)
        if known.is_wrong:
            refuse_difference(query, known.seconds_ahead)

    def _recent_comparison(self, known: _Known, query: str, deadline: Deadline) -> _Known:
        is_usable = not known.is_open and self._monotonic() - known.asked_at < _USED_SECONDS
        if not self._asking.acquire(timeout=0.0 if is_usable else _seconds_left(deadline)):
            if is_usable or known.is_open:
                return known
            raise PrometheusTimeoutError(query, f"its clock was not checked within {deadline.seconds:.3g} s")
        try:
            newest = self._known
            if newest.is_due(self._monotonic()):
                newest = self._known = self._compare_clocks(newest, _seconds_left(deadline))
            return newest
        finally:
            self._asking.release()

    def _compare_clocks(self, known: _Known, seconds_left: float) -> _Known:
        ahead, failures, has_timed_out = known.seconds_ahead, 0, False
        try:
            before = self._clock()
            theirs = self._ask(_check_seconds(seconds_left, is_first=known.is_open))
            # It read its clock between the two: a pause of this process is no difference.
            ahead = theirs - min(max(theirs, before), self._clock())
        except PrometheusError as e:
            # A server that cannot be asked is compared by its `Date`; if it was wrong, it counts as wrong meanwhile.
            _forget_frames(e)
            has_timed_out = isinstance(e, PrometheusTimeoutError)
            failures = known.failures + 1 if has_timed_out or isinstance(e, PrometheusUnreachableError) else 0
        return _Known(ahead, self._monotonic(), failures, known.is_settled or not has_timed_out)


def _check_seconds(left: float, *, is_first: bool) -> float:
    """Return how long a check may take if the query, which has been answered, has so many seconds left."""
    if is_first:
        return min(left, _MOST_FIRST_SECONDS)
    return min(left, _MOST_SECONDS, max(_LEAST_SECONDS, _SHARE * left))


def _forget_frames(error: BaseException) -> None:
    """Empty the frames of an error's tracebacks, which would hold the query's answer until a garbage collection."""
    each: BaseException | None = error
    while each is not None:
        traceback.clear_frames(each.__traceback__)
        each = each.__context__


def _seconds_left(deadline: Deadline) -> float:
    try:
        return deadline.remaining()
    except DeadlinePassedError:
        return 0.0
