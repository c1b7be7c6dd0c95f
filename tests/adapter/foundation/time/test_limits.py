from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.time.rate_limit import RateLimit
from adapter.foundation.time.single_flight import SingleFlight
from adapter.foundation.time.thread_limit import ThreadLimit, ThreadLimitError

if TYPE_CHECKING:
    from collections.abc import Callable


class TooManyError(Exception):
    """An error that exists only for this refusal."""


class Time:
    """A clock that sleeping advances."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


def limit(time: Time, per_second: float = 10.0, burst: int = 3) -> RateLimit:
    return RateLimit(per_second, burst, clock=lambda: time.seconds, sleep=time.sleep)


def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    time = Time()
    limited = limit(time)
    assert all(limited.take(1.0) for _ in range(13))
    assert time.slept == pytest.approx([0.1] * 10)


def test_a_caller_that_would_wait_too_long_is_refused_at_once_and_uses_no_slot() -> None:
    time = Time()
    limited = limit(time)
    assert [limited.take(0.05) for _ in range(6)] == [True] * 3 + [False] * 3
    assert time.slept == []
    time.seconds += 0.1
    assert [limited.take(0.05) for _ in range(2)] == [True, False]


def test_unused_slots_accumulate_only_up_to_the_burst() -> None:
    time = Time()
    limited = limit(time)
    time.seconds += 3600.0
    assert [limited.take(0.0) for _ in range(4)] == [True, True, True, False]


def test_the_rate_holds_for_many_threads() -> None:
    time = Time()
    limited = RateLimit(1.0, 50, clock=lambda: time.seconds, sleep=time.sleep)
    had: list[bool] = []
    in_threads(200, lambda: had.append(limited.take(0.0)))
    assert had.count(True) == 50


def test_a_thread_limit_refuses_more_threads_and_admits_others_later() -> None:
    thread_limit = ThreadLimit(2, TooManyError)
    with thread_limit.entered(), thread_limit.entered(), pytest.raises(TooManyError), thread_limit.entered():
        pass
    with pytest.raises(ZeroDivisionError), thread_limit.entered():
        _ = 1 / 0
    with thread_limit.entered(), thread_limit.entered():
        pass


def test_a_waiting_thread_is_admitted_when_another_leaves() -> None:
    thread_limit, left = ThreadLimit(1), threading.Event()
    entered = threading.Event()

    def stay() -> None:
        with thread_limit.entered():
            entered.set()
            assert left.wait(20)

    other = threading.Thread(target=stay)
    other.start()
    assert entered.wait(20)
    with pytest.raises(ThreadLimitError), thread_limit.entered(0.01):
        pass
    with pytest.raises(TooManyError), thread_limit.entered(-1.0, TooManyError):
        pass
    left.set()
    with thread_limit.entered(20.0):
        pass
    other.join(20)


def test_a_thousand_threads_share_one_flight() -> None:
    flights: SingleFlight[int] = SingleFlight()
    calls, results = [], []
    open_now = threading.Event()

    def work() -> int:
        calls.append(1)
        assert open_now.wait(20)
        return 7

    threads = [threading.Thread(target=lambda: results.append(flights.join("k", work, 20.0))) for _ in range(1000)]
    for thread in threads:
        thread.start()
    open_now.set()
    for thread in threads:
        thread.join(20)
    assert set(results) == {7}
    assert len(results) == 1000
    assert len(calls) < 1000, "threads that came while it was under way have joined it"


def test_different_keys_and_later_calls_do_not_share_a_flight() -> None:
    flights: SingleFlight[int] = SingleFlight()
    assert [flights.join(key, lambda: 1, 1.0) for key in "aab"] == [1, 1, 1]


def test_a_joining_thread_waits_no_longer_than_allowed() -> None:
    flights: SingleFlight[int] = SingleFlight()
    begun, end = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        assert end.wait(20)
        return 7

    leader = threading.Thread(target=lambda: flights.join("k", work, 1.0))
    leader.start()
    assert begun.wait(20)
    assert flights.join("k", work, 0.0) is None
    end.set()
    leader.join(20)


def test_a_failed_flight_leaves_no_result() -> None:
    flights: SingleFlight[int] = SingleFlight()
    with pytest.raises(ZeroDivisionError):
        flights.join("k", lambda: 1 // 0, 1.0)
    assert flights.join("k", lambda: 2, 1.0) == 2


def in_threads(count: int, work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
