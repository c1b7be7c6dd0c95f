"""A port that presents a certificate and does nothing else.

with tls_endpoint() as endpoint:
    endpoint.show(certificate_file, key_file)
    connect_to(endpoint.address)
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class TlsEndpoint:
    """The port: the server only completes each TLS handshake, and the client closes the connection."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._open, daemon=True).start()

    def show(self, certificate_file: Path, key_file: Path | None = None) -> None:
        """Present this certificate from now on; the key may be in the same file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate_file, key_file)
        self._context = context

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _open(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._shake, args=(connection,), daemon=True).start()

    def _shake(self, connection: socket.socket) -> None:
        context = self._context
        assert context is not None
        connection.settimeout(10.0)
        with contextlib.suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as tls:
            while tls.recv(1024):
                pass


@contextmanager
def tls_endpoint() -> Iterator[TlsEndpoint]:
    """Run the endpoint for the block."""
    endpoint = TlsEndpoint()
    try:
        yield endpoint
    finally:
        endpoint.close()
