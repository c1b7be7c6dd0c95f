from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.runtime.tasks import Tasks
from adapter.foundation.time.backoff import Backoff
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Recorded:
    """TaskEvents that record their calls."""

    def __init__(self) -> None:
        self.results: list[tuple[str, str]] = []
        self.overdue: dict[str, Callable[[], bool]] = {}

    def add_task(self, task: str, overdue: Callable[[], bool]) -> None:
        self.overdue[task] = overdue

    def record_run(self, task: str, result: str) -> None:
        self.results.append((task, result))


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def events() -> Recorded:
    return Recorded()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tasks(events: Recorded, clock: Clock) -> Iterator[Tasks]:
    made = Tasks(events, backoff=lambda: Backoff(0.001, 0.002), clock=clock)
    yield made
    made.stopping.set()


def test_a_periodic_task_runs_repeatedly(tasks: Tasks, events: Recorded) -> None:
    tasks.periodic("tick", lambda: None, every_seconds=0, deadline_seconds=1)
    until(lambda: len(events.results) >= 3)
    assert set(events.results) == {("tick", "ok")}


def test_the_period_counts_from_start_to_start(events: Recorded, clock: Clock) -> None:
    waits: list[float] = []
    tasks = Tasks(events, clock=clock)
    wait = tasks.stopping.wait

    def noted(timeout: float | None = None) -> bool:
        waits.append(timeout or 0.0)
        tasks.stopping.set()
        return wait(0)

    tasks.stopping.wait = noted  # type: ignore[method-assign] # what the task sleeps on is what is looked at

    def take_three_seconds() -> None:
        clock.now += 3

    tasks.periodic("tick", take_three_seconds, every_seconds=10, deadline_seconds=5)
    until(lambda: waits)
    assert waits == [7.0]


def test_a_failing_task_is_tried_again_and_logged_once(
    tasks: Tasks, events: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    failures = iter([ConnectionError(f"at {number}") for number in range(3)])

    def fail_thrice() -> None:
        failure = next(failures, None)
        if failure:
            raise failure

    tasks.periodic("refresh", fail_thrice, every_seconds=0, deadline_seconds=1)
    until(lambda: ("refresh", "ok") in events.results)
    assert events.results[:4] == [("refresh", "error")] * 3 + [("refresh", "ok")]
    assert caplog.messages == ["a task failed and will be retried", "a task works again"]
    assert caplog.records[0].exc_info is not None
    assert caplog.records[1].__dict__["fields"] == {"task": "refresh", "failures": 3}


def test_a_task_whose_failure_cannot_be_reported_is_tried_again(
    tasks: Tasks, events: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, a failure while memory was short ended the task for good."""
    failures = iter([MemoryError()])

    def lack_memory_once(*_: object, **_options: object) -> None:
        for failure in failures:
            raise failure

    def fail() -> None:
        raise ValueError

    monkeypatch.setattr("adapter.foundation.service.runtime.tasks._log.error", lack_memory_once)
    tasks.periodic("refresh", fail, every_seconds=0, deadline_seconds=1)
    until(lambda: len(events.results) >= 2)
    assert set(events.results) == {("refresh", "error")}


def test_another_failure_is_logged_too(tasks: Tasks, events: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    failures: Iterator[Exception] = iter([ValueError(), KeyError(), ValueError(), ValueError()])

    def fail() -> None:
        failure = next(failures, None)
        if failure:
            raise failure

    tasks.periodic("refresh", fail, every_seconds=0, deadline_seconds=1)
    until(lambda: ("refresh", "ok") in events.results)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [type(error.exc_info[1]) for error in errors if error.exc_info] == [ValueError, KeyError, ValueError]


def test_a_run_beyond_its_deadline_is_overdue_while_it_runs_and_counted_as_late(
    tasks: Tasks, events: Recorded, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def take_long() -> None:
        begun.set()
        go_on.wait(20)

    tasks.periodic("refresh", take_long, every_seconds=3600, deadline_seconds=5)
    assert begun.wait(20)
    assert not events.overdue["refresh"]()
    clock.now += 6
    assert events.overdue["refresh"]()
    go_on.set()
    until(lambda: events.results == [("refresh", "late")])
    assert not events.overdue["refresh"]()
    assert "a task exceeded its deadline" in caplog.messages


def test_a_running_task_works_until_the_stop(tasks: Tasks) -> None:
    ended = []

    def watch(stop: threading.Event) -> None:
        while not stop.wait(20):
            pass
        ended.append(stop.is_set())

    tasks.running("watch", watch)
    assert tasks.stop(20) == ()
    assert ended == [True]


def test_a_running_task_that_returns_is_started_again(tasks: Tasks, events: Recorded) -> None:
    runs: list[threading.Event] = []
    tasks.running("watch", runs.append)
    until(lambda: len(runs) >= 3)
    assert set(events.results) == {("watch", "error")}


@pytest.mark.parametrize(("seconds", "lines", "waits"), [(59.0, 1, [0.5, 1.0, 2.0]), (61.0, 3, [0.5, 0.5, 0.5])])
def test_a_failure_after_a_minute_of_work_is_a_new_one(
    events: Recorded, clock: Clock, caplog: pytest.LogCaptureFixture, seconds: float, lines: int, waits: list[float]
) -> None:
    tasks, waited = Tasks(events, backoff=lambda: Backoff(jitter_ratio=0.0), clock=clock), []

    def noted(timeout: float | None = None) -> bool:
        waited.append(timeout)
        if len(waited) == len(waits):
            tasks.stopping.set()
        return False

    tasks.stopping.wait = noted  # type: ignore[method-assign] # what the task sleeps on is what is looked at

    def work(_stop: threading.Event) -> None:
        clock.now += seconds
        raise ConnectionError("at the same place")

    tasks.running("watch", work)
    until(lambda: not tasks.are_running())
    assert waited == waits
    assert caplog.messages == ["a task failed and will be retried"] * lines


def test_read_only_tasks_are_not_waited_for_at_shutdown(events: Recorded) -> None:
    tasks, release, begun = Tasks(events), threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        release.wait(60)

    tasks.running("watch", lambda _: hang(), reads_only=True)
    tasks.periodic("list", hang, every_seconds=3600, deadline_seconds=60, reads_only=True)
    assert all(begun.acquire(timeout=20) for _ in range(2))
    # Far more than pytest allows a test.
    assert tasks.stop(7200) == ()
    assert tasks.are_running()
    release.set()
    until(lambda: not tasks.are_running())


def test_a_task_that_does_not_end_is_named_and_abandoned(events: Recorded) -> None:
    tasks, release = Tasks(events), threading.Event()

    def work(until: Callable[[float], bool]) -> None:
        until(60)

    tasks.running("stuck", lambda _: work(release.wait))
    tasks.running("good", lambda stop: work(stop.wait))
    assert tasks.stop(0.2) == ("stuck",)
    release.set()


def test_a_task_without_a_thread_is_an_error_and_does_not_block_shutdown(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            tasks.running("work", lambda _: None)
    assert tasks.stop(1.0) == ()
