"""Memory that large answers of one server take together, however many arrive at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.deadlines import Deadline, DeadlinePassedError
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError, PrometheusUnreachableError
from adapter.foundation.sources.prometheus.transport import transport
from adapter.foundation.sources.prometheus.transport.answer_memory import AnswerMemory, ReceivedBody
from tests.adapter.foundation.sources.prometheus.asking_client import GIVE_UP_SECONDS, ask
from tests.support.raw_server import raw_server
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.adapter.foundation.sources.prometheus.asking_client import ClientOf
    from tests.support.raw_server import Peer

PATIENCE_SECONDS = 30.0
PIECE = 100
MOST, LARGEST = 1000, 500

LARGE = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"x":"%b"},"value":[1,"1"]}]}}' % (
    b"x" * 3_000_000
)


def grow(memory: AnswerMemory, body: ReceivedBody, size: int = PIECE, seconds: float = PATIENCE_SECONDS) -> None:
    body += bytes(size)
    memory.wait_to_grow(body, Deadline(seconds))


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(1, LARGEST), min_size=1, max_size=12))
def test_all_answers_are_read_and_at_most_one_exceeds_the_limit(sizes: list[int]) -> None:
    memory, held = AnswerMemory(MOST, small_bytes=0), []

    def receive(size: int) -> int:
        body = ReceivedBody()
        with memory.receiving(body):
            while len(body) < size:
                grow(memory, body, min(PIECE, size - len(body)))
                held.append(memory.held_bytes)
        return len(body)

    with ThreadPoolExecutor(len(sizes)) as pool:
        assert sorted(pool.map(receive, sizes)) == sorted(sizes)
    # A piece is counted when it has come: each of those that wait has one that it may not add to.
    assert max(held) <= MOST + LARGEST + PIECE * len(sizes)
    assert memory.held_bytes == 0


def test_the_first_answer_continues_while_others_wait() -> None:
    memory, first, second = AnswerMemory(MOST, small_bytes=0), ReceivedBody(), ReceivedBody()
    with memory.receiving(first):
        grow(memory, first, 900)
        with memory.receiving(second):
            with pytest.raises(DeadlinePassedError, match="other large answers of it were being read"):
                grow(memory, second, 200, seconds=0.01)
            grow(memory, first, 900, seconds=0.01)


def test_a_received_body_counts_until_it_is_no_longer_referenced() -> None:
    memory, first, second = AnswerMemory(MOST, small_bytes=0), ReceivedBody(), ReceivedBody()
    with memory.receiving(first):
        grow(memory, first, 900)
    kept = memoryview(first)
    del first
    with memory.receiving(second):
        # Nothing else is received, so this one need not wait.
        grow(memory, second, 200, seconds=0.01)
        assert memory.held_bytes == 1100
        kept.release()
        del kept
        assert memory.held_bytes == 200
    del second
    assert memory.held_bytes == 0


def test_slowly_processed_answers_also_stay_within_the_limit() -> None:
    memory, kept = AnswerMemory(MOST, small_bytes=0), list[ReceivedBody]()
    for size in (900, LARGEST):
        kept.append(ReceivedBody())
        with memory.receiving(kept[-1]):
            grow(memory, kept[-1], size, seconds=0.01)
    third = ReceivedBody()
    with memory.receiving(third):
        with pytest.raises(DeadlinePassedError):
            grow(memory, third, seconds=0.01)
        # The one on top has been read.
        del kept[1]
        grow(memory, third, seconds=0.01)


def test_a_failed_body_is_released_although_it_is_still_referenced() -> None:
    memory, failed, second, third = AnswerMemory(MOST, small_bytes=0), ReceivedBody(), ReceivedBody(), ReceivedBody()

    def fail() -> None:
        with memory.receiving(failed):
            grow(memory, failed, 2 * MOST)
            raise ValueError("cut off")

    with memory.receiving(second):
        with pytest.raises(ValueError, match="cut off"):
            fail()
        assert (len(failed), memory.held_bytes) == (0, 0)
        grow(memory, second, 2 * MOST, seconds=0.01)
        with memory.receiving(third), pytest.raises(DeadlinePassedError):
            grow(memory, third, seconds=0.01)


def test_a_waiting_answer_continues_when_a_body_is_released() -> None:
    memory, started = AnswerMemory(MOST, small_bytes=0), threading.Event()
    done, first, second = ReceivedBody(), ReceivedBody(), ReceivedBody()
    with memory.receiving(done):
        grow(memory, done, 500)
    with memory.receiving(first):
        grow(memory, first, 400)

        def receive() -> None:
            with memory.receiving(second):
                started.set()
                grow(memory, second, 300)

        thread = threading.Thread(target=receive)
        thread.start()
        assert started.wait(PATIENCE_SECONDS)
        del done
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_a_small_body_never_waits() -> None:
    memory, large, small = AnswerMemory(MOST, small_bytes=PIECE), ReceivedBody(), ReceivedBody()
    with memory.receiving(large):
        grow(memory, large, 5 * MOST)
        with memory.receiving(small):
            grow(memory, small, PIECE, seconds=0.0)
    assert memory.held_bytes == 5 * MOST


def test_many_large_answers_of_one_server_are_all_read_one_after_the_other(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = AnswerMemory(2 * len(LARGE), small_bytes=0)
    monkeypatch.setattr(transport, "AnswerMemory", lambda: memory)

    def script(peer: Peer) -> None:
        while peer.read() is not None:
            peer.answer(LARGE)

    with raw_server(script) as server:
        client = client_of(server.url, pool_size=8)
        # The clock is checked once; its answer is never a large one elsewhere.
        ask(client)
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda _: ask(client, timeout_seconds=PATIENCE_SECONDS), range(16))) == [[1.0]] * 16
    assert memory.held_bytes == 0


def test_a_trickling_answer_delays_large_answers_but_not_small_ones(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = AnswerMemory(len(LARGE), small_bytes=100_000)
    monkeypatch.setattr(transport, "AnswerMemory", lambda: memory)

    def script(peer: Peer) -> None:
        peer.read()
        if peer.number == 0:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + LARGE)
            peer.hang()
        elif peer.number == 1:
            peer.answer(LARGE)
        else:
            peer.answer(LARGE.replace(b"xx", b""))

    with raw_server(script) as server:
        client = client_of(server.url)
        with ThreadPoolExecutor(2) as pool:
            trickling = pool.submit(ask, client, timeout_seconds=2 * PATIENCE_SECONDS)
            until(lambda: memory.held_bytes > len(LARGE) - 100_000, PATIENCE_SECONDS)
            with pytest.raises(PrometheusTimeoutError):
                ask(client, timeout_seconds=GIVE_UP_SECONDS)
            assert ask(client) == [1.0], "a small one"
            server.over.set()
            with pytest.raises(PrometheusUnreachableError, match="cut the answer off"):
                trickling.result(PATIENCE_SECONDS)
