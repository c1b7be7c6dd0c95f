"""Which method a request uses, and how connections are kept, replaced and bounded."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.errors import (
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
)
from tests.adapter.foundation.sources.prometheus.asking_client import GIVE_UP_SECONDS, HEAD, ONE, ClientOf, ask
from tests.support.raw_server import Peer, answering, raw_server
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("status", ["405 Method Not Allowed", "501 Not Implemented"])
def test_after_a_refused_post_get_is_used_from_then_on(client_of: ClientOf, status: str) -> None:
    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            if request.method == "POST":
                peer.answer(b"", status)
            else:
                peer.answer(ONE)

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        assert ask(client) == [1.0]
        assert [request.method for request in server.requests] == ["POST", "GET", "GET"]
        assert server.requests[1].target.startswith("/api/v1/query?query=up&time=")


def test_simultaneous_queries_whose_post_is_refused_are_each_repeated_by_get(client_of: ClientOf) -> None:
    together = threading.Barrier(2)

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            if request.method == "POST":
                together.wait(GIVE_UP_SECONDS)
                peer.answer(b"", "405 Method Not Allowed")
            else:
                peer.answer(ONE)

    with raw_server(script) as server, ThreadPoolExecutor(2) as threads:
        client = client_of(server.url)
        assert list(threads.map(lambda _: ask(client), range(2))) == [[1.0], [1.0]]
        assert sorted(request.method for request in server.requests) == ["GET", "GET", "POST", "POST"]


def test_a_get_that_is_refused_too_is_an_error(client_of: ClientOf) -> None:
    with (
        raw_server(answering(b"", "405 Method Not Allowed")) as server,
        pytest.raises(UnexpectedAnswerError, match="HTTP 405"),
    ):
        ask(client_of(server.url))


def test_a_connection_closed_while_idle_is_replaced_without_an_error(client_of: ClientOf) -> None:
    closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(ONE)
        peer.close()
        closed.set()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        assert closed.wait(10)
        assert ask(client) == [1.0]
        assert len(server.requests) == 2


@pytest.mark.parametrize("farewell", [Peer.close, Peer.reset])
def test_a_kept_connection_closed_during_the_request_is_replaced_at_once(
    client_of: ClientOf, farewell: Callable[[Peer], None]
) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(ONE)
        if peer.number == 0:
            # The request is on its way when the server closes: a check of the idle connection cannot notice it.
            peer.read()
            farewell(peer)
        else:
            peer.read()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        assert ask(client) == [1.0]
        assert server.connections == 2


def test_after_a_timeout_no_kept_connection_to_a_lost_server_is_tried_again(client_of: ClientOf) -> None:
    together = threading.Barrier(4)

    def script(peer: Peer) -> None:
        peer.read()
        if peer.number < 4:
            together.wait(GIVE_UP_SECONDS * 50)
            peer.answer(ONE)
            # The query for the server's time is answered: if it timed out, it would close the other connections.
            peer.read()
            peer.hang()
        peer.answer(ONE)

    with raw_server(script) as server, ThreadPoolExecutor(4) as threads:
        client = client_of(server.url)
        assert list(threads.map(lambda _: ask(client), range(4))) == [[1.0]] * 4
        with pytest.raises(PrometheusTimeoutError):
            ask(client, timeout_seconds=GIVE_UP_SECONDS)
        assert ask(client) == [1.0]
        assert server.connections == 5


def test_a_slow_query_closes_no_connection_that_was_used_meanwhile(client_of: ClientOf) -> None:
    together, answered = threading.Barrier(2), threading.Event()

    def script(peer: Peer) -> None:
        peer.read()
        together.wait(GIVE_UP_SECONDS * 50)
        peer.answer(ONE)
        while (request := peer.read()) is not None:
            if b"slow" in request.body:
                answered.wait(GIVE_UP_SECONDS * 50)
                continue
            peer.answer(ONE)

    def ask_slowly() -> None:
        client.instant("slow", timeout_seconds=2 * GIVE_UP_SECONDS, limits=AnswerLimits())

    with raw_server(script) as server, ThreadPoolExecutor(2) as threads:
        client = client_of(server.url)
        assert list(threads.map(lambda _: ask(client), range(2))) == [[1.0]] * 2
        slow = threads.submit(ask_slowly)
        until(lambda: any(b"slow" in request.body for request in server.requests))
        assert ask(client) == [1.0]
        assert isinstance(slow.exception(), PrometheusTimeoutError)
        answered.set()
        assert ask(client) == [1.0]
        assert server.connections == 2


def test_a_name_that_moves_to_another_address_is_followed_although_the_former_server_still_answers(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(peer: Peer) -> None:
        while peer.read() is not None:
            peer.answer(ONE)

    with raw_server(script) as former, raw_server(script) as present:
        now, place, look_up = [1000.0], [former], socket.getaddrinfo
        # The deadlines of the requests follow this clock, too.
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda _host, _port, **more: look_up("127.0.0.1", urlsplit(place[0].url).port, **more),
        )
        client = client_of("http://prometheus.example:9090")
        ask(client)
        place[0] = present
        for _ in range(4):
            now[0] += 60.0
            ask(client)
        assert (former.connections, present.connections) == (1, 0), "connections are kept"
        for _ in range(10):
            now[0] += 60.0
            ask(client)
        assert (former.connections, present.connections) == (1, 2)
        assert len(former.requests) == 5


def test_a_request_is_repeated_only_once(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        if peer.number == 0:
            peer.answer(ONE)
            peer.read()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        with pytest.raises(PrometheusUnreachableError, match="closed the connection without an answer"):
            ask(client)
        assert len(server.requests) == 3


def test_a_request_whose_answer_is_cut_off_is_not_repeated(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(ONE)
        peer.read()
        peer.send(HEAD + ONE[:10])

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        with pytest.raises(PrometheusUnreachableError, match="cut the answer off"):
            ask(client)
        assert len(server.requests) == 2


def test_a_connection_that_the_server_wants_closed_is_not_reused(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(ONE, Connection="close")
        peer.hang()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert [ask(client), ask(client)] == [[1.0], [1.0]]
        assert server.connections == 2


@pytest.mark.parametrize("interim", ["102 Processing", "103 Early Hints"])
def test_an_answer_that_follows_an_interim_one_is_never_that_of_the_next_query(
    client_of: ClientOf, interim: str
) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        if peer.number == 0:
            peer.send(f"HTTP/1.1 {interim}\r\n\r\n".encode())
            # The answer to the first query is ready only when the next one has been sent.
            peer.read()
            peer.answer(ONE.replace(b'"1"', b'"777"'))
        else:
            peer.answer(ONE)

    with raw_server(script) as server:
        client = client_of(server.url)
        with pytest.raises(UnexpectedAnswerError, match=f"HTTP {interim[:3]}"):
            ask(client)
        assert ask(client) == [1.0]


def test_one_connection_serves_many_requests(client_of: ClientOf) -> None:
    with raw_server(answering(ONE)) as server:
        client = client_of(server.url)
        for _ in range(20):
            assert ask(client) == [1.0]
        assert server.connections == 1


def test_no_more_connections_are_opened_than_the_pool_allows(client_of: ClientOf) -> None:
    release = threading.Event()

    def script(peer: Peer) -> None:
        while peer.read() is not None:
            release.wait(30)
            peer.answer(ONE)

    with raw_server(script) as server:
        client = client_of(server.url, pool_size=2)
        values: list[float] = []
        threads = [threading.Thread(target=lambda: values.extend(ask(client, timeout_seconds=30))) for _ in range(6)]
        for thread in threads:
            thread.start()
        with pytest.raises(PrometheusTimeoutError, match="all 2 connections were busy"):
            ask(client, timeout_seconds=GIVE_UP_SECONDS)
        release.set()
        for thread in threads:
            thread.join(30)
        assert values == [1.0] * 6
        assert server.connections == 2
