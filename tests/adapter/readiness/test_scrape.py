from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from adapter.readiness.scrape import LONGEST_LINE, ScrapeError, parse_metrics_url, read_total
from adapter.readiness.selector import parse_series_choice
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.raw_server import Peer

OPEN = parse_series_choice("open")
PATIENCE_SECONDS = 20.0
SOON_SECONDS = 0.2
HEAD = b"HTTP/1.1 200 OK\r\n"


def sending(data: bytes) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(data)

    return script


def hanging_after(data: bytes) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(data)
        peer.hang()

    return script


def resetting(peer: Peer) -> None:
    peer.read()
    peer.reset()


def hanging(peer: Peer) -> None:
    peer.hang()


def dripping(peer: Peer) -> None:
    peer.read()
    peer.drip(HEAD + b"Content-Length: 700\r\n\r\n" + 700 * b"#")


def read(script: Callable[[Peer], None], seconds: float = PATIENCE_SECONDS) -> float:
    with raw_server(script) as server:
        return read_total(parse_metrics_url(f"{server.url}/metrics"), OPEN, seconds)


WHOLE = {
    "with a length": answering(b"open 7\n"),
    "without the last line feed": answering(b"open 7"),
    "with carriage returns": answering(b"open 7\r\n"),
    "in many pieces": answering(b"a 1\n" * 50_000 + b"open 7\n" + b"b 1\n" * 50_000),
    "OpenMetrics": answering(b"open 7\n# EOF\n", Content_Type="application/openmetrics-text; version=1.0.0"),
    "OpenMetrics without a line feed": answering(b"open 7\n# EOF", Content_Type="application/openmetrics-text"),
    "up to the end of the connection": sending(HEAD + b"\r\nopen 7\n"),
    "HTTP/1.0": sending(b"HTTP/1.0 200 OK\r\n\r\nopen 7\n"),
    "chunked": sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nope\r\n4\r\nn 7\n\r\n0\r\n\r\n"),
    "after an interim answer": sending(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 6\r\n\r\nopen 7"),
    "on a connection that stays open": hanging_after(HEAD + b"Content-Length: 7\r\n\r\nopen 7\n"),
}


@pytest.mark.parametrize("form", WHOLE)
def test_whole_answers_are_read(form: str) -> None:
    assert read(WHOLE[form]) == 7


BROKEN = {
    "redirect": (answering(b"open 7\n", "302 Found", Location="/x"), "bad_answer", "302: redirects are not followed"),
    "server error": (answering(b"open 7\n", "500 Oops"), "bad_answer", "status 500"),
    "no content": (answering(b"", "204 No Content"), "bad_answer", "status 204"),
    "compressed": (answering(b"\x1f\x8b", Content_Encoding="gzip"), "bad_answer", "compresses"),
    "too short": (sending(HEAD + b"Content-Length: 70\r\n\r\nopen 7\n"), "bad_answer", "broke off after 7 bytes"),
    "half a line": (sending(HEAD + b"\r\nopen 7"), "bad_answer", "broke off after 6 bytes"),
    "half a chunk": (
        sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n7\r\nopen 7\n\r\n9\r\n"),
        "bad_answer",
        "broke off",
    ),
    "OpenMetrics without its end": (
        answering(b"open 7\n", Content_Type="application/openmetrics-text; version=1.0.0"),
        "bad_answer",
        "broke off after 7 bytes",
    ),
    "long line": (answering(b"x" * (3 * LONGEST_LINE) + b"\nopen 7\n"), "bad_answer", "line of more than"),
    "not HTTP": (sending(b"SSH-2.0-OpenSSH\r\n"), "bad_answer", "not valid HTTP"),
    "closed": (sending(b""), "unreachable", "closed connection without response"),
    "reset": (resetting, "unreachable", "cannot be reached"),
    "empty": (answering(b""), "missing", "no series open"),
    "HTML": (answering(b"<html>open</html>\n"), "missing", "no series open"),
    "no number": (answering(b"open NaN\n"), "bad_value", "'NaN' is not a number of connections"),
}


@pytest.mark.parametrize("form", BROKEN)
def test_broken_answers_are_errors(form: str) -> None:
    script, result, message = BROKEN[form]
    with pytest.raises(ScrapeError, match=message) as caught:
        read(script)
    assert (caught.value.result, "\n" in str(caught.value)) == (result, False)


SLOW = {
    "hangs": hanging,
    "hangs in the head": hanging_after(HEAD),
    "hangs in the body": hanging_after(HEAD + b"Content-Length: 70\r\n\r\nopen 7\n"),
    "drips": dripping,
}


@pytest.mark.parametrize("form", SLOW)
def test_a_read_of_a_hanging_or_trickling_application_ends_at_the_deadline(form: str) -> None:
    with pytest.raises(ScrapeError, match=r"within 0\.2 s") as caught:
        read(SLOW[form], SOON_SECONDS)
    assert caught.value.result == "late"


def test_an_endless_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.readiness.scrape.MOST_BYTES", 1 << 20)

    def endless(peer: Peer) -> None:
        peer.read()
        peer.send(HEAD + b"\r\n")
        while True:
            peer.send(b"a 1\n" * 10_000)

    with pytest.raises(ScrapeError, match="larger than 1048576 bytes"):
        read(endless)


def test_a_port_without_a_listener_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ScrapeError, match=f"127.0.0.1:{port} cannot be reached: Connection refused"):
        read_total(parse_metrics_url(f"http://127.0.0.1:{port}/"), OPEN, PATIENCE_SECONDS)


def test_an_address_of_an_unsupported_family_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for `localhost` on a node with `ipv6.disable=1`, whose `/etc/hosts` has `::1` nevertheless."""
    lookup = socket.getaddrinfo
    lacking = (socket.AF_APPLETALK, socket.SOCK_STREAM, 0, "", ("::1", 80))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **named: [lacking, *lookup(*args, **named)])
    assert read(answering(b"open 7\n")) == 7.0


def test_the_request_asks_for_plain_text_on_a_connection_of_its_own() -> None:
    with raw_server(answering(b"open 7\n")) as server:
        read_total(parse_metrics_url(f"{server.url}/m?name[]=open"), OPEN, PATIENCE_SECONDS)
    (request,) = server.requests
    assert request.target == "/m?name[]=open"
    assert request.headers["host"] == server.url.removeprefix("http://")
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["accept"].startswith("text/plain;version=0.0.4")
    assert request.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("text", "host", "port", "target"),
    [
        ("http://127.0.0.1:9000/metrics", "127.0.0.1", 9000, "/metrics"),
        ("http://localhost", "localhost", 80, "/"),
        ("http://[::1]:9000/a?b=c", "::1", 9000, "/a?b=c"),
        ("http://app:9000?x", "app", 9000, "/?x"),
    ],
)
def test_urls_are_parsed(text: str, host: str, port: int, target: str) -> None:
    url = parse_metrics_url(text)
    assert (url.host, url.port, url.target) == (host, port, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:9000/metrics",
        "https://127.0.0.1/metrics",
        "file:///etc/passwd",
        "http://",
        "http:///metrics",
        "http://a:b/metrics",
        "http://a:99999/",
        "http://[::1/",
        "http://user:hunter2@a/",
        "https://user:hunter2@a/",
        "http://user:hunter2@a:port/",
        "http://a/b c",
        "http://a/\r\nX: y",
        "http://ä/",
    ],
)
def test_invalid_urls_are_refused_without_showing_a_password(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_metrics_url(text)
    assert "hunter2" not in str(caught.value)
