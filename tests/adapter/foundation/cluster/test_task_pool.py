"""Work that comes and goes runs in as few tasks as it needs at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.watch.task_pool import TaskPool, Work
from tests.adapter.foundation.sources.kubernetes.conftest import Tasks
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event


class Job:
    """Work that says when it begins and ends, and that fails a given number of times."""

    def __init__(self, failures: int = 0) -> None:
        self.began = 0
        self.ended = threading.Event()
        self.work = Work(self._run)
        self._failures = failures

    def _run(self, stop: Event) -> None:
        self.began += 1
        if self._failures:
            self._failures -= 1
            raise RuntimeError("scripted")
        stop.wait(10.0)
        self.ended.set()


def test_a_task_whose_work_has_ended_takes_the_next_work() -> None:
    tasks = Tasks()
    pool = TaskPool(tasks.start, "watch")
    first, second, third = Job(), Job(), Job()
    pool.run(first.work)
    pool.run(second.work)
    until(lambda: first.began and second.began)
    first.work.stop.set()
    until(lambda: pool._unfinished == 1)
    pool.run(third.work)
    until(lambda: third.began)
    assert tasks.names == ["watch 1", "watch 2"]
    tasks.end()
    assert all(job.ended.is_set() for job in (first, second, third))


def test_work_that_fails_continues_with_the_next_attempt_of_its_task() -> None:
    job = Job(failures=1)
    attempts = []
    pool = TaskPool(lambda _, serve: attempts.append(serve), "watch")
    pool.run(job.work)
    with pytest.raises(RuntimeError, match="scripted"):
        attempts[0](threading.Event())
    tasks = Tasks()
    tasks.start("again", attempts[0])
    until(lambda: job.began == 2)
    tasks.end()
    assert job.ended.is_set()


def test_work_without_a_thread_runs_once_a_thread_can_be_started() -> None:
    tasks, threads = Tasks(), [RuntimeError("can't start new thread")]

    def start(name: str, run: Callable[[Event], None]) -> None:
        if threads:
            raise threads.pop()
        tasks.start(name, run)

    pool = TaskPool(start, "watch")
    first, second = Job(), Job()
    pool.run(first.work)
    assert not first.began
    pool.start_missing()
    until(lambda: first.began)
    pool.run(second.work)
    until(lambda: second.began)
    pool.start_missing()
    assert tasks.names == ["watch 1", "watch 2"]
    tasks.end()
