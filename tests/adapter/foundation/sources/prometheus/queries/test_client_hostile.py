"""Answers that are cut, not Prometheus's, refused or too large: no value is read, and the error says what happened."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.time.pace import UNPACED
from tests.adapter.foundation.sources.prometheus.asking_client import HEAD, ONE, ClientOf, ask
from tests.support.raw_server import Peer, answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient


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
def test_a_cut_answer_is_an_error_and_not_requested_again(client_of: ClientOf, script: Callable[[Peer], None]) -> None:
    with raw_server(script) as server:
        with pytest.raises(PrometheusUnreachableError, match="cut the answer off"):
            ask(client_of(server.url))
        assert server.connections == 1


def test_a_cut_head_is_an_error(client_of: ClientOf) -> None:
    with raw_server(cuts_in_the_head) as server, pytest.raises(PrometheusError):
        ask(client_of(server.url))


def test_an_answer_that_is_not_http_is_unexpected(client_of: ClientOf) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(b"220 mail.example.com ESMTP\r\n")

    with raw_server(script) as server, pytest.raises(UnexpectedAnswerError, match="does not answer in valid HTTP"):
        ask(client_of(server.url))


@pytest.mark.parametrize("status", ["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"])
def test_the_error_of_a_gateway_without_a_server_has_its_message(client_of: ClientOf, status: str) -> None:
    page = b"<html>\n<head><title>Oops</title></head><body>no healthy \x1b[31mupstream</body></html>"
    with raw_server(answering(page, status)) as server:
        with pytest.raises(PrometheusUnreachableError) as caught:
            ask(client_of(server.url))
        message = f"HTTP {status[:3]}: Oops no healthy [31mupstream"
        assert message in str(caught.value)
        assert "\x1b" not in str(caught.value)
        assert len(server.requests) == 1


def test_a_redirect_is_reported_without_its_secrets_and_not_followed(client_of: ClientOf) -> None:
    location = "https://user:secret@login.example.com:8443/auth?state=hidden#also"
    with raw_server(answering(b"", "302 Found", Location=location)) as server:
        with pytest.raises(UnexpectedAnswerError) as caught:
            ask(client_of(server.url))
        assert "redirects (HTTP 302) to https://login.example.com:8443/auth, which is not followed" in str(caught.value)
        for secret in ("secret", "hidden", "user", "also"):
            assert secret not in str(caught.value)
        assert len(server.requests) == 1


@pytest.mark.parametrize("location", ["http://[::1/", "http://host:notaport/", ""])
def test_a_redirect_to_an_invalid_address_is_an_unexpected_answer(client_of: ClientOf, location: str) -> None:
    with (
        raw_server(answering(b"", "301 Moved Permanently", Location=location)) as server,
        pytest.raises(UnexpectedAnswerError, match="redirects"),
    ):
        ask(client_of(server.url))


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
@pytest.mark.parametrize("body", [b"no", b'{"status":"error","errorType":"forbidden","error":"no"}'])
def test_refused_credentials_are_reported_without_being_shown(client_of: ClientOf, status: str, body: bytes) -> None:
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
        ("503 Service Unavailable", "503", PrometheusUnreachableError),
        ("500 Internal Server Error", "server_error", PrometheusUnreachableError),
        ("429 Too Many Requests", "too_many_requests", PrometheusUnreachableError),
    ],
)
def test_errors_of_prometheus_are_classified_by_their_type(
    client_of: ClientOf, status: str, error_type: str, expected: type[PrometheusError]
) -> None:
    body = f'{{"status":"error","errorType":"{error_type}","error":"because of\\nthis"}}'.encode()
    with raw_server(answering(body, status)) as server:
        with pytest.raises(expected, match=r"because of.*this") as caught:
            ask(client_of(server.url))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "message", "error_type"),
    [
        (
            "400 Bad Request",
            "too long query; got 18077 bytes; mustn't exceed `-search.maxQueryLen=16384` bytes",
            "bad_data",
        ),
        ("400 Bad Request", "error when executing query: unsupported function", "bad_data"),
        ("422 Unprocessable Entity", "the number of matching timeseries exceeds 30000", "execution"),
    ],
)
def test_the_types_of_victoriametrics_are_those_of_prometheus(
    client_of: ClientOf, status: str, message: str, error_type: str
) -> None:
    """Its types are numbers; what is refused for its text, and what only while it is evaluated, differ by them."""
    body = json.dumps({"status": "error", "errorType": status[:3], "error": message}).encode()
    with raw_server(answering(body, status)) as server, pytest.raises(QueryRefusedError) as caught:
        ask(client_of(server.url))
    assert caught.value.error_type == error_type
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("status", "expected", "message"),
    [
        ("404 Not Found", UnexpectedAnswerError, "HTTP 404: check the path of the URL"),
        ("400 Bad Request", UnexpectedAnswerError, "HTTP 400: Client sent an HTTP request"),
        ("413 Payload Too Large", QueryRefusedError, "http_413"),
        ("414 URI Too Long", QueryRefusedError, "too long for a URL"),
    ],
)
def test_statuses_without_an_error_of_prometheus_are_classified(
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


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\r\n<!DOCTYPE html><title>Sign in</title>", "it is a page for browsers, such as a proxy's login"),
        (b"", "it is empty"),
    ],
    ids=["a login", "nothing"],
)
def test_the_error_names_what_came_instead_of_json(client_of: ClientOf, body: bytes, words: str) -> None:
    with raw_server(answering(body)) as server, pytest.raises(UnexpectedAnswerError) as caught:
        ask(client_of(server.url))
    assert caught.value.cause == f"the answer is not JSON in the format of Prometheus's API: {words}"


TOKEN = "token-of-the-service-account"


def echoes(status: str, body: str) -> Callable[[Peer], None]:
    """Answer with the request's own credentials in place of `{token}` and `{key}`."""

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            token = request.headers["authorization"].removeprefix("Bearer ")
            shown = body.replace("{token}", token).replace("{key}", request.headers["x-api-key"])
            peer.answer(shown.encode(), status, Location=f"https://login/{token}")

    return script


