"""Threads that work for many payers (namespaces) in turn, so that slow work of one payer does not delay the others."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.threads import DaemonThreads

if TYPE_CHECKING:
    from collections.abc import Container

    from recommender.running.inputs.input_gathering import LookUpThreads


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
        self._lacks_thread = False
        """Whether work waits in the threads' queue because none could be started for it."""

    def submit(self, payer: str, work: Callable[[], None]) -> None:
        """Run the work on one of the threads, when it is the payer's turn.

        Raises RuntimeError if no thread can be started; the work then waits for the next call.
        """
        with self._lock:
            self._waiting.setdefault(payer, deque()).append(work)
            if self._lacks_thread:
                # Otherwise, a payer whose work waits for a thread would never get one.
                self._threads.submit(lambda: None)
                self._lacks_thread = False
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
            try:
                self._threads.submit(partial(self._run, payer, work))
            except RuntimeError:
                self._lacks_thread = True
                raise

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


class BackendThreads:
    """Makes the threads of a backend when they are first requested. Not thread-safe."""

    def __init__(self, make: Callable[[], LookUpThreads], known: Callable[[], Container[str]]) -> None:
        """`known` returns the backends of the configuration in force; new ones reuse the threads of removed ones."""
        self._make = make
        self._known = known
        self._made: dict[str, LookUpThreads] = {"": make()}

    def of(self, backend: str) -> LookUpThreads:
        """Return the threads of a backend; the default one has the empty name."""
        found = self._made.get(backend)
        if found is None:
            known = self._known()
            spare = next((name for name in self._made if name and name not in known), None)
            found = self._made[backend] = self._make() if spare is None else self._made.pop(spare)
        return found
