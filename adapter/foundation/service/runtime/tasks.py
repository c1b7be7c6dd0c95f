"""Supervised background work in named tasks, each in its own thread.

A task that fails is retried with increasing delays; each failure is counted, and logged once with its traceback, until
the task works again. A run that exceeds its deadline is reported while it still runs, since a thread cannot be
interrupted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.threads import UNREPORTED_SECONDS
from adapter.foundation.time.backoff import Backoff

_log = logging.getLogger(__name__)

_WORKING_SECONDS: Final = 60.0
"""A task without an end that has run for so long works; another failure of it is a new one."""


class TaskEvents(Protocol):
    """Receives the events of tasks."""

    def add_task(self, task: str, overdue: Callable[[], bool]) -> None:
        """Register a task; `overdue` returns whether its current run is past the deadline."""

    def record_run(self, task: str, result: str) -> None:
        """Record the end of a run: `ok`, `late` or `error`."""


class Tasks:
    """The tasks of a process, all of which end when `stopping` is set."""

    def __init__(
        self,
        events: TaskEvents,
        *,
        backoff: Callable[[], Backoff] = lambda: Backoff(jitter_ratio=0.5),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stopping = threading.Event()
        """Set when the process ends, which wakes all that wait for it. Tasks wait for it, and must not set it."""
        self._events = events
        self._backoff = backoff
        self._clock = clock
        self._tasks: list[_Task] = []

    def periodic(
        self,
        name: str,
        action: Callable[[], None],
        *,
        every_seconds: float,
        deadline_seconds: float,
        reads_only: bool = False,
    ) -> None:
        """Call the action at once and then every `every_seconds`, measured from start to start; calls never overlap.

        Raises RuntimeError, as `running` does, if no thread can be started.

        If the action `reads_only`, a call may be abandoned when the process ends.
        """

        def passes(task: _Task) -> None:
            started = self._clock()
            with task.running(deadline_seconds):
                action()
            task.count_success()
            self.stopping.wait(started + every_seconds - self._clock())

        self._start(name, passes, reads_only=reads_only)

    def running(self, name: str, run: Callable[[threading.Event], None], *, reads_only: bool = False) -> None:
        """Let `run` work until the stop is requested; if it returns or fails earlier, it is called again later.

        A task that `reads_only` may be abandoned when the process ends, since it may be waiting for a server that does
        not answer.
        """

        def passes(task: _Task) -> None:
            started = self._clock()
            try:
                with task.running(None):
                    run(self.stopping)
            finally:
                if self._clock() - started >= _WORKING_SECONDS:
                    task.forget_failures()
            if not self.stopping.is_set():
                raise TaskEndedError(f"task {name} ended by itself")

        self._start(name, passes, reads_only=reads_only)

    def stop(self, seconds: float) -> tuple[str, ...]:
        """Request the stop and wait for all tasks together; return the names of those that did not end in time.

        Tasks that only read are neither waited for nor named.
        """
        self.stopping.set()
        until = self._clock() + seconds
        awaited = [task for task in self._tasks if not task.reads_only]
        for task in awaited:
            task.thread.join(max(0.0, until - self._clock()))
        return tuple(task.name for task in awaited if task.thread.is_alive())

    def are_running(self) -> bool:
        """Return whether any task has not ended, including those that only read."""
        return any(task.thread.is_alive() for task in self._tasks)

    def _start(self, name: str, passes: Callable[[_Task], None], *, reads_only: bool) -> None:
        task = _Task(name, self._events, self._clock, self._backoff(), reads_only=reads_only)
        # A daemon thread, because a task that ignores the stop must not keep the process from exiting.
        task.thread = threading.Thread(target=self._supervise, args=(task, passes), name=name, daemon=True)
        self._events.add_task(name, task.overdue)
        # Raises RuntimeError if there are no threads left. A thread that has not started cannot be waited for.
        task.thread.start()
        self._tasks = [*self._tasks, task]

    def _supervise(self, task: _Task, passes: Callable[[_Task], None]) -> None:
        while not self.stopping.is_set():
            if not self._pass_reported(task, passes):
                time.sleep(UNREPORTED_SECONDS)

    def _pass_reported(self, task: _Task, passes: Callable[[_Task], None]) -> bool:
        """Run a pass, report its failure and wait; return False if there was too little memory for that."""
        try:
            try:
                passes(task)
            except Exception as e:  # noqa: BLE001 - the supervisor: whatever a task raises, the others go on
                self.stopping.wait(task.count_failure(e))
        except MemoryError:
            return False
        return True


class TaskEndedError(Exception):
    """A task returned although it should run as long as the process does."""


class _Task:
    """The state of one task; written by its own thread, read by others."""

    thread: threading.Thread

    def __init__(
        self, name: str, events: TaskEvents, clock: Callable[[], float], backoff: Backoff, *, reads_only: bool
    ) -> None:
        self.name = name
        self.reads_only = reads_only
        self._backoff = backoff
        self._events = events
        self._clock = clock
        self._deadline: float | None = None
        self._late = False
        self._last_failure = ""

    @contextmanager
    def running(self, deadline_seconds: float | None) -> Iterator[None]:
        """Mark the task as running."""
        self._late = False
        self._deadline = None if deadline_seconds is None else self._clock() + deadline_seconds
        try:
            yield
        finally:
            self._late = self.overdue()
            self._deadline = None

    def overdue(self) -> bool:
        deadline = self._deadline
        return deadline is not None and self._clock() > deadline

    def count_success(self) -> None:
        if self._late:
            _log.warning("a task exceeded its deadline", extra=fields(task=self.name))
        if self._backoff.failures:
            _log.info("a task works again", extra=fields(task=self.name, failures=self._backoff.failures))
        self.forget_failures()
        # The count comes last: who sees it finds the lines of the log.
        self._events.record_run(self.name, "late" if self._late else "ok")

    def forget_failures(self) -> None:
        """Let the next failure be the first one: it is logged, and followed by the shortest delay."""
        self._backoff.reset()
        self._last_failure = ""

    def count_failure(self, error: Exception) -> float:
        """Count a failure, and log it if it differs from the last one; return the seconds until the next try."""
        self._events.record_run(self.name, "error")
        failure = _identity(error)
        if failure != self._last_failure:
            _log.error("a task failed and will be retried", exc_info=error, extra=fields(task=self.name))
        self._last_failure = failure
        return self._backoff.delay()


def _identity(error: Exception) -> str:
    """Return what identifies a failure: its class and place; a message may contain times and counts."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
    return f"{type(error).__qualname__} {where}"
