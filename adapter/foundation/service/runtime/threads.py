"""A thread pool that never keeps the process from exiting.

`concurrent.futures` waits for its threads when the interpreter exits, so a query to a hanging Prometheus would delay
the shutdown until the query's deadline. Work in this pool is abandoned instead; it must only read.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)


class DaemonThreads:
    """At most `count` threads that share a queue of work; each is started when there is work for it."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        """Number of threads that were started before `close`."""
        self._pending = 0
        """Number of pieces of work that have not ended."""
        self._is_closed = False

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on one of the threads; it starts after all work that was submitted before.

        If no further thread can be started, the work waits for those that run. If none runs either, this raises
        RuntimeError, and the work waits for the thread that a later call starts.
        """
        with self._lock:
            self._queue.put(work)
            self._pending += 1
            if self._is_closed:
                # The threads end after what was submitted before.
                self._queue.put(None)
            elif self._pending <= self._started or self._started == self._count:
                return
            else:
                self._started += 1
            number, is_counted = self._started, not self._is_closed
        try:
            threading.Thread(target=self._run, name=f"{self._name}-{number}", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._started -= is_counted
                if is_counted and self._started:
                    return
            raise

    def close(self) -> None:
        """Let the threads end after the work submitted so far; each piece of later work gets a thread of its own."""
        with self._lock:
            for _ in range(0 if self._is_closed else self._started):
                self._queue.put(None)
            self._is_closed = True

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except Exception:  # noqa: BLE001 - the loop of the thread: one piece of work must not end it for the others
                _log.exception("background work failed: internal error")
            del work  # The work and its large answers must not live until the next work arrives.
            with self._lock:
                self._pending -= 1
