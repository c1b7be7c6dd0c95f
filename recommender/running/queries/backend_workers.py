"""Background work for each backend: a backend that hangs delays only its own work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from adapter.foundation.service.runtime.threads import UNREPORTED_SECONDS

W = TypeVar("W")

_log = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 5.0
"""Pause in seconds after a worker has failed with an internal error."""
_LAST_SECONDS: Final = 5.0
"""How long to wait, in all, for the work of the backends other than the default one to end."""


@dataclass(slots=True)
class _Employed(Generic[W]):
    worker: W
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class BackendWorkers(Generic[W]):
    """Runs a worker for each backend. The worker of the default backend runs in the thread of `run`.

    All methods are for any number of threads, except `run`, which is for one.
    """

    def __init__(self, name: str, make: Callable[[], W], work: Callable[[str, W, threading.Event], None]) -> None:
        """`name` begins the names of threads; `work` takes a backend, its worker and the event that ends the work."""
        self._name = name
        self._make = make
        self._work = work
        self._lock = threading.Lock()
        self._employed: dict[str, _Employed[W]] = {}
        self._is_running = False

    def of(self, backend: str) -> W:
        """Return the worker of a backend; the default one has the empty name."""
        with self._lock:
            found = self._employed.get(backend)
            if found is None:
                found = self._employed[backend] = _Employed(self._make())
            if self._is_running:
                self._start(backend, found)
            return found.worker

    def workers(self) -> Mapping[str, W]:
        """Return all workers by backend."""
        with self._lock:
            return {backend: each.worker for backend, each in self._employed.items()}

    def keep(self, backends: Collection[str]) -> None:
        """End the work for all backends except `backends` and the default one."""
        with self._lock:
            gone = [backend for backend in self._employed if backend and backend not in backends]
            for backend in gone:
                self._employed.pop(backend).stop.set()

    def run(self, stop: threading.Event) -> None:
        """Work for all backends until `stop` is set."""
        default = self.of("")
        with self._lock:
            self._is_running = True
            for backend, each in self._employed.items():
                self._start(backend, each)
        try:
            self._work("", default, stop)
        finally:
            if stop.is_set():
                self._end()

    def _start(self, backend: str, employed: _Employed[W]) -> None:
        """Start the thread of a backend that has none yet. The lock is held."""
        if backend and employed.thread is None:
            name = f"{self._name} {backend}"
            thread = threading.Thread(target=self._supervise, args=(backend, employed), name=name, daemon=True)
            # If it cannot be started, the next call tries again.
            thread.start()
            employed.thread = thread

    def _supervise(self, backend: str, employed: _Employed[W]) -> None:
        while not employed.stop.is_set():
            if not self._work_reported(backend, employed):
                time.sleep(UNREPORTED_SECONDS)

    def _work_reported(self, backend: str, employed: _Employed[W]) -> bool:
        """Work for a backend, log a failure and wait; return False if there was too little memory for that."""
        try:
            try:
                self._work(backend, employed.worker, employed.stop)
            except Exception:  # noqa: BLE001 - the supervisor: the work goes on after a fault
                _log.exception("%s of backend %s failed: internal error", self._name, backend)
                employed.stop.wait(_AGAIN_SECONDS)
        except MemoryError:
            return False
        return True

    def _end(self) -> None:
        with self._lock:
            self._is_running = False
            others = [each for each in self._employed.values() if each.thread is not None]
        for each in others:
            each.stop.set()
        for each in others:
            if each.thread is not None:
                each.thread.join(_LAST_SECONDS / len(others))
