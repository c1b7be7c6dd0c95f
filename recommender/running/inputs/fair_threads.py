"""Threads that work for many payers (namespaces) in turn, so that slow work of one payer does not delay the others."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial

from adapter.foundation.service.runtime.threads import DaemonThreads


class FairThreads:
    """A fixed number of threads. Each payer has a limited number of them, and waiting payers take turns."""

    def __init__(self, name: str, count: int, most_each: int) -> None:
        """`most_each` is the largest number of threads that work for one payer at the same time."""
        self._threads = DaemonThreads(name, count)
        self._free = count
        self._most_each = most_each
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        """Payers in the order of their turns."""
        self._busy: defaultdict[str, int] = defaultdict(int)

    def submit(self, payer: str, work: Callable[[], None]) -> None:
        """Run the work on one of the threads, when it is the payer's turn."""
        with self._lock:
            self._waiting.setdefault(payer, deque()).append(work)
            self._begin()

    def _begin(self) -> None:
        """Begin as much work as may begin. The lock is held."""
        while self._free:
            payer = next((each for each in self._waiting if self._busy[each] < self._most_each), None)
            if payer is None:
                return
            works = self._waiting.pop(payer)
            work = works.popleft()
            if works:
                # The payer goes back to the end of the line.
                self._waiting[payer] = works
            self._busy[payer] += 1
            self._free -= 1
            self._threads.submit(partial(self._run, payer, work))

    def _run(self, payer: str, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._free += 1
                self._busy[payer] -= 1
                if not self._busy[payer]:
                    del self._busy[payer]
                self._begin()
