"""The one process of a drop-in: its tasks, its metrics, and its end."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

from adapter.foundation.service.runtime.health import Health
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.process_telemetry import TaskMetrics, exposition, new_registry
from adapter.foundation.service.runtime.shutdown_callbacks import begin_calling
from adapter.foundation.service.runtime.tasks import Tasks
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.web.metric_text import METRICS_TYPE
from recommender.commands.one_process.port import LAST_POLL, Port
from recommender.commands.one_process.start import ENDINGS
from recommender.commands.program import METRICS_PREFIX

_log = logging.getLogger(__name__)

STOP_SECONDS: Final = 6.0
"""Time that a shutdown leaves for a write under way and for the release of the Lease."""
_FAILED: Final = signal.SIGUSR1


class OneProcess:
    """The process as the parts of the program see it. Its main thread waits in `run` until the process ends."""

    def __init__(self, port: Port, version: str) -> None:
        self.registry = new_registry(version)
        self.tasks = Tasks(TaskMetrics(self.registry, METRICS_PREFIX))
        self.health = Health()
        self._port = port
        self._stopping: list[Callable[[], None]] = []
        self._last_poll: Callable[[], PlainAnswer] = lambda: PlainAnswer(200, b"ok\n")
        self._more_metrics: Callable[[], bytes] = lambda: b""
        self._more: Mapping[str, Callable[[], PlainAnswer]] = {}

    def on_stopping(self, callback: Callable[[], None]) -> None:
        """Register a callback for the start of the shutdown; the last registered one is called first."""
        self._stopping.append(callback)

    def serve(
        self,
        last_poll: Callable[[], PlainAnswer],
        more_metrics: Callable[[], bytes],
        more: Mapping[str, Callable[[], PlainAnswer]] | None = None,
    ) -> None:
        """Answer all paths of the port from now on, including those in `more`; all functions answer from memory."""
        self._last_poll, self._more_metrics, self._more = last_poll, more_metrics, more or {}
        self._port.use(self._answer)

    def fail(self, reason: str) -> None:
        """End the process with status 1. May be called from any thread."""
        _log.error("the process gives up", extra=fields(reason=reason))
        os.kill(os.getpid(), _FAILED)

    def run(self) -> int:
        """Wait for a signal to end, shut down, and return the exit status."""
        arrived = signal.sigwait(ENDINGS)
        _log.info("shutting down", extra=fields(signal=signal.Signals(arrived).name))
        self._stop()
        return 1 if arrived == _FAILED else 0

    def _stop(self) -> None:
        end = time.monotonic() + STOP_SECONDS
        self.tasks.stopping.set()
        stopping = begin_calling(self._stopping)
        if stopping is not None:
            stopping.join(STOP_SECONDS)
        still_running = self.tasks.stop(max(0.0, min(1.0, end - time.monotonic())))
        if still_running:
            _log.info("tasks did not end in time", extra=fields(tasks=", ".join(still_running)))
        self._port.stop()
        _log.info("ended")

    def _answer(self, path: str, query: str) -> PlainAnswer | None:
        if path == LAST_POLL:
            return self._last_poll()
        if path in self._more:
            return self._more[path]()
        if path == "/metrics":
            return PlainAnswer(200, exposition(self.registry) + self._more_metrics(), METRICS_TYPE)
        health = None if path.startswith("/healthz") else self.health.answer(path, query)
        return None if health is None else PlainAnswer(health[0], health[1].encode())
