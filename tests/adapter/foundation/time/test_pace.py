"""Bulk work runs in turns, with a distance between them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeTime:
    """A clock that sleeping and working advance."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def pace(time: FakeTime) -> Pace:
    return Pace(0.004, time.sleep, time.clock)


def test_the_first_slice_begins_at_once(pace: Pace, time: FakeTime) -> None:
    with pace.slice():
        pass
    assert time.slept == []


def test_the_pause_is_between_the_end_of_a_slice_and_the_start_of_the_next(pace: Pace, time: FakeTime) -> None:
    begins = []
    for work in (0.001, 0.003, 0.0):
        with pace.slice():
            begins.append(time.now)
            time.now += work
    assert begins == pytest.approx([100.0, 100.005, 100.012])


def test_time_that_has_already_passed_counts_towards_the_pause(pace: Pace, time: FakeTime) -> None:
    with pace.slice():
        pass
    time.now += 0.003
    with pace.slice():
        pass
    assert time.slept == pytest.approx([0.001])
    time.now += 5
    with pace.slice():
        pass
    assert len(time.slept) == 1


def test_a_failed_slice_releases_its_turn(pace: Pace) -> None:
    with pytest.raises(ZeroDivisionError), pace.slice():
        _ = 1 / 0
    with pace.slice():
        pass


def test_a_slice_within_a_slice_takes_its_own_turn(pace: Pace, time: FakeTime) -> None:
    with pace.slice(), pace.slice():
        pass
    assert time.slept == pytest.approx([0.004])


def test_slices_contain_each_item_once_in_order(pace: Pace, time: FakeTime) -> None:
    assert list(pace.slices(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(time.slept) == 3
    assert list(pace.slices([], 3)) == []


def test_another_thread_can_enter_while_a_list_is_processed(pace: Pace) -> None:
    for _ in pace.slices(range(3), 1):
        entered = threading.Event()

        def enter(entered: threading.Event = entered) -> None:
            with pace.slice():
                entered.set()

        other = threading.Thread(target=enter)
        other.start()
        assert entered.wait(10)
        other.join(10)


def test_two_threads_are_never_in_a_slice_together() -> None:
    pace = Pace(0.0005)
    inside: list[str] = []
    seen: list[str] = []
    together: list[list[str]] = []
    both_run = threading.Barrier(2)

    def work(name: str) -> None:
        both_run.wait(30)
        for _ in range(30):
            with pace.slice():
                inside.append(name)
                if len(inside) > 1:
                    together.append(list(inside))
                seen.append(name)
                inside.remove(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert together == []
    assert sorted(seen) == ["a"] * 30 + ["b"] * 30


def test_each_slice_takes_the_next_turn_even_if_the_lane_is_free() -> None:
    """Each request takes the next turn, whether or not the lane is free at that moment."""
    waits: list[float] = []
    pace = Pace(0.5, sleep=waits.append, clock=lambda: 0.0)
    for _ in range(4):
        with pace.slice():
            pass
    assert waits == [0.5, 1.0, 1.5]


def test_an_unpaced_lane_does_not_sleep() -> None:
    assert sum(len(part) for part in UNPACED.slices(range(100_000), 10)) == 100_000


def test_timed_slices_contain_half_a_millisecond_of_items(pace: Pace, time: FakeTime) -> None:
    def made() -> Iterator[int]:
        for number in range(7):
            time.now += 0.0002 if number != 4 else 0.003
            yield number

    assert list(pace.timed(made())) == [[0, 1, 2], [3, 4], [5, 6]]
    assert time.slept == pytest.approx([0.004] * 2)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_timed_slices_lose_nothing(pace: Pace, time: FakeTime, count: int) -> None:
    def made() -> Iterator[int]:
        for number in range(count):
            time.now += 1
            yield number

    assert list(pace.timed(made())) == [[number] for number in range(count)]


def test_a_slice_shows_when_its_time_is_over(pace: Pace, time: FakeTime) -> None:
    with pace.slice() as work:
        assert not work.is_over
        time.now += 0.0006
        assert work.is_over


def test_a_lane_may_have_a_pause_of_its_own(pace: Pace, time: FakeTime) -> None:
    hurried = pace.with_pause(0.001)
    for _ in range(3):
        with hurried.slice():
            pass
    assert time.slept == pytest.approx([0.001] * 2)
    with UNPACED.with_pause(0.001).slice():
        pass
    with UNPACED.with_pause(0.001).slice():
        pass


def test_the_pause_can_be_changed_at_runtime(pace: Pace, time: FakeTime) -> None:
    begins = []
    for pause in (0.0, 0.0, 0.001, 0.001):
        pace.set_pause(pause)
        with pace.slice():
            begins.append(time.now)
            time.now += 0.0005
    assert begins == pytest.approx([100.0, 100.0005, 100.001, 100.0025])


def test_a_process_that_was_stopped_within_a_slice_does_not_pause_as_long_afterwards() -> None:
    """The monotonic clock goes on while a process or a virtual machine is stopped, perhaps for days."""
    now, pauses = [0.0], list[float]()
    pace = Pace(0.004, sleep=pauses.append, clock=lambda: now[0])
    with pace.slice():
        now[0] += 100_000.0
        with pace.slice():
            """Another thread that has gone on first takes the next turn."""
    with pace.slice():
        assert max(pauses, default=0.0) < 2.0
