"""Clients that send malformed requests get a Status or a clean end of the connection; all others are served."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.support.caller import CUSTOM, EXTERNAL, PATIENCE_SECONDS, Caller, check_status
from tests.support.serving import Adapter, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

THREADS = 16
NEW_CALLER_SECONDS = 10.0
VALUES = f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/open_connections"


@pytest.fixture(autouse=True)
def _serves_on(adapter: Adapter) -> Iterator[None]:
    """Check at the end that the same worker serves the next client."""
    worker = adapter.worker
    yield
    with adapter.caller() as caller:
        assert caller.pods("open_connections", labelSelector="app=web").values
    assert adapter.worker == worker
    assert "Traceback" not in adapter.log


def connect(adapter: Adapter) -> ssl.SSLSocket:
    tcp = socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS)
    return adapter.trust.context(adapter.trust.front_proxy).wrap_socket(tcp, server_hostname="localhost")


def rest_of(sock: socket.socket) -> bytes:
    """Read until the server closes; the socket's timeout fails the test if the server does not close."""
    received = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLEOFError):
        while data := sock.recv(65536):
            received += data
    return received


GARBAGE = {
    "zeros": b"\0" * 4096 + b"\r\n\r\n",
    "ones": b"\xff" * 100 + b"\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
    "one word": b"GET\r\n\r\n",
    "http of the future": b"GET / HTTP/9.9\r\n\r\n",
    "header without colon": b"GET / HTTP/1.1\r\nHost: a\r\nbroken header\r\n\r\n",
    "nul in a header": b"GET / HTTP/1.1\r\nHost: a\r\nX-Remote-User: al\0ice\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost: a\r\nX-Remote-User : alice\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": (
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "negative length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
    "long target": b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X-Many: 1\r\n" * 5000 + b"\r\n",
    "large header": b"GET / HTTP/1.1\r\nHost: a\r\nX-Large: " + b"a" * 2_000_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_malformed_http_is_refused_and_the_connection_is_closed(adapter: Adapter, kind: str) -> None:
    with connect(adapter) as sock:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            sock.sendall(GARBAGE[kind])
        received = rest_of(sock)
    assert re.match(rb"HTTP/1\.1 (400|414|417|431|501|505) ", received) or not received, received[:200]


def test_http_2_is_not_negotiated(adapter: Adapter) -> None:
    context = adapter.trust.context(adapter.trust.front_proxy)
    context.set_alpn_protocols(["h2", "http/1.1"])
    tcp = socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS)
    with context.wrap_socket(tcp, server_hostname="localhost") as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"


def test_plain_http_on_the_tls_port_gets_an_answer_that_names_https(adapter: Adapter) -> None:
    with socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"HTTPS" in rest_of(sock)


@pytest.mark.parametrize(
    "target",
    [
        f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A",
        f"{CUSTOM}/v1beta2/namespaces/shop/pods/bar",
        f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/open_connections/more",
        f"{CUSTOM}/v1beta2/namespaces//pods/%2A/open_connections",
        f"{CUSTOM}/v1beta2//namespaces/shop/pods/%2A/open_connections",
        f"{CUSTOM}/v1beta2/nodes/foo",
        f"{CUSTOM}/v1beta3/namespaces/shop/pods/%2A/open_connections",
        f"{CUSTOM}/v1beta2/../../../metrics",
        f"{CUSTOM}/v1beta2/namespaces/shop%2Fpods%2F%2A%2Fopen_connections",
        f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/open%2Fconnections",
        f"{CUSTOM}%2Fv1beta2",
        f"{EXTERNAL}/queue_depth",
        f"{EXTERNAL}/namespaces/shop",
        f"{EXTERNAL}/namespaces/shop/queue_depth/more",
        "/apis/apps/v1/deployments",
        "/api/v1/pods",
        "/debug/pprof/",
        "/favicon.ico",
        "/%",
        "/%zz",
        "/%ff%fe",
        "/" + "a/" * 2000,
        "/apis/" + "%41" * 1000,
    ],
    ids=lambda target: target[:70],
)
def test_unknown_paths_get_a_status_400_or_404(caller: Caller, target: str) -> None:
    answer = caller.ask("GET", target)
    assert answer.status in {400, 404}


def test_an_encoded_slash_does_not_start_a_new_path_segment(caller: Caller) -> None:
    answer = caller.ask("GET", f"{CUSTOM}/v1beta2/namespaces/shop/pods/web-0%2Fopen_connections/open_connections")
    assert (answer.status, "cannot be the name of an object" in answer.message) == (400, True)


@pytest.mark.parametrize("spelled", ["*", "%2A", "%2a"])
def test_the_wildcard_may_be_encoded_or_not(caller: Caller, spelled: str) -> None:
    answer = caller.ask("GET", f"{CUSTOM}/v1beta2/namespaces/shop/pods/{spelled}/open_connections")
    assert len(answer.values) == 4


@pytest.mark.parametrize(
    "name",
    ['x"} or vector(1) or up{x="', "x\\", "a|b", "web-.", ".*", "..", "x\ny", "\u00fc", "web-0\0", "<<.Series>>"],
    ids=ascii,
)
def test_names_made_to_break_out_of_the_query_are_refused_or_match_nothing(caller: Caller, name: str) -> None:
    encoded = "".join(f"%{byte:02X}" for byte in name.encode())
    for target in (
        f"{CUSTOM}/v1beta2/namespaces/shop/pods/{encoded}/open_connections",
        f"{CUSTOM}/v1beta2/namespaces/{encoded}/pods/%2A/open_connections",
        f"{EXTERNAL}/namespaces/{encoded}/queue_depth",
        f"{EXTERNAL}/namespaces/shop/{encoded}",
    ):
        assert caller.ask("GET", target).status in {400, 404}


def test_clients_cannot_forge_log_lines(adapter: Adapter) -> None:
    line = "2026-01-01T00:00:00.000Z ERROR forged"
    encoded = f"%0A{line.replace(' ', '%20')}%0D%0A"
    with adapter.caller(identity=()) as caller:
        for target in (
            f"/{encoded}",
            f"{CUSTOM}/v1beta2/namespaces/shop/pods/{encoded}/{encoded}",
            f"/apis?a={encoded}",
        ):
            caller.ask("GET", target, [("X-Remote-User", "caf\u00e9"), ("User-Agent", encoded)])
    with connect(adapter) as sock:
        sock.sendall(f"GET / HTTP/1.1\r\nHost: a\r\nX-Remote-User: a\n{line}\r\n\r\n".encode())
        rest_of(sock)
    assert not adapter.said(r"^2026-01-01T00:00:00\.000Z ERROR forged")


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=app%3Dweb&labelSelector=app%3Ddb",
        "labelSelector=app%3Dweb&label%53elector=app%3Ddb",
        "metricLabelSelector=a%3Db&metricLabelSelector=c%3Dd",
        "labelSelector=%ff",
        "labelSelector=" + "a%3Db," * 500 + "%3D",
    ],
    ids=lambda query: query[:60],
)
def test_repeated_or_malformed_parameters_are_400(caller: Caller, query: str) -> None:
    answer = caller.ask("GET", f"{VALUES}?{query}")
    assert (answer.status, answer.document["reason"]) == (400, "BadRequest")


