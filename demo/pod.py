"""One pod of the fleet: a real websocket server on its own port, with a limit, readiness and metrics."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

if TYPE_CHECKING:
    from websockets.http11 import Request, Response

RESUME_SHARE = 0.95
"""Share of the limit below which a full pod accepts connections again."""

EXPOSITION = """\
# HELP websocket_connections Open websocket connections.
# TYPE websocket_connections gauge
websocket_connections {open}
# HELP websocket_connections_refused_total Connections refused at the limit.
# TYPE websocket_connections_refused_total counter
websocket_connections_refused_total {refused}
"""


@dataclass(slots=True)
class Pod:
    """A websocket echo server that takes at most `limit` connections. `/metrics` and `/ready` are on the same port."""

    name: str
    limit: int
    refused: int = 0
    full: bool = False
    _connections: set[ServerConnection] = field(default_factory=set)
    _server: Server | None = None

    @property
    def port(self) -> int | None:
        """The port of the pod; None during its start-up."""
        return None if self._server is None else int(next(iter(self._server.sockets)).getsockname()[1])

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def ready(self) -> bool:
        """Whether new connections should be sent here: not at the limit, and afterwards only below 95% of it."""
        if self.open >= self.limit:
            self.full = True
        elif self.open < RESUME_SHARE * self.limit:
            self.full = False
        return self._server is not None and not self.full

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        self._server = await serve(
            self._serve_connection,
            "127.0.0.1",
            0,
            process_request=self._answer_plain_request,
            compression=None,
            ping_interval=None,
        )

    async def stop(self) -> None:
        """Close every connection, as a terminated pod does, and stop listening."""
        if self._server is not None:
            self._server.close(code=1001, reason="pod terminated")
            await self._server.wait_closed()
            self._server = None

    def _answer_plain_request(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/metrics":
            return connection.respond(HTTPStatus.OK, EXPOSITION.format(open=self.open, refused=self.refused))
        if request.path == "/ready":
            status = HTTPStatus.OK if self.ready else HTTPStatus.SERVICE_UNAVAILABLE
            return connection.respond(status, f"{self.open} of {self.limit} connections\n")
        if self.open >= self.limit:
            self.refused += 1
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{self.name} is at its limit of {self.limit}\n")
        return None

    async def _serve_connection(self, connection: ServerConnection) -> None:
        if self.open >= self.limit:  # several handshakes may have passed the first check together
            self.refused += 1
            await connection.close(1013, "at the limit")
            return
        self._connections.add(connection)
        try:
            with contextlib.suppress(ConnectionClosed):
                async for message in connection:
                    await connection.send(message)
        finally:
            self._connections.discard(connection)
