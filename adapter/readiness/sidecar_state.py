"""The state of the sidecar. The task that reads the metric writes it, and probes are answered from it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.readiness.scrape import SCRAPE_RESULTS, ScrapeError
from adapter.readiness.verdict import KnownLoad, ReadinessRules, ReadinessVerdict, readiness_verdict

_log = logging.getLogger(__name__)
_METRIC = "metric"
_FAULT = "internal_error"


class SidecarState:
    """Stores the known load, and counts reads by result. One thread writes, and any thread may read.

    It is also the `TaskEvents` of the task that reads the metric.
    """

    def __init__(self, rules: ReadinessRules, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        self._known = KnownLoad()
        self._reads = dict.fromkeys((*SCRAPE_RESULTS, _FAULT), 0)
        self._is_stopping = False
        self._first = threading.Event()
        self._states = StateLog(_log)

    def update(self, read: Callable[[], float]) -> None:
        """Read the metric once, and store the value or the reason why there is none."""
        began = self._clock()
        try:
            connections = read()
        except ScrapeError as error:
            self._reads[error.result] += 1
            self._known = self._known.after_failure(str(error))
            # The reason is a field, because it may contain numbers that differ each time.
            message = f"the metric cannot be read ({error.result})"
            self._states.failed(_METRIC, message, level=logging.WARNING, reason=str(error))
            self._first.set()
            return
        self._reads["ok"] += 1
        was_full = self._known.is_full
        self._known = self._known.after_value(self.rules.limit, connections, began)
        self._states.recovered(_METRIC, "the metric can be read again")
        if self._known.is_full != was_full:
            message = "the pod has room again" if was_full else "the pod is full"
            _log.info("%s", message, extra=fields(connections=connections, limit=self.rules.limit.full_at))
        self._first.set()

    def wait_for_first_read(self, seconds: float) -> None:
        """Wait until the first read has ended, but no longer than `seconds`."""
        self._first.wait(seconds)

    def add_task(self, task: str, overdue: Callable[[], bool]) -> None:
        """Ignore the start of a task: the age of the value shows whether it is late."""

    def record_run(self, task: str, result: str) -> None:
        """Count a run of a task that failed because of an internal error; the log has the traceback."""
        if result == "error":
            self._reads[_FAULT] += 1
            self._known = self._known.after_failure(f"the task {task} failed: see the log of this container")

    def stop(self) -> None:
        """Report from now on that the pod is not ready."""
        self._is_stopping = True

    def verdict(self) -> ReadinessVerdict:
        """Return the current verdict."""
        if self._is_stopping:
            return ReadinessVerdict(is_ready=False, reason="not ready: shutting down", connections=None)
        return readiness_verdict(self.rules, self._known, self._clock())

    def reads(self) -> dict[str, int]:
        """Return how many reads ended with each result."""
        return dict(self._reads)
