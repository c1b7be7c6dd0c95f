"""Background work by backend: a backend that hangs or fails does not delay another one."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from recommender.running.queries.backend_workers import BackendWorkers
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Harness:
    """Counts the passes of each backend's worker; those of `us` do what the test says."""

    passes: Counter[str] = field(default_factory=Counter)
    released: threading.Event = field(default_factory=threading.Event)
    is_failing: bool = False
    ended: set[str] = field(default_factory=set)

    def work(self, backend: str, _worker: object, stop: threading.Event) -> None:
        while not stop.wait(0.01):
            self.passes[backend] += 1
            if backend == "us":
                if self.is_failing:
                    raise ZeroDivisionError
                self.released.wait(30)
        self.ended.add(backend)


@pytest.fixture
def harness() -> Iterator[Harness]:
    found = Harness()
    yield found
    found.released.set()


@pytest.fixture
def workers(harness: Harness) -> Iterator[BackendWorkers[object]]:
    """Yield running workers of the default backend and of `us`."""
    found, stop = BackendWorkers("test", object, harness.work), threading.Event()
    found.of("us")
    thread = threading.Thread(target=found.run, args=(stop,), daemon=True)
    thread.start()
    yield found
    harness.released.set()
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("is_failing", [False, True])
def test_other_backends_continue_while_one_hangs_or_fails(
    harness: Harness, workers: BackendWorkers[object], *, is_failing: bool
) -> None:
    harness.is_failing = is_failing
    until(lambda: harness.passes["us"], 30)
    # One that is new begins at once, too.
    workers.of("asia")
    before = harness.passes.copy()
    until(lambda: all(harness.passes[each] > before[each] + 3 for each in ("", "asia")), 30)


def test_the_worker_of_a_removed_backend_ends_and_others_continue(
    harness: Harness, workers: BackendWorkers[object]
) -> None:
    harness.released.set()
    until(lambda: harness.passes["us"], 30)
    workers.keep({""})
    until(lambda: "us" in harness.ended, 30)
    before = harness.passes[""]
    until(lambda: harness.passes[""] > before, 30)
    assert set(workers.workers()) == {""}


def test_the_thread_of_a_backend_that_could_not_be_started_is_started_later(
    harness: Harness, workers: BackendWorkers[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: harness.passes["us"], 30)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            workers.of("asia")
    workers.of("asia")
    until(lambda: harness.passes["asia"], 30)


def test_a_failure_that_cannot_be_reported_does_not_end_the_thread_of_a_backend(
    harness: Harness, workers: BackendWorkers[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that has ended is not started again, so the histories of its backend would stay as they are."""

    def lack_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("recommender.running.queries.backend_workers._log.exception", lack_memory)
    harness.is_failing = True
    until(lambda: harness.passes["us"] > 1, 30)
    assert set(workers.workers()) == {"", "us"}


def test_a_single_backend_takes_no_thread(harness: Harness) -> None:
    stop = threading.Event()
    names: list[str] = []

    def work(_backend: str, _worker: object, _stop: threading.Event) -> None:
        names.append(threading.current_thread().name)
        stop.set()

    BackendWorkers("single backend", object, work).run(stop)
    assert names == [threading.current_thread().name]
    assert not [thread.name for thread in threading.enumerate() if "single backend" in thread.name]
    assert not harness.passes
