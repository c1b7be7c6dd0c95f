"""Parses the heads of requests."""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from gunicorn.config import Config

RECORD = 16 * 1024
"""Bytes asked of a socket at once: a whole TLS record, of which nothing may stay where the poller cannot see it."""
LARGEST_HEAD = 1024 * 1024
"""Bytes of request line and headers; Go's servers allow as much."""
STRANGERS_HEAD = 64 * 1024
"""As many without a verified client certificate. A token has a few kB; users of many groups come by the API server."""


class BoundedUnreader(Unreader):
    """What the parser reads: the buffered head, then the body from the socket until a deadline."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock
        self._deadline = 0.0

    def allow(self, seconds: float) -> None:
        """Read from the socket for at most so long; 0 seconds: no more."""
        self._deadline = time.monotonic() + seconds

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next bytes of the socket, empty at its end; raises TimeoutError."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request's body did not arrive in time")
        limit = self.sock.gettimeout()
        self.sock.settimeout(left)
        try:
            return self.sock.recv(max(RECORD, min(size_hint or 0, LARGEST_HEAD)))
        finally:
            self.sock.settimeout(limit)


class HeadRequest(Request):
    """A request that also keeps its header lines as they came.

    The headers of WSGI's environ are joined by name with commas: a group named `a,system:masters` could not be told
    from two groups. `received` is read from the same bytes that gunicorn has just found to be well-formed; each
    character is a byte (latin-1), as in the rest of WSGI.
    """

    received: tuple[tuple[str, str], ...] = ()

    def parse_headers(self, data: bytes, from_trailer: bool = False) -> list[tuple[str, str]]:  # noqa: FBT001, FBT002 - gunicorn's signature
        """Return gunicorn's view of the headers, upper-cased and without those it drops."""
        headers: list[tuple[str, str]] = super().parse_headers(data, from_trailer)
        if not from_trailer:
            self.received = tuple(_header_lines(data))
        return headers


class HeadParser(RequestParser):
    """gunicorn's parser, making such requests from such an unreader."""

    mesg_class = HeadRequest

    def __init__(self, cfg: Config, unreader: BoundedUnreader, client: tuple[str, int]) -> None:
        super().__init__(cfg, (), client)
        self.unreader = unreader  # type: ignore[assignment] # its sibling, which is all that the parser needs
        self.source = unreader


def _header_lines(data: bytes) -> Iterator[tuple[str, str]]:
    for line in data.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        yield name, value.strip(" \t")
