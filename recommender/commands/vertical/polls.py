"""Runs polls, and reports their results to the log, `/last-poll`, metrics and health checks."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.garbage_collector import settle_collector
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.web.metric_text import family, label, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.commands.one_process.process import OneProcess

_log = logging.getLogger(__name__)

_DEADLINE_SECONDS: Final = 120.0
_POLL: Final = "poll"


class PollError(Exception):
    """A poll failed to make a change that was due; the message says why and what to do."""

    def __init__(self, outcome: str, reason: str) -> None:
        """`outcome` is the value of the label `outcome` in the metrics."""
        super().__init__(reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class CounterFamily:
    """The name and the help text of the counter of polls, whose label is `outcome`."""

    name: str
    about: str


class Polls:
    """Runs polls one after another. Only one thread may call `run`; any thread may call the other methods."""

    def __init__(
        self, poll: Callable[[], str], counter: CounterFamily, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`poll` returns its outcome, which becomes the value of a label, or raises PollError."""
        self._poll = poll
        self._counter = counter
        self._clock = clock
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._failure = ""
        self._active = clock()
        self._states = StateLog(_log)

    def run(self) -> None:
        """Poll once."""
        try:
            outcome, failure = self._poll(), ""
            self._states.recovered(_POLL, "polls succeed again")
        except PollError as error:
            outcome, failure = error.outcome, str(error)
            self._states.failed(_POLL, f"nothing was changed: {failure}")
        with self._lock:
            self._outcomes[outcome] += 1
            self._failure = failure
            self._active = self._clock()

    def idle_seconds(self) -> float:
        """Return the seconds since the last poll ended, or since the start if none has."""
        with self._lock:
            return self._clock() - self._active

    def last_poll(self) -> PlainAnswer:
        """Answer `/last-poll`: 500 and the reason if the last poll failed."""
        with self._lock:
            failure = self._failure
        return PlainAnswer(500, f"{failure}\n".encode()) if failure else PlainAnswer(200, b"ok\n")

    def metrics(self) -> bytes:
        """Return the counter of the outcomes in Prometheus's text format."""
        with self._lock:
            counted = sorted(self._outcomes.items())
        name = self._counter.name
        samples = [sample(name, label("outcome", outcome), count) for outcome, count in counted]
        return family(name, self._counter.about, samples, "counter").encode()


def run_polls(
    process: OneProcess, polls: Polls, every_seconds: float, more: Mapping[str, Callable[[], PlainAnswer]]
) -> int:
    """Poll until the process ends, and serve the results of the polls; return the exit status.

    `more` has further paths of the port.
    """
    process.serve(polls.last_poll, polls.metrics, more)
    process.tasks.periodic("polls", polls.run, every_seconds=every_seconds, deadline_seconds=_DEADLINE_SECONDS)
    settle_collector()
    return process.run()
