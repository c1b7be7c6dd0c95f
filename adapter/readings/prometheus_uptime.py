"""Whether Prometheus has been there for long enough to know that there is no data.

A Prometheus that was away has a gap where it did not scrape, and looks for minutes as if nothing were there: `rate`
wants two samples, and what has not been scraped since has none. A value that stands for no data (`onNoData`) would
then be served for whatever is busy. So nothing stands in until Prometheus has been steady for all that a query looks
back over, as this process saw it, and as Prometheus says of its own start.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from adapter.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
)
from adapter.sources.prometheus.runtime import Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.timing.clock import Clock

ASK_SECONDS = 2.0
"""When the question for its start is given up."""

_ASKED_AGAIN_SECONDS = 5.0
"""A restart between two queries is seen after so long."""
_ASKED_IN_VAIN_SECONDS = 60.0
_LIVELY_SECONDS = 15.0
"""Who answered another question within this time before a strange answer is there."""

_AWAY = (PrometheusUnreachableError, AuthenticationRefusedError)
_DOUBTFUL = (PrometheusTimeoutError, UnexpectedAnswerError)
"""What a server that hangs gives, or something in its place; and a single bad query gives as well."""


def may_stand_in(steady_seconds: float, look_back_seconds: float, ranges_seconds: float) -> bool:
    """Return whether no data means that there is none: all that the query looks back over was scraped."""
    return steady_seconds >= look_back_seconds + ranges_seconds


def collecting_since(first_answer: float, started: Started | None) -> float:
    """Return since when Prometheus collects, as far as that is known; all by one clock.

    A server that does not tell its start is believed from the first answer that this process had. One that does was
    ready when it took its configuration in, or earlier, where this very process of it has answered before.
    """
    if started is None:
        return first_answer
    return started.configured if started.process > first_answer else min(started.configured, first_answer)


class PrometheusUptime:
    """Since when Prometheus has been there. For any number of threads."""

    def __init__(self, clock: Clock, ask: Callable[[float], Started] | None = None) -> None:
        """`ask` asks the server when it began, within some seconds; raises PrometheusError. None: it cannot tell."""
        self._clock = clock
        self._ask = ask
        self.wanted = False
        """Whether there is a rule that needs to know."""
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._away = False
        self._first: float | None = None
        """When it answered first; this and the next two in monotonic seconds."""
        self._answered = 0.0
        """When it answered last."""
        self._back: float | None = None
        """When it answered first after it had been away."""
        self._process = -math.inf
        """When its process began, in Unix seconds by its own clock."""
        self._started: Started | None = None
        """The same by our monotonic clock."""
        self._due = 0.0

    def answered(self) -> None:
        """Note that Prometheus has answered just now."""
        now = self._clock.monotonic()
        with self._lock:
            self._answered = now
            if self._first is None:
                self._first = now
            if self._away:
                self._away, self._back, self._due = False, now, 0.0

    def failed(self, error: PrometheusError, began: float) -> None:
        """Note how a question ended that has no answer: whoever refuses one is there.

        `began` is when it was asked, in monotonic seconds. Who answered others while one waited in vain is there, too.
        """
        since = began if isinstance(error, PrometheusTimeoutError) else began - _LIVELY_SECONDS
        with self._lock:
            lively = self._first is not None and self._answered > since
            if isinstance(error, _AWAY) or (isinstance(error, _DOUBTFUL) and not lively):
                self._away = True
                return
        if not isinstance(error, _DOUBTFUL):
            self.answered()

    def ask_start(self, seconds: float = ASK_SECONDS) -> None:
        """Ask Prometheus when it began, unless nobody needs to know or that was done just now.

        Takes at most so many seconds, and never fails.
        """
        if self._ask is None or not self.wanted or self._clock.monotonic() < self._due:
            return
        if not self._asking.acquire(blocking=False):
            return
        try:
            started, wait = self._ask(seconds), _ASKED_AGAIN_SECONDS
        except PrometheusError:
            # What it does to queries is noted with them.
            started, wait = None, _ASKED_IN_VAIN_SECONDS
        finally:
            self._asking.release()
        with self._lock:
            now = self._clock.monotonic()
            self._due = now + wait
            # Of several servers behind one address the one that began last counts; its reloads do not.
            if started is not None and started.process > self._process:
                ours = now - self._clock.wall()
                self._process = started.process
                self._started = Started(started.process + ours, started.configured + ours)

    def seconds_at(self, moment: float) -> float:
        """Return for how long Prometheus had been there at a moment (monotonic seconds); 0 where it is away."""
        with self._lock:
            if self._away or self._first is None:
                return 0.0
            since = collecting_since(self._first, self._started)
            return max(0.0, moment - (since if self._back is None else max(since, self._back)))


def always_there(clock: Clock) -> PrometheusUptime:
    """Return the steadiness of a Prometheus that does not tell when it began, to who cannot watch it: infinite."""
    steadiness = PrometheusUptime(clock, lambda _seconds: Started(0.0, -math.inf))
    steadiness.wanted = True
    return steadiness
