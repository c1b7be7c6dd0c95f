"""Threads that run what is handed to them, and that never keep the process from ending.

`concurrent.futures` waits for its threads when the interpreter ends: a query to a Prometheus that hangs would hold up a
shutdown for as long as the query may take. What is handed over here is abandoned at the end instead; it only reads.
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
    """A fixed number of threads and a queue before them."""

    def __init__(self, name: str, count: int) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True).start()

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on one of the threads, after what was submitted before."""
        self._queue.put(work)

    def _run(self) -> None:
        while True:
            work = self._queue.get()
            try:
                work()
            except Exception:  # noqa: BLE001 - the loop of the thread: one piece of work must not end it for the others
                _log.exception("work in the background failed by a fault of the program")
            del work  # nothing of it, such as a large answer, shall live until the next comes
