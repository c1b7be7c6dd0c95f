"""A thread pool that never keeps the process from exiting.

`concurrent.futures` waits for its threads when the interpreter exits, so a query to a hanging Prometheus would delay
the shutdown until the query's deadline. Work in this pool is abandoned instead; it must only read.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)

UNREPORTED_SECONDS: Final = 0.1
"""How long a thread pauses after a failure that it cannot even report, because there is no memory left.

It must neither end, since nothing would do its work, nor try again at once. `time.sleep` itself takes no memory.
"""


class WorkWaitsError(RuntimeError):
    """No thread can be started; the work waits until `start` has started one."""

    def __init__(self, cause: str, start: Callable[[], None]) -> None:
        super().__init__(cause)
        self.start = start
        """Starts a thread if any work still waits for one. Raises this error again if that is not possible yet."""


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
        self._lacks_thread = False
        """Whether work waits that no thread will run."""

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on one of the threads; it starts after all work that was submitted before.

        If no further thread can be started, the work waits for those that run. If none runs either, this raises
        WorkWaitsError, and the work waits for the thread that a later call starts.
        """
        with self._lock:
            self._queue.put(work)
            self._pending += 1
            if self._is_closed or self._started < min(self._count, self._pending):
                self._start()

    def _start_waiting(self) -> None:
        with self._lock:
            if self._lacks_thread:
                self._start()

    def _start(self) -> None:
        """Start a thread, while the lock is held: `close` counts the threads that it has to end."""
        try:
            threading.Thread(target=self._run, name=f"{self._name}-{self._started + 1}", daemon=True).start()
        except RuntimeError as error:
            if self._started and not self._is_closed:
                return
            self._lacks_thread = True
            raise WorkWaitsError(str(error), self._start_waiting) from error
        self._lacks_thread = False
        if self._is_closed:
            # It ends after what was submitted before.
            self._queue.put(None)
        else:
            self._started += 1

    def close(self) -> None:
        """Let the threads end after the work submitted so far; each piece of later work gets a thread of its own."""
        with self._lock:
            for _ in range(0 if self._is_closed else self._started):
                self._queue.put(None)
            self._is_closed = True

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            is_reported = _run_reported(work)
            del work  # The work and its large answers must not live until the next work arrives.
            if not is_reported:
                time.sleep(UNREPORTED_SECONDS)
            with self._lock:
                self._pending -= 1


def _run_reported(work: Callable[[], None]) -> bool:
    """Run the work and log its failure; return False if there was too little memory for that.

    Nothing of the work is held after the return, so a pause then leaves its memory to others.
    """
    try:
        try:
            work()
        except Exception:  # noqa: BLE001 - the loop of the thread: one piece of work must not end it for the others
            _log.exception("background work failed: internal error")
    except MemoryError:
        return False
    return True
