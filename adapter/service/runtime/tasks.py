"""Background work as named tasks, each in a thread of its own, supervised.

A task that fails is tried again, later each time; the failure is logged once with its traceback, and counted. A pass
that runs past its deadline is reported while it still runs: a thread cannot be interrupted, but it can be seen.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Protocol

from adapter.service.runtime.logs import fields
from adapter.timing.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)


class TaskEvents(Protocol):
    """Who wants to know about tasks."""

    def added(self, task: str, overdue: Callable[[], bool]) -> None:
        """Take note of a task; `overdue` tells whether its current pass is past the deadline."""
        ...

    def ended(self, task: str, result: str) -> None:
        """Take note of the end of a pass: `ok`, `late` or `error`."""
        ...


class Stop:
    """Whether the process is ending, to be asked and to be slept on."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether to stop now."""
        return self._event.is_set()

    @property
    def event(self) -> threading.Event:
        """The stop as an event, for parts that know nothing of tasks. Theirs to wait on, not to set."""
        return self._event

    def wait(self, seconds: float) -> bool:
        """Sleep; returns early, and True, when the stop is requested."""
        return self._event.wait(max(0.0, seconds))

    def request(self) -> None:
        """Wake everybody who waits, for good."""
        self._event.set()


class Tasks:
    """The tasks of a process. `stop` is theirs to watch."""

    def __init__(
        self,
        events: TaskEvents,
        *,
        backoff: Callable[[], Backoff] = lambda: Backoff(jitter_ratio=0.5),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stopping = Stop()
        self._events = events
        self._backoff = backoff
        self._clock = clock
        self._tasks: list[_Task] = []

    def periodic(self, name: str, action: Callable[[], None], *, every_seconds: float, deadline_seconds: float) -> None:
        """Call the action now and then once every so many seconds, from start to start; never twice at a time."""

        def passes(task: _Task) -> None:
            started = self._clock()
            with task.running(deadline_seconds):
                action()
            task.succeeded()
            self.stopping.wait(started + every_seconds - self._clock())

        self._start(name, passes)

    def running(self, name: str, run: Callable[[Stop], None]) -> None:
        """Let `run` work until the stop is requested; if it returns or fails earlier it is called again, later."""

        def passes(task: _Task) -> None:
            with task.running(None):
                run(self.stopping)
            if not self.stopping.requested:
                raise TaskEndedError(f"task {name} ended by itself")

        self._start(name, passes)

    def overdue(self) -> tuple[str, ...]:
        """Return the names of tasks whose current pass is past its deadline."""
        return tuple(task.name for task in self._tasks if task.overdue())

    def stop(self, seconds: float) -> tuple[str, ...]:
        """Request the stop and wait so long in total; returns the names of those that did not end."""
        self.stopping.request()
        until = self._clock() + seconds
        for task in self._tasks:
            task.thread.join(max(0.0, until - self._clock()))
        return tuple(task.name for task in self._tasks if task.thread.is_alive())

    def _start(self, name: str, passes: Callable[[_Task], None]) -> None:
        task = _Task(name, self._events, self._clock, self._backoff())
        # A daemon: a task that does not end when it is told must not keep the process from ending.
        task.thread = threading.Thread(target=self._supervise, args=(task, passes), name=name, daemon=True)
        self._tasks = [*self._tasks, task]
        self._events.added(name, task.overdue)
        task.thread.start()

    def _supervise(self, task: _Task, passes: Callable[[_Task], None]) -> None:
        while not self.stopping.requested:
            try:
                passes(task)
            except Exception as e:  # noqa: BLE001 - the supervisor: whatever a task raises, the others go on
                self.stopping.wait(task.failed(e))


class TaskEndedError(Exception):
    """A task that should run as long as the process returned."""


class _Task:
    """What is known about one task; written by its own thread, read by others."""

    thread: threading.Thread

    def __init__(self, name: str, events: TaskEvents, clock: Callable[[], float], backoff: Backoff) -> None:
        self.name = name
        self._backoff = backoff
        self._events = events
        self._clock = clock
        self._deadline: float | None = None
        self._late = False
        self._last_failure = ""

    def running(self, deadline_seconds: float | None) -> _Pass:
        """Return the context of one pass."""
        return _Pass(self, deadline_seconds)

    def begin(self, deadline_seconds: float | None) -> None:
        self._late = False
        self._deadline = None if deadline_seconds is None else self._clock() + deadline_seconds

    def end(self) -> None:
        self._late = self.overdue()
        self._deadline = None

    def overdue(self) -> bool:
        deadline = self._deadline
        return deadline is not None and self._clock() > deadline

    def succeeded(self) -> None:
        self._events.ended(self.name, "late" if self._late else "ok")
        if self._late:
            _log.warning("a task ran past its deadline", extra=fields(task=self.name))
        if self._backoff.failures:
            _log.info("a task works again", extra=fields(task=self.name, failures=self._backoff.failures))
        self._backoff.reset()
        self._last_failure = ""

    def failed(self, error: Exception) -> float:
        """Count a failure, log it if it is another than the last; returns the seconds until the next try."""
        self._events.ended(self.name, "error")
        failure = _identity(error)
        if failure != self._last_failure:
            _log.error("a task failed and will be tried again", exc_info=error, extra=fields(task=self.name))
        self._last_failure = failure
        return self._backoff.delay()


class _Pass:
    """Marks a task as at work."""

    def __init__(self, task: _Task, deadline_seconds: float | None) -> None:
        self._task = task
        self._deadline_seconds = deadline_seconds

    def __enter__(self) -> None:
        self._task.begin(self._deadline_seconds)

    def __exit__(self, *_: object) -> None:
        self._task.end()


def _identity(error: Exception) -> str:
    """Tell failures apart by their kind and place: messages may carry times and counts that differ each time."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
    return f"{type(error).__qualname__} {where}"