def client_with_secrets(client_of: ClientOf, url: str, folder: Path) -> PrometheusClient:
    token = folder / "token"
    token.write_text(TOKEN)
    return client_of(url, token_file=token, headers=(("X-Api-Key", "key-of-the-tenant"), ("X-Scope-OrgID", "tenant-a")))


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        ("400 Bad Request", "refused: Bearer {token} {key}", "refused: Bearer … …"),
        ("401 Unauthorized", "refused: Bearer {token} {key}", "refused: Bearer … …"),
        ("502 Bad Gateway", "refused: Bearer {token} {key}", "refused: Bearer … …"),
        ("502 Bad Gateway", f"refused: Bearer {TOKEN[:20]}...", "refused: Bearer …..."),
        ("302 Found", "", "redirects (HTTP 302) to https://login/…, which is not followed: give the final address"),
        ("422 Unprocessable", '{"status":"error","errorType":"execution","error":"{token} {key}"}', "(execution): … …"),
        ("200 OK", '{"status":"error","error":"{token} {key}"}', "the answer has the status error: … …"),
        ("200 OK", '{"status":"{token}","error":""}', "the answer has the status …"),
    ],
)
def test_credentials_repeated_by_an_answer_are_hidden_in_the_error(
    client_of: ClientOf, tmp_path: Path, status: str, body: str, shown: str
) -> None:
    with raw_server(echoes(status, body)) as server, pytest.raises(PrometheusError) as caught:
        ask(client_with_secrets(client_of, server.url, tmp_path))
    assert caught.value.cause.endswith(shown)
    assert TOKEN not in repr(caught.value)


def test_credentials_repeated_by_a_success_are_hidden_in_warnings_and_labels(
    client_of: ClientOf, tmp_path: Path
) -> None:
    vector = (
        """{"resultType":"vector","result":[{"metric":{"sent":"Bearer {token}","of":"tenant-a"},"value":[1,"1"]}]}"""
    )
    warned = """"warnings":["{token}","{key}"]"""
    script = echoes("200 OK", f'{{"status":"success","data":{vector},{warned}}}')
    with raw_server(script) as server:
        answer = client_with_secrets(client_of, server.url, tmp_path).instant("up", timeout_seconds=10)
        samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    assert answer.warnings == ("…", "…")
    assert [sample.labels for sample in samples] == [{"sent": "Bearer …", "of": "tenant-a"}]


def test_credentials_repeated_by_series_are_hidden_in_labels(client_of: ClientOf, tmp_path: Path) -> None:
    script = echoes("200 OK", '{"status":"success","data":[{"__name__":"up","sent":"{token}"}],"warnings":["{key}"]}')
    with raw_server(script) as server:
        answer = client_with_secrets(client_of, server.url, tmp_path).series("up", start=0, timeout_seconds=10)
        found = [labels for batch in answer.batches(UNPACED) for labels in batch]
    assert (found, answer.warnings) == ([{"__name__": "up", "sent": "…"}], ("…",))


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


def test_a_compressed_answer_is_read_although_not_requested(client_of: ClientOf) -> None:
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
def test_a_broken_or_unknown_compression_is_an_error(client_of: ClientOf, body: bytes, encoding: str) -> None:
    with (
        raw_server(answering(body, Content_Encoding=encoding)) as server,
        pytest.raises(UnexpectedAnswerError, match=r"compression|encoded"),
    ):
        ask(client_of(server.url))
