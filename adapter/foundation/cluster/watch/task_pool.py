"""Runs work in tasks that live as long as the process, although the work may end earlier: a reload can end a watch."""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.watches.streams import when_set

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from adapter.foundation.sources.kubernetes.watches.cluster import StartTask

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""How long a task without work may take to notice that the process is stopping."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A function that runs until its event is set."""

    run: Callable[[Event], None]
    stop: Event = field(default_factory=threading.Event)
    """Set by the caller that started the work, or when the process stops."""


class TaskPool:
    """Runs each piece of work in its own task, and reuses tasks whose work has ended."""

    def __init__(self, start: StartTask, name: str) -> None:
        """Name each task `name` followed by a number."""
        self._start = start
        self._name = name
        self._waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        self._tasks = 0

    def run(self, work: Work) -> None:
        """Start the work. If it fails, the error is raised in its task, whose next attempt runs the work again."""
        self._waiting.put(work)
        with self._lock:
            self._unfinished += 1
        self.start_missing()

    def start_missing(self) -> None:
        """Start the tasks that waiting work needs. Without a thread for them it waits until this is called again."""
        while True:
            with self._lock:
                if self._unfinished <= self._tasks:
                    return
                self._tasks += 1
                number = self._tasks
            try:
                self._start(f"{self._name} {number}", self._serve)
            except RuntimeError as error:
                with self._lock:
                    self._tasks -= 1
                _log.debug("%s %d could not be started: %s", self._name, number, error)
                return

    def _serve(self, stop: Event) -> None:
        while not stop.is_set():
            try:
                work = self._waiting.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            self._carry_out(work, stop)

    def _carry_out(self, work: Work, stop: Event) -> None:
        ended = False
        try:
            with when_set(stop, work.stop.set):
                work.run(work.stop)
            ended = True
        finally:
            if ended:
                with self._lock:
                    self._unfinished -= 1
            else:
                self._waiting.put(work)