def test_irrelevant_parameters_are_ignored(caller: Caller) -> None:
    answer = caller.ask("GET", f"{VALUES}?labelSelector=app%3Dweb&limit=1&timeout=5s&resourceVersion=0&pretty=true&&=")
    assert len(answer.values) == 3


def test_a_watch_of_values_is_answered_with_a_list(caller: Caller) -> None:
    answer = caller.ask("GET", f"{VALUES}?watch=true")
    assert (answer.status, "MetricValueList" in answer.text) == (200, True)


@pytest.mark.parametrize("target", [VALUES, EXTERNAL, "/apis", "/metrics", "/livez"])
def test_other_methods_are_405(caller: Caller, target: str) -> None:
    headable = target in {"/metrics", "/livez"}
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        answer = caller.ask(method, target)
        check_status(answer)
        assert (answer.status, answer.document["reason"]) == (405, "MethodNotAllowed"), method
        assert answer.header("Allow") == ("GET, HEAD" if headable else "GET"), method


def test_the_body_of_a_refused_request_is_not_read_as_a_request(adapter: Adapter) -> None:
    smuggled = f"GET {EXTERNAL} HTTP/1.1\r\nHost: a\r\nX-Remote-User: alice\r\n\r\n"
    refused = f"POST {VALUES} HTTP/1.1\r\nHost: a\r\nX-Remote-User: alice\r\nContent-Length: {len(smuggled)}\r\n\r\n"
    last = f"GET {CUSTOM} HTTP/1.1\r\nHost: a\r\nX-Remote-User: alice\r\nConnection: close\r\n\r\n"
    with connect(adapter) as sock:
        sock.sendall(f"{refused}{smuggled}{last}".encode())
        received = rest_of(sock)
    assert re.findall(rb"HTTP/1\.1 ([0-9]+) ", received) == [b"405", b"200"]
    assert b'"kind":"APIGroup"' in received


