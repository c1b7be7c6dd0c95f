"""The slow work of one payer delays no other payer."""

from __future__ import annotations

import threading
from functools import partial

from recommender.running.inputs.fair_threads import FairThreads
from tests.support.waiting import until


def test_a_payer_with_slow_work_delays_no_other_payer_and_all_of_its_work_is_done() -> None:
    release = threading.Event()
    done: list[int] = []

    def wait(number: int) -> None:
        release.wait(30)
        done.append(number)

    threads = FairThreads("test", 3, 2)
    for number in range(6):
        threads.submit("slow", partial(wait, number))
    finished = threading.Event()
    for number in range(20):
        threads.submit("quick", finished.set if number == 19 else lambda: None)
    assert finished.wait(30)
    assert done == []
    release.set()
    until(lambda: sorted(done) == list(range(6)))


def test_waiting_payers_take_turns() -> None:
    release = threading.Event()
    order: list[str] = []

    def begin() -> None:
        release.wait(30)

    threads = FairThreads("test", 1, 1)
    threads.submit("first", begin)
    for payer in ("a", "a", "a", "b", "c", "b"):
        threads.submit(payer, partial(order.append, payer))
    release.set()
    until(lambda: len(order) == 6)
    assert order == ["a", "b", "c", "a", "b", "a"]


def test_failed_work_releases_its_thread() -> None:
    def fail() -> None:
        raise ValueError("it fails")

    threads, done = FairThreads("test", 1, 1), threading.Event()
    threads.submit("a", fail)
    threads.submit("a", done.set)
    assert done.wait(30)
