"""A thread pool that never keeps the process from exiting.

`concurrent.futures` waits for its threads when the interpreter exits, so a query to a hanging Prometheus would delay
the shutdown until the query's deadline. Work in this pool is abandoned instead; it must only read.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)


class DaemonThreads:
    """A fixed number of threads that share a queue of work."""

    def __init__(self, name: str, count: int) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True).start()

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on one of the threads, after all work that was submitted before."""
        self._queue.put(work)

    def _run(self) -> None:
        while True:
            work = self._queue.get()
            try:
                work()
            except Exception:  # noqa: BLE001 - the loop of the thread: one piece of work must not end it for the others
                _log.exception("background work failed: internal error")
            del work  # The work and its large answers must not live until the next work arrives.