def test_head_is_answered_without_a_body(adapter: Adapter) -> None:
    with connect(adapter) as sock:
        sock.sendall(f"HEAD {VALUES} HTTP/1.1\r\nHost: a\r\nX-Remote-User: a\r\nConnection: close\r\n\r\n".encode())
        received = rest_of(sock)
    assert received.startswith(b"HTTP/1.1 405 ")
    assert received.endswith(b"\r\n\r\n")


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_stalled_handshakes_and_partial_requests_do_not_delay_other_clients(adapter: Adapter) -> None:
    """Of each kind, three times as many clients as there are threads connect at once."""
    hello, half = client_hello()[:100], f"GET {VALUES} HTTP/1.1\r\nHost: a\r\n".encode()
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(adapter.caller())
        assert old.pods("open_connections").values
        for _ in range(3 * THREADS):
            tcp = stack.enter_context(socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS))
            tcp.sendall(hello)
            stack.enter_context(connect(adapter)).sendall(half)
            # As the attack goes on, not only when it is over.
            assert old.pods("open_connections").values
        assert adapter.plain("/livez").status == 200
        assert old.pods("open_connections").values
        for _ in range(3):
            with adapter.caller(seconds=NEW_CALLER_SECONDS) as new:
                assert new.pods("open_connections").values
        assert adapter.plain("/readyz").status == 200


def test_connections_that_clients_reset_are_released(adapter: Adapter) -> None:
    def idle_and_unfinished() -> float:
        return sum(adapter.metric("tidewatch_adapter_connections", stage=stage) for stage in ("handshake", "head"))

    for sent in (b"", b"GET / HT", f"GET {VALUES} HTTP/1.1\r\nHost: a\r\nX-Remote-User: a\r\n\r\n".encode()):
        for _ in range(5):
            sock = connect(adapter)
            sock.sendall(sent)
            # A reset instead of an orderly close.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
    eventually(lambda: idle_and_unfinished() == 0)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /apis HTTP/1.1\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\n\r\n", 405),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\0\0\0\0\r\n\r\n", 400),
    ],
)
def test_the_plain_port_serves_only_health_and_metrics(adapter: Adapter, request_bytes: bytes, status: int) -> None:
    with socket.create_connection(("127.0.0.1", adapter.plain_port), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(request_bytes)
        assert rest_of(sock).startswith(f"HTTP/1.1 {status} ".encode())
