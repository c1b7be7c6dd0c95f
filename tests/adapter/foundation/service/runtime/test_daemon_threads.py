"""Threads that share a queue of work."""

from __future__ import annotations

import queue
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import pytest

from adapter.foundation.service.runtime.threads import DaemonThreads, WorkWaitsError

SECONDS = 60.0


def alive(name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(f"{name}-")]


def test_threads_are_started_for_simultaneous_work_up_to_the_limit() -> None:
    threads, open_gate = DaemonThreads("lazy", 2), threading.Event()
    assert alive("lazy") == []
    done = [threading.Event() for _ in range(3)]

    def work(number: int) -> None:
        assert open_gate.wait(SECONDS)
        done[number].set()

    for number in range(3):
        threads.submit(partial(work, number))
    assert len(alive("lazy")) == 2
    open_gate.set()
    assert all(each.wait(SECONDS) for each in done)


def test_failed_work_does_not_end_its_thread() -> None:
    threads, done = DaemonThreads("failing", 1), threading.Event()

    def fail() -> None:
        raise ValueError("made up")

    threads.submit(fail)
    threads.submit(done.set)
    assert done.wait(SECONDS)


def test_work_whose_failure_cannot_be_reported_does_not_end_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, each failure while memory was short took a thread away from all queries."""
    threads, done = DaemonThreads("unreported", 1), threading.Event()

    def lack_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("adapter.foundation.service.runtime.threads._log.exception", lack_memory)
    threads.submit(lack_memory)
    threads.submit(done.set)
    assert done.wait(SECONDS)


def test_nothing_of_work_that_failed_unreported_is_held_during_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer, which was too large, would leave the others without memory, too."""
    threads, answers = DaemonThreads("letting go", 1), list[weakref.ref[set[str]]]()
    held: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def work() -> None:
        answer = {"large"}
        answers.append(weakref.ref(answer))
        raise MemoryError

    def lack_memory(*_: object) -> None:
        raise MemoryError

    module = "adapter.foundation.service.runtime.threads"
    monkeypatch.setattr(f"{module}._log.exception", lack_memory)
    monkeypatch.setattr(f"{module}.time", SimpleNamespace(sleep=lambda _: held.put(answers[0]() is not None)))
    threads.submit(work)
    assert not held.get(timeout=SECONDS)


def test_closed_threads_end_after_their_work_and_later_work_still_runs() -> None:
    threads, open_gate = DaemonThreads("closed", 1), threading.Event()
    before, after = threading.Event(), threading.Event()

    def work() -> None:
        assert open_gate.wait(SECONDS)
        before.set()

    threads.submit(work)
    running = alive("closed")
    threads.close()
    threads.close()
    threads.submit(after.set)
    running += alive("closed")
    open_gate.set()
    assert before.wait(SECONDS)
    assert after.wait(SECONDS)
    for each in running:
        each.join(SECONDS)
    assert alive("closed") == []


def refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_work_continues_after_a_thread_could_not_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the processes of a pod or of a node may be reached for a moment."""
    threads, done = DaemonThreads("refused", 1), [threading.Event() for _ in range(2)]
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            threads.submit(done[0].set)
    threads.submit(done[1].set)
    assert all(each.wait(SECONDS) for each in done)


def test_work_waits_for_the_running_threads_if_no_further_one_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, open_gate = DaemonThreads("few", 3), threading.Event()

    def work() -> None:
        assert open_gate.wait(SECONDS)

    threads.submit(work)
    done = [threading.Event() for _ in range(2)]
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        for each in done:
            threads.submit(each.set)
        assert len(alive("few")) == 1
        open_gate.set()
        assert all(each.wait(SECONDS) for each in done)


def test_work_for_closed_threads_that_gets_no_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, done = DaemonThreads("ended", 1), threading.Event()
    threads.submit(done.set)
    threads.close()
    assert done.wait(SECONDS)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            threads.submit(done.set)


@pytest.mark.parametrize("closed", ["before", "between", "after", "never"])
def test_waiting_work_is_started_without_more_work(monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    name = f"waiting, closed {closed}"
    threads, done = DaemonThreads(name, 2), [threading.Event() for _ in range(3)]
    if closed == "before":
        threads.close()
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        for each in done[:2]:
            with pytest.raises(WorkWaitsError) as lacking:
                threads.submit(each.set)
            if closed == "between":
                threads.close()
        for _ in range(10):
            with pytest.raises(WorkWaitsError, match="can't start new thread"):
                lacking.value.start()
    if closed == "after":
        threads.close()
    lacking.value.start()
    assert all(each.wait(SECONDS) for each in done[:2])
    lacking.value.start()
    for thread in alive(name) if closed != "never" else ():
        thread.join(SECONDS)
    assert len(alive(name)) == (closed == "never")
    threads.submit(done[2].set)
    assert done[2].wait(SECONDS)
