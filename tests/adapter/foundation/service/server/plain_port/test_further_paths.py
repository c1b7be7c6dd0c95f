"""The plain port of a worker: paths beside health and metrics."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.server.addresses import Address, listening_socket
from adapter.foundation.service.server.context import WorkerContext
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.server.server_settings import ServerOptions

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def context() -> Iterator[WorkerContext]:
    address = Address("127.0.0.1", 0)
    options = ServerOptions(
        program="example",
        version="1",
        metrics_prefix="example",
        address=address,
        tls=None,
        plain_address=address,
    )
    with closing(listening_socket(address)) as listener:
        context = WorkerContext(options, address, listener)
        context.add_path("/healthz", lambda query: PlainAnswer(200, f"healthy {query}".encode()))
        context.add_path("/last-poll", lambda _: PlainAnswer(503, b"never"))
        yield context
        context.stop()


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/healthz?verbose", 200, b"healthy verbose"),
        ("/last-poll", 503, b"never"),
        ("/last-poll/more", 404, b"there are /metrics, /livez, /readyz, /healthz and /last-poll here\n"),
        ("/livez", 200, b"ok"),
    ],
)
def test_a_worker_serves_further_paths_beside_health(
    context: WorkerContext, path: str, status: int, body: bytes
) -> None:
    assert context.plain_address is not None
    with closing(http.client.HTTPConnection("127.0.0.1", context.plain_address.port, timeout=20)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        assert (response.status, response.read()) == (status, body)


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/livez/ping", "/last-poll"])
def test_a_path_that_is_already_served_cannot_be_added(context: WorkerContext, path: str) -> None:
    with pytest.raises(ValueError, match=f"{path} is already served"):
        context.add_path(path, lambda _: PlainAnswer(200, b""))
