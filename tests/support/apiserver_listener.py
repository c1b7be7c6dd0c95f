"""The socket of the stand-in for kube-apiserver."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.apiserver_http import Handler

if TYPE_CHECKING:
    import ssl

    from tests.support.fake_apiserver import FakeApiServer


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, fake: FakeApiServer, port: int, context: ssl.SSLContext | None) -> None:
        self.fake = fake
        self.ended = threading.Event()
        self._context = context
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._context is not None:
            # The handshake is made by the first read, in the connection's own thread.
            connection = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self._connections.add(connection)
        self.fake.connections += 1
        return connection, address

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as socketserver declares it
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - likewise
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.fake.errors.append(error)

    def end(self) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
