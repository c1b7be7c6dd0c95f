"""Servers that are slow, silent or away: every request ends in time, with an error that says what happened."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError, PrometheusUnreachableError
from demo.machine.ports import free_port
from tests.adapter.foundation.sources.prometheus.asking_client import GIVE_UP_SECONDS, HEAD, ONE, ClientOf, ask
from tests.support.raw_server import Peer, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable


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
def test_a_request_to_a_slow_server_ends_at_the_deadline(client_of: ClientOf, script: Callable[[Peer], None]) -> None:
    with raw_server(script) as server, pytest.raises(PrometheusTimeoutError, match=r"within 0\.4 s"):
        ask(client_of(server.url), timeout_seconds=GIVE_UP_SECONDS)


def test_a_request_to_a_silent_server_ends_at_the_read_timeout(client_of: ClientOf) -> None:
    with raw_server(never_answers) as server, pytest.raises(PrometheusTimeoutError, match=r"within 0\.2 s"):
        ask(client_of(server.url, read_timeout_seconds=0.2), timeout_seconds=3600)


def test_an_unanswered_tls_handshake_ends_at_the_deadline(client_of: ClientOf) -> None:
    with raw_server(Peer.hang) as server, pytest.raises(PrometheusUnreachableError, match=r"TLS handshake .* too long"):
        ask(client_of(server.url.replace("http:", "https:")), timeout_seconds=GIVE_UP_SECONDS)


def test_a_connection_to_a_full_backlog_ends_at_the_connect_timeout(client_of: ClientOf) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        # The kernel takes one connection that nobody accepts; the next one gets no reply.
        with socket.create_connection(("127.0.0.1", port)):
            client = client_of(f"http://127.0.0.1:{port}", connect_timeout_seconds=0.2)
            with pytest.raises(PrometheusUnreachableError, match=r"no connection to .*: it took too long"):
                ask(client)


def test_a_port_without_a_listener_is_an_error(client_of: ClientOf) -> None:
    with pytest.raises(PrometheusUnreachableError, match=r"no connection to http://127.0.0.1:.*: Connection refused"):
        ask(client_of(f"http://127.0.0.1:{free_port()}"))


def test_a_name_that_cannot_be_resolved_is_an_error(client_of: ClientOf) -> None:
    with pytest.raises(PrometheusUnreachableError, match=r"the name 'prometheus.invalid' cannot be resolved"):
        ask(client_of("http://prometheus.invalid:9090"))
