"""The requests that may use a reserved thread."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from adapter.commands.nodes.reader_access import LARGEST_UNAUTHENTICATED_BODY_BYTES, BearerToken, plan_by_routes
from adapter.foundation.service.server.connections.bodies import Head
from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.web.routes import Route

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.web.http import Request, Response

LARGEST = 64 * 2**20


def _answer(_request: Request) -> Response:
    raise AssertionError("nothing is asked here")


@pytest.mark.parametrize(
    ("path", "chain", "reserved"),
    [
        ("/scheduler/filter", (b"certificate",), LARGEST),
        ("/scheduler/filter", (), LARGEST_UNAUTHENTICATED_BODY_BYTES),
        ("/other", (b"certificate",), 0),
    ],
)
def test_large_bodies_without_a_client_certificate_get_no_reserved_thread(
    path: str, chain: tuple[bytes, ...], reserved: int
) -> None:
    routes = [Route(one, _answer, ("POST",), LARGEST, is_frequent=True) for one in ("/scheduler/filter", "/other")]
    plan = plan_by_routes(routes)(Head("POST", path, (), chain))
    assert plan is not None
    assert (plan.largest_bytes, plan.largest_reserved_bytes) == (LARGEST, reserved)


@pytest.mark.parametrize(
    ("sent", "known"), [("Bearer of-readers", 1), ("bearer of-readers", 1), ("Bearer x", 0), ("", 0)]
)
def test_a_reader_is_authenticated_before_its_request_gets_a_thread(sent: str, known: int, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-readers\n")
    token = BearerToken(tmp_path / "token")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = Connection(ours, ("10.0.0.1", 1), ("10.0.0.2", 2020))
        theirs.sendall(f"GET /watcher HTTP/1.1\r\nHost: n\r\nAuthorization: {sent}\r\n\r\n".encode())
        assert reader.read_head()
        reader.judge_head(token.is_in)
        assert reader.is_admitted == known
