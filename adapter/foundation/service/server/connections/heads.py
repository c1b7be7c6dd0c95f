"""Parses the heads of requests."""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gunicorn.http.body import Body, LengthReader
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader

from adapter.foundation.service.server.connections.bodies import header_lines

if TYPE_CHECKING:
    import socket

    from gunicorn.config import Config

RECORD = 16 * 1024
"""Bytes to read from a socket at once: a whole TLS record, because the poller cannot see what TLS has buffered."""
LARGEST_HEAD = 1024 * 1024
"""Limit on the bytes of request line and headers; Go's servers allow the same."""
LARGEST_UNAUTHENTICATED_HEAD = 64 * 1024
"""Limit for clients without a verified certificate. A token has a few kB; users with many groups use the API server."""


class BoundedUnreader(Unreader):
    """The parser's input: the buffered head, then the body from the socket until a deadline."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        # Not by the name `sock`: gunicorn would set a time limit on that twice a request, and `chunk` sets its own.
        self._socket = sock
        self.has_body_apart = False
        """Whether the request's body was received in advance, and so does not follow the head here."""
        self._deadline = 0.0

    def allow(self, seconds: float) -> None:
        """Allow reads from the socket for this long; 0 forbids them."""
        self._deadline = time.monotonic() + seconds

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next bytes of the socket; no bytes at its end. Raises TimeoutError."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request's body did not arrive in time")
        limit = self._socket.gettimeout()
        self._socket.settimeout(left)
        try:
            return self._socket.recv(max(RECORD, min(size_hint or 0, LARGEST_HEAD)))
        finally:
            self._socket.settimeout(limit)


class HeadRequest(Request):
    """A request that also keeps its header lines as they were received.

    The headers of WSGI's environ are joined by name with commas, so a group named `a,system:masters` would look like
    two groups. `received` is read from the same bytes that gunicorn has just found to be well-formed; each character is
    a byte (latin-1), as in the rest of WSGI.
    """

    received: tuple[tuple[str, str], ...] = ()

    def parse_headers(self, data: bytes, from_trailer: bool = False) -> list[tuple[str, str]]:  # noqa: FBT001, FBT002 - gunicorn's signature
        """Return the headers as gunicorn sees them: upper-cased, and without those that it drops."""
        headers: list[tuple[str, str]] = super().parse_headers(data, from_trailer)
        if not from_trailer:
            self.received = header_lines(data.decode("latin-1").split("\r\n"))
        return headers

    def set_body_reader(self) -> None:
        """Check the framing of the body, but read nothing if the body was received in advance."""
        super().set_body_reader()
        if self.unreader.has_body_apart:
            self.body = Body(LengthReader(self.unreader, 0))


class HeadParser(RequestParser):
    """gunicorn's parser, which makes `HeadRequest` objects from a `BoundedUnreader`."""

    mesg_class = HeadRequest

    def __init__(self, cfg: Config, unreader: BoundedUnreader, client: tuple[str, int]) -> None:
        super().__init__(cfg, (), client)
        self.unreader = unreader  # type: ignore[assignment] # its sibling, which is all that the parser needs
        self.source = unreader
