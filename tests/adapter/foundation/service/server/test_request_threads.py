"""Threads are shared fairly among pipelined requests, reserved threads, and expensive and cheap requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TYPE_CHECKING, cast

import pytest

from adapter.foundation.service.server import request_threads
from adapter.foundation.service.server.request_threads import RequestThreads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.service.server.connections.connection import Connection


class Client:
    """A connection, reduced to what turns depend on."""

    def __init__(
        self,
        name: str,
        *,
        sent_ahead: int = 0,
        is_reserved: bool = False,
        is_admitted: bool = False,
        cost_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self.sent_ahead = sent_ahead
        self.is_reserved = is_reserved
        self.is_admitted = is_admitted
        self.cost_seconds = cost_seconds


class Time:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Turns:
    """Turns with two common threads and optionally a reserved one; no request is run."""

    def __init__(self, time: Time, common: ThreadPoolExecutor, reserved: ThreadPoolExecutor | None) -> None:
        self.started: list[str] = []
        self.clients: dict[str, Client] = {}
        self._reserved = reserved
        self.threads = RequestThreads(common, reserved, 2, self._start, time.monotonic)

    def _start(self, pool: ThreadPoolExecutor, conn: Connection) -> None:
        assert (pool is self._reserved) is (self._reserved is not None and conn.is_reserved)
        client = cast("Client", conn)
        self.started.append(client.name)
        self.clients[client.name] = client

    def submit(self, *clients: Client) -> None:
        for client in clients:
            self.threads.submit(cast("Connection", client))

    def use_reserved_thread(self) -> None:
        scheduler = Client("scheduler", is_reserved=True)
        self.submit(scheduler)
        self.finished(scheduler)

    def finished(self, *clients: Client) -> None:
        for client in clients:
            self.threads.release_thread(cast("Connection", client))


@pytest.fixture(name="time")
def _time() -> Time:
    return Time()


@pytest.fixture(name="pools")
def _pools() -> Iterator[tuple[ThreadPoolExecutor, ThreadPoolExecutor]]:
    with ThreadPoolExecutor(1) as common, ThreadPoolExecutor(1) as reserved:
        yield common, reserved


def test_known_clients_start_before_unknown_ones_which_keep_a_share_of_starts(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, pools[0], None)
    busy = [Client(f"busy-{number}") for number in range(4)]
    turns.submit(*busy, *(Client(f"unknown-{number}") for number in range(3)))
    turns.submit(*(Client(f"known-{number}", is_admitted=True) for number in range(5)))
    for _ in range(8):
        turns.finished(busy.pop(0))
        busy.append(turns.clients[turns.started[-1]])
    assert turns.started[4:] == [
        *(f"known-{number}" for number in range(3)),
        "unknown-0",
        *(f"known-{number}" for number in range(3, 5)),
        *(f"unknown-{number}" for number in range(1, 3)),
    ]


def test_pipelined_requests_start_after_those_of_other_clients(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, pools[0], None)
    busy = [Client(f"busy-{number}") for number in range(4)]
    turns.submit(*busy)
    turns.submit(*(Client(f"ahead-{number}", sent_ahead=number) for number in (3, 1, 2)))
    time.now += 0.1
    turns.submit(Client("other"))
    turns.finished(*busy)
    assert turns.started[4:] == ["other", "ahead-1", "ahead-2", "ahead-3"]


def test_a_request_pipelined_far_ahead_starts_eventually(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, pools[0], None)
    busy = [Client(f"busy-{number}") for number in range(4)]
    turns.submit(*busy, Client("ahead", sent_ahead=1_000_000))
    time.now += 6
    turns.submit(Client("other"))
    turns.finished(busy[0])
    assert turns.started[4:] == ["ahead"]


def test_a_reserved_thread_is_free_however_many_other_requests_wait(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, *pools)
    turns.submit(*(Client(f"unknown-{number}") for number in range(100)), Client("scheduler", is_reserved=True))
    assert turns.started == ["unknown-0", "unknown-1", "scheduler"]


def test_beside_a_reserved_thread_all_other_requests_have_a_share_of_the_processor(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, *pools)
    costly = [Client(f"costly-{number}", cost_seconds=0.01) for number in range(1000)]
    turns.use_reserved_thread()
    turns.submit(*costly)
    assert _spent_seconds(turns, costly, time) <= 10 * request_threads.COMMON_SHARE
    assert len(turns.started) > 9 * request_threads.COMMON_SHARE / costly[0].cost_seconds


def test_beside_a_reserved_thread_other_requests_do_not_start_all_at_once(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, *pools)
    costly = [Client(f"costly-{number}", cost_seconds=0.01) for number in range(1000)]
    turns.use_reserved_thread()
    turns.submit(*costly)
    for first in range(0, 40, 2):
        running = [name for name in turns.started if name.startswith("costly")]
        turns.finished(*costly[first : len(running)])
        while turns.threads.seconds_to_next_start() < inf:
            before = len(turns.started)
            time.now += turns.threads.seconds_to_next_start() + 0.0001
            turns.threads.start_waiting()
            assert first < 10 or len(turns.started) <= before + 1, "its cost is taken from the share when it begins"


def test_no_other_request_starts_while_a_reserved_thread_answers(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns, scheduler = Turns(time, *pools), Client("scheduler", is_reserved=True)
    turns.submit(scheduler, Client("unknown"))
    assert (turns.started, turns.threads.seconds_to_others() > 0) == (["scheduler"], True)
    turns.finished(scheduler)
    assert turns.threads.seconds_to_others() == 0
    turns.threads.start_waiting()
    assert turns.started == ["scheduler", "unknown"]


def test_an_answered_request_delays_no_other_whatever_the_state_of_its_connection(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns, scheduler = Turns(time, *pools), Client("scheduler", is_reserved=True)
    turns.submit(scheduler)
    scheduler.is_reserved = False
    turns.finished(scheduler)
    assert turns.threads.seconds_to_others() == 0


def test_constant_scheduler_requests_do_not_block_others_indefinitely(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, *pools)
    turns.submit(*(Client(f"scheduler-{number}", is_reserved=True) for number in range(3)))
    unknown_clients = [Client(f"unknown-{number}") for number in range(2)]
    turns.submit(*unknown_clients)
    for turn in range(1, 3):
        wait = turns.threads.seconds_to_others()
        assert wait == pytest.approx(request_threads.LONGEST_HOLD_SECONDS)
        time.now += wait + 0.0001
        assert turns.threads.seconds_to_others() == 0
        turns.threads.others_had_turn()
        assert turns.started[3:] == [f"unknown-{number}" for number in range(turn)]


def test_unused_reserved_threads_delay_no_other_request(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, *pools)
    turns.use_reserved_thread()
    time.now += request_threads.NEEDED_SECONDS
    costly = [Client(f"costly-{number}", cost_seconds=0.01) for number in range(1000)]
    turns.submit(*costly)
    assert _spent_seconds(turns, costly, time) == pytest.approx(10, abs=0.02)
    turns.use_reserved_thread()
    turns.submit(Client("next"))
    assert turns.started[-1] == "next", "what was taken while nobody was harmed counts for nothing"


def test_the_next_start_is_known_while_a_thread_is_free(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, *pools)
    turns.use_reserved_thread()
    costly = [Client(f"costly-{number}", cost_seconds=1.0) for number in range(3)]
    turns.submit(*costly)
    assert turns.threads.seconds_to_next_start() == inf, "no thread is free"
    turns.finished(costly[0])
    pause = turns.threads.seconds_to_next_start()
    assert 0 < pause < inf
    time.now += pause + 0.001
    assert turns.threads.seconds_to_next_start() == 0
    turns.threads.start_waiting()
    assert turns.started == ["scheduler", "costly-0", "costly-1", "costly-2"]
    assert turns.threads.seconds_to_next_start() == inf, "nobody waits"


def test_without_a_reserved_thread_no_request_is_delayed(
    time: Time, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    turns = Turns(time, pools[0], None)
    costly = [Client(f"costly-{number}", cost_seconds=1.0) for number in range(100)]
    turns.submit(*costly)
    turns.finished(*costly)
    assert len(turns.started) == 100
    assert turns.threads.seconds_to_next_start() == inf


def _spent_seconds(turns: Turns, costly: list[Client], time: Time) -> float:
    """Return the processor time of the requests that end within ten seconds, if one of them ends every 10 ms."""
    ended = 0
    for _ in range(1000):
        running = [name for name in turns.started if name.startswith("costly")]
        turns.finished(*costly[ended : len(running)][:1])
        ended = min(ended + 1, len(running))
        time.now += 0.01
        turns.threads.start_waiting()
    return sum(client.cost_seconds for client in costly[:ended])
