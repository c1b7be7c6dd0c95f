"""Servers that misbehave: every request ends in time, in an error that says what happened."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from adapter.sources.prometheus.client import PrometheusClient
from adapter.sources.prometheus.decoding import AnswerLimits
from adapter.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.sources.prometheus.settings import PrometheusSettings
from adapter.timing.pace import UNPACED
from demo.machine.ports import free_port
from tests.support.raw_server import Peer, answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ONE = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 92\r\n\r\n"
GIVE_UP_SECONDS = 0.4


class ClientOf(Protocol):
    def __call__(self, url: str, **options: Any) -> PrometheusClient: ...  # noqa: ANN401 - settings of any type


@pytest.fixture
def client_of() -> Iterator[ClientOf]:
    """Make a client for an address; closed with the test."""
    with ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(PrometheusClient(PrometheusSettings(url, **options)))


def ask(client: PrometheusClient, *, timeout_seconds: float = 10.0, limits: AnswerLimits | None = None) -> list[float]:
    answer = client.instant("up", timeout_seconds=timeout_seconds, limits=limits or AnswerLimits())
    return [sample.value for batch in answer.batches(UNPACED) for sample in batch]


def drips_head(peer: Peer) -> None:
    peer.read()
    peer.drip(HEAD + ONE)


def drips_header_line(peer: Peer) -> None:
    peer.read()
    peer.send(b"HTTP/1.1 200 OK\r\nX-Endless: ")
    peer.drip(b"a" * 100_000)


def drips_body(peer: Peer) -> None:
    peer.read()
    peer.send(HEAD)
    peer.drip(ONE)


def drips_chunks(peer: Peer) -> None:
    peer.read()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.drip(b"1\r\n \r\n" * 1000)


def never_answers(peer: Peer) -> None:
    peer.read()
    peer.hang()


def stops_in_the_middle(peer: Peer) -> None:
    peer.read()
    peer.send(HEAD + ONE[:40])
    peer.hang()


@pytest.mark.parametrize(
    "script", [drips_head, drips_header_line, drips_body, drips_chunks, never_answers, stops_in_the_middle]
)
def test_a_slow_server_is_left_at_the_deadline(client_of: ClientOf, script: Callable[[Peer], None]) -> None:
    with raw_server(script) as server, pytest.raises(PrometheusTimeoutError, match=r"within 0\.4 s"):
        ask(client_of(server.url), timeout_seconds=GIVE_UP_SECONDS)


def test_a_silent_server_is_left_before_the_deadline(client_of: ClientOf) -> None:
    with raw_server(never_answers) as server, pytest.raises(PrometheusTimeoutError):
        ask(client_of(server.url, read_timeout_seconds=0.2), timeout_seconds=3600)


def test_a_server_that_accepts_no_tls_is_left_at_the_deadline(client_of: ClientOf) -> None:
    with raw_server(Peer.hang) as server, pytest.raises(PrometheusUnreachableError, match=r"no TLS .* too long"):
        ask(client_of(server.url.replace("http:", "https:")), timeout_seconds=GIVE_UP_SECONDS)


def test_a_full_backlog_is_left_after_the_connect_timeout(client_of: ClientOf) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        # The kernel takes one connection that nobody accepts; the next one gets no reply.
        with socket.create_connection(("127.0.0.1", port)):
            client = client_of(f"http://127.0.0.1:{port}", connect_timeout_seconds=0.2)
            with pytest.raises(PrometheusUnreachableError, match=r"no connection to .*: it took too long"):
                ask(client)


def test_nobody_listens(client_of: ClientOf) -> None:
    with pytest.raises(PrometheusUnreachableError, match=r"no connection to http://127.0.0.1:.*: Connection refused"):
        ask(client_of(f"http://127.0.0.1:{free_port()}"))


def test_a_name_that_does_not_exist(client_of: ClientOf) -> None:
    with pytest.raises(PrometheusUnreachableError, match=r"the name 'prometheus.invalid' cannot be resolved"):
        ask(client_of("http://prometheus.invalid:9090"))


def cuts_before_the_head(peer: Peer) -> None:
    peer.read()


def resets_before_the_head(peer: Peer) -> None:
    peer.read()
    peer.reset()


def cuts_in_the_head(peer: Peer) -> None:
    peer.read()
    peer.send(HEAD[:20])


def cuts_in_the_body(peer: Peer) -> None:
    peer.read()
    peer.send(HEAD + ONE[:-1])


def cuts_in_a_chunk(peer: Peer) -> None:
    peer.read()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b" % (len(ONE), ONE[:-1]))


def cuts_between_chunks(peer: Peer) -> None:
    peer.read()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(ONE), ONE))


@pytest.mark.parametrize(
    "script",
    [
        cuts_before_the_head,
        resets_before_the_head,
        cuts_in_the_body,
        cuts_in_a_chunk,
        cuts_between_chunks,
    ],
)
def test_a_cut_answer_is_no_answer_and_asked_for_once(client_of: ClientOf, script: Callable[[Peer], None]) -> None:
    with raw_server(script) as server:
        with pytest.raises(PrometheusUnreachableError, match="cut the answer off"):
            ask(client_of(server.url))
        assert server.connections == 1


def test_a_cut_head_is_no_answer(client_of: ClientOf) -> None:
    with raw_server(cuts_in_the_head) as server, pytest.raises(PrometheusError):
        ask(client_of(server.url))


def test_something_that_is_not_http(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(b"220 mail.example.com ESMTP\r\n")

    with raw_server(script) as server, pytest.raises(UnexpectedAnswerError, match="does not answer in proper HTTP"):
        ask(client_of(server.url))


@pytest.mark.parametrize("status", ["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"])
def test_a_gateway_without_a_server(client_of: ClientOf, status: str) -> None:
    page = b"<html>\n<head><title>Oops</title></head><body>no healthy \x1b[31mupstream</body></html>"
    with raw_server(answering(page, status)) as server:
        with pytest.raises(PrometheusUnreachableError) as caught:
            ask(client_of(server.url))
        told = f"HTTP {status[:3]}: Oops no healthy [31mupstream"
        assert told in str(caught.value)
        assert "\x1b" not in str(caught.value)
        assert len(server.requests) == 1


def test_a_redirect_is_named_without_its_secrets_and_not_followed(client_of: ClientOf) -> None:
    location = "https://user:secret@login.example.com:8443/auth?state=hidden#also"
    with raw_server(answering(b"", "302 Found", Location=location)) as server:
        with pytest.raises(UnexpectedAnswerError) as caught:
            ask(client_of(server.url))
        assert "redirects (HTTP 302) to https://login.example.com:8443/auth, which is not followed" in str(caught.value)
        for secret in ("secret", "hidden", "user", "also"):
            assert secret not in str(caught.value)
        assert len(server.requests) == 1


@pytest.mark.parametrize("location", ["http://[::1/", "http://host:notaport/", ""])
def test_a_redirect_to_nowhere_is_an_unexpected_answer(client_of: ClientOf, location: str) -> None:
    with (
        raw_server(answering(b"", "301 Moved Permanently", Location=location)) as server,
        pytest.raises(UnexpectedAnswerError, match="redirects"),
    ):
        ask(client_of(server.url))


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
@pytest.mark.parametrize("body", [b"no", b'{"status":"error","errorType":"forbidden","error":"no"}'])
def test_refused_credentials_are_told_without_them(client_of: ClientOf, status: str, body: bytes) -> None:
    with raw_server(answering(body, status)) as server:
        with pytest.raises(AuthenticationRefusedError, match=f"refuses the credentials .HTTP {status[:3]}") as caught:
            ask(client_of(server.url.replace("//", "//me:secret@")))
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error_type", "expected"),
    [
        ("400 Bad Request", "bad_data", QueryRefusedError),
        ("422 Unprocessable Entity", "execution", QueryRefusedError),
        ("422 Unprocessable Entity", "422", QueryRefusedError),
        ("503 Service Unavailable", "timeout", PrometheusTimeoutError),
        ("503 Service Unavailable", "canceled", PrometheusUnreachableError),
        ("500 Internal Server Error", "internal", PrometheusUnreachableError),
        ("503 Service Unavailable", "unavailable", PrometheusUnreachableError),
        ("429 Too Many Requests", "too_many_requests", PrometheusUnreachableError),
    ],
)
def test_errors_of_prometheus_by_their_type(
    client_of: ClientOf, status: str, error_type: str, expected: type[PrometheusError]
) -> None:
    body = f'{{"status":"error","errorType":"{error_type}","error":"because of\\nthis"}}'.encode()
    with raw_server(answering(body, status)) as server:
        with pytest.raises(expected, match=r"because of.*this") as caught:
            ask(client_of(server.url))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "expected", "message"),
    [
        ("404 Not Found", UnexpectedAnswerError, "HTTP 404: is the path of the URL right"),
        ("400 Bad Request", UnexpectedAnswerError, "HTTP 400: Client sent an HTTP request"),
        ("413 Payload Too Large", QueryRefusedError, "http_413"),
        ("414 URI Too Long", QueryRefusedError, "too long for a URL"),
    ],
)
def test_statuses_without_prometheus_words(
    client_of: ClientOf, status: str, expected: type[PrometheusError], message: str
) -> None:
    page = b"Client sent an HTTP request to an HTTPS server."
    with raw_server(answering(page, status)) as server, pytest.raises(expected, match=message):
        ask(client_of(server.url))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>please log in</html>",
        b"null",
        b"[]",
        b"{}",
        ONE[:-1],
        b'{"status":"success"}',
        b'{"status":"success","data":null}',
        b'{"status":"error","errorType":"execution","error":"said with a 200"}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"one"]}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1},"value":[1,"1"]}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"\xff"},"value":[1,"1"]}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}}',
        b'{"status":"success","data":{"resultType":"scalar","result":[]}}',
        b'{"status":"success","data":{"resultType":"vector","result":' + b"[" * 50_000,
    ],
)
def test_a_success_that_is_not_prometheus_json_is_unexpected(client_of: ClientOf, body: bytes) -> None:
    with raw_server(answering(body)) as server, pytest.raises(UnexpectedAnswerError):
        ask(client_of(server.url))


def test_more_bytes_than_allowed_are_not_read_to_the_end(client_of: ClientOf) -> None:
    def endless(peer: Peer) -> None:
        peer.read()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not over.is_set():
            peer.send(b"2000\r\n%b\r\n" % (b" " * 0x2000))

    over = threading.Event()
    with raw_server(endless) as server:
        try:
            with pytest.raises(AnswerTooLargeError, match="more than 1,000,000 bytes"):
                ask(client_of(server.url), limits=AnswerLimits(max_bytes=1_000_000))
        finally:
            over.set()


def test_more_samples_than_allowed_are_not_read_to_the_end(client_of: ClientOf) -> None:
    def endless(peer: Peer) -> None:
        peer.read()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + ONE[:-3])
        while not over.is_set():
            peer.send(b',{"metric":{},"value":[1,"1"]}' * 100)

    over = threading.Event()
    with raw_server(endless) as server:
        try:
            with pytest.raises(AnswerTooLargeError, match="more than 100,000 samples"):
                ask(client_of(server.url))
        finally:
            over.set()


def test_a_compressed_answer_is_read_though_not_asked_for(client_of: ClientOf) -> None:
    with raw_server(answering(gzip.compress(ONE), Content_Encoding="gzip")) as server:
        assert ask(client_of(server.url)) == [1.0]
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_decompression_bomb_is_stopped_at_the_limit(client_of: ClientOf) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    with (
        raw_server(answering(bomb, Content_Encoding="gzip")) as server,
        pytest.raises(AnswerTooLargeError, match="more than 1,000,000 bytes"),
    ):
        ask(client_of(server.url), limits=AnswerLimits(max_bytes=1_000_000))


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        # Named, since the bytes hold the time: processes that run tests side by side must agree on their names.
        pytest.param(gzip.compress(ONE)[:-12], "gzip", id="gzip that is cut"),
        pytest.param(ONE, "gzip", id="none, called gzip"),
        pytest.param(zlib.compress(ONE), "deflate", id="deflate"),
        pytest.param(ONE, "br", id="none, called br"),
    ],
)
def test_a_broken_or_foreign_compression_is_no_answer(client_of: ClientOf, body: bytes, encoding: str) -> None:
    with (
        raw_server(answering(body, Content_Encoding=encoding)) as server,
        pytest.raises(UnexpectedAnswerError, match=r"compression|encoded"),
    ):
        ask(client_of(server.url))


@pytest.mark.parametrize("status", ["405 Method Not Allowed", "501 Not Implemented"])
def test_where_post_is_refused_get_is_used_from_then_on(client_of: ClientOf, status: str) -> None:
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


def test_get_that_is_refused_as_well_is_an_error(client_of: ClientOf) -> None:
    with (
        raw_server(answering(b"", "405 Method Not Allowed")) as server,
        pytest.raises(UnexpectedAnswerError, match="HTTP 405"),
    ):
        ask(client_of(server.url))


def test_a_connection_closed_while_idle_is_replaced_unnoticed(client_of: ClientOf) -> None:
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
def test_a_kept_connection_closed_under_the_request_is_replaced_at_once(
    client_of: ClientOf, farewell: Callable[[Peer], None]
) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(ONE)
        if peer.number == 0:
            # The request is on its way when the server closes: what a look at the idle connection cannot tell.
            peer.read()
            farewell(peer)
        else:
            peer.read()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        assert ask(client) == [1.0]
        assert server.connections == 2


def test_a_request_is_sent_a_second_time_only(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        if peer.number == 0:
            peer.answer(ONE)
            peer.read()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert ask(client) == [1.0]
        with pytest.raises(PrometheusUnreachableError, match="closed the connection without one"):
            ask(client)
        assert len(server.requests) == 3


def test_a_kept_connection_cut_within_the_answer_is_no_reason_to_ask_again(client_of: ClientOf) -> None:
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


def test_a_connection_that_the_server_wants_closed_is_not_used_again(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(ONE, Connection="close")
        peer.hang()

    with raw_server(script) as server:
        client = client_of(server.url)
        assert [ask(client), ask(client)] == [[1.0], [1.0]]
        assert server.connections == 2


def test_one_connection_serves_many_requests(client_of: ClientOf) -> None:
    with raw_server(answering(ONE)) as server:
        client = client_of(server.url)
        for _ in range(20):
            assert ask(client) == [1.0]
        assert server.connections == 1


def test_no_more_connections_than_the_pool_has(client_of: ClientOf) -> None:
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
