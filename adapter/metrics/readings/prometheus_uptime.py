"""Determines how long Prometheus has been up, which decides whether an empty answer means that there is no data.

A Prometheus that was down has a gap in its samples, and for minutes seems to have no data: `rate` needs two samples,
and targets that have not been scraped since have none. The value for no data (`onNoData`) would then be served for busy
workloads. So that value is not used until Prometheus has been up for the whole time that a query looks back over, as
observed by this process and as reported by Prometheus itself.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.queries.runtime import Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.time.clock import Clock

ASK_SECONDS = 2.0
"""Time-out of the request for the start time of Prometheus."""

_ASKED_AGAIN_SECONDS = 5.0
"""A restart between two queries is noticed after this time."""
_ASKED_IN_VAIN_SECONDS = 60.0
_LIVELY_SECONDS = 15.0
"""A server that answered another request within this time before an odd answer counts as up."""

_UNSEEN_SECONDS = 300.0
"""Time without an answer after which an outage may have gone unnoticed; longer than refreshes and look-ups are apart.
"""

_KNOWN_PROCESSES = 64
"""Limit on the remembered starts; several servers may be behind one address."""

_AWAY = (PrometheusUnreachableError, AuthenticationRefusedError)
_DOUBTFUL = (PrometheusTimeoutError, UnexpectedAnswerError)
"""Errors of a server that hangs, or of something in its place, but also of a single bad query."""


def may_stand_in(steady_seconds: float, look_back_seconds: float, ranges_seconds: float) -> bool:
    """Return whether an empty result means that there is no data: the whole look-back of the query was collected.

    `ranges_seconds` is infinite if it is not known how far back the query looks.
    """
    return math.isfinite(ranges_seconds) and steady_seconds >= look_back_seconds + ranges_seconds


def collecting_since(first_answer: float, started: Started | None) -> float:
    """Return the time since which Prometheus is known to have collected samples; all times are by the same clock.

    If the server does not report its start, this is the time of its first answer to this process. If it does, this is
    the time at which it loaded its configuration, or the first answer if the same server process gave that earlier.
    One that started after the first answer is not new, even if it has no data from before.
    """
    if started is None:
        return first_answer
    if started.process > first_answer:
        return max(started.process, started.configured)
    return min(started.configured, first_answer)


class PrometheusUptime:
    """The time since which Prometheus has been up. Safe for any number of threads."""

    def __init__(self, clock: Clock, ask: Callable[[float], Started] | None = None) -> None:
        """`ask` asks the server when it started, within some seconds, and raises PrometheusError; None if it cannot."""
        self._clock = clock
        self._ask = ask
        self.wanted = False
        """Whether any rule needs the uptime."""
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._away = False
        self._first: float | None = None
        """When it first answered, in monotonic seconds."""
        self._answered = 0.0
        """When it last answered, in monotonic seconds."""
        self._answered_wall = 0.0
        """The same in Unix seconds."""
        self._failed_since = False
        """Whether a request has failed after that, for whatever reason."""
        self._back: float | None = None
        """When it first answered after an outage, in monotonic seconds."""
        self._seen: float | None = None
        """When it first answered after nobody had asked it for long, in monotonic seconds."""
        self._processes: deque[float] = deque(maxlen=_KNOWN_PROCESSES)
        """When its processes started, in Unix seconds by its own clock at that time, which may have been set since."""
        self._started: Started | None = None
        """When it started, by the monotonic clock of this process."""
        self._due = 0.0

    def note_answer(self) -> None:
        """Note that Prometheus has answered just now."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        with self._lock:
            if self._first is None:
                self._first = now
            else:
                self._note_gap(now, wall)
            self._answered, self._answered_wall, self._failed_since = now, wall, False
            if self._away:
                self._away, self._back, self._due = False, now, 0.0

    def note_failure(self, error: PrometheusError, began: float) -> None:
        """Note that a request failed. A server that refuses a query is up.

        So is a server that answered other requests while this one timed out. `began` is when the request was sent, in
        monotonic seconds.
        """
        since = began if isinstance(error, PrometheusTimeoutError) else began - _LIVELY_SECONDS
        with self._lock:
            self._failed_since = True
            lively = self._first is not None and self._answered > since
            if isinstance(error, _AWAY) or (isinstance(error, _DOUBTFUL) and not lively):
                self._away = True
                return
        if not isinstance(error, _DOUBTFUL):
            self.note_answer()

    def last_answer(self) -> float | None:
        """Return when Prometheus last answered, in Unix seconds; None if a request has failed after that."""
        with self._lock:
            return None if self._failed_since or self._first is None else self._answered_wall

    def ask_start(self, seconds: float = ASK_SECONDS) -> None:
        """Ask Prometheus when it started, unless no rule needs it or it was asked a moment ago.

        If another thread asks, its result is waited for: without it, a restart would not show. Takes about that many
        seconds at most, and never fails.
        """
        if self._ask is None or not self._is_due() or not self._asking.acquire(timeout=seconds):
            return
        try:
            if self._is_due():
                self._ask_now(self._ask, seconds)
        finally:
            self._asking.release()

    def _is_due(self) -> bool:
        return self.wanted and self._clock.monotonic() >= self._due

    def _ask_now(self, ask: Callable[[float], Started], seconds: float) -> None:
        try:
            started, wait = ask(seconds), _ASKED_AGAIN_SECONDS
        except PrometheusError:
            # Failures that matter show in the queries themselves.
            started, wait = None, _ASKED_IN_VAIN_SECONDS
        with self._lock:
            now = self._clock.monotonic()
            self._due = now + wait
            # The reloads of a known process do not count.
            if started is not None and started.process not in self._processes:
                ours = now - self._clock.wall()
                # One that follows another is not new, even if it has no data from before: it may have lost that.
                is_first = not self._processes
                configured = started.configured if is_first else max(started.process, started.configured)
                self._processes.append(started.process)
                # Nothing starts in the future; then its clock is, or was, ahead.
                found = Started(min(now, started.process + ours), min(now, configured + ours))
                # Of several servers behind one address, the one that started last counts.
                if self._started is None or found.process > self._started.process:
                    self._started = found

    def seconds_at(self, moment: float) -> float:
        """Return for how many seconds Prometheus had been up at a moment (monotonic seconds); 0 while it is down."""
        with self._lock:
            if self._away or self._first is None:
                return 0.0
            times = [collecting_since(self._first, self._started), self._back]
            if self._started is None:
                times.append(self._seen)
            return max(0.0, moment - max(time for time in times if time is not None))

    def _note_gap(self, now: float, wall: float) -> None:
        """Note that nothing is known of a time before this answer; the caller holds the lock."""
        awake = now - self._answered
        if wall - self._answered_wall - awake > _UNSEEN_SECONDS:
            # This machine slept, and so did Prometheus if it runs there, without a new start.
            self._back = now
        elif awake > _UNSEEN_SECONDS:
            self._seen = now


def always_there(clock: Clock) -> PrometheusUptime:
    """Return an infinite uptime, for commands that cannot observe Prometheus for long enough."""
    uptime = PrometheusUptime(clock, lambda _seconds: Started(0.0, -math.inf))
    uptime.wanted = True
    return uptime
