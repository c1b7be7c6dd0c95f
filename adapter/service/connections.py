"""Connections before and between requests: handshakes and request heads, read by one thread for all of them.

A thread that waits for a client belongs to that client for as long as it likes. So nobody waits: handshakes and heads
advance when bytes arrive, and each stage has a deadline in total, not for each read. A connection reaches the request
threads only with a whole head in its buffer.
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import re
import socket
import ssl
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader

from adapter.service.tls import verified_chain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gunicorn.config import Config

RECORD = 16 * 1024
"""Bytes asked of a socket at once: a whole TLS record, of which nothing may stay where the poller cannot see it."""
LARGEST_HEAD = 1024 * 1024
"""Bytes of request line and headers; Go's servers allow as much."""
_PROBES = tuple(f"{method} /{check}".encode() for method in ("GET", "HEAD") for check in ("livez", "readyz", "healthz"))
_JUDGED = re.compile(rb"\r\n\r\n|(?<!\r)\n")
"""The end of a head, or what makes it wrong already: a line that ends without a carriage return."""
_LONGEST_END = 4
_SO_MEMINFO = 55
"""Linux's number (asm-generic/socket.h); the standard library has no name for it."""
_MEMINFO = struct.Struct("12xI4xI")
"""Of its numbers (`SK_MEMINFO_*`): the size of the send buffer, and the bytes in it with their overhead."""


class Stage(Enum):
    """Where a connection stands; all but REQUEST belong to the poller thread."""

    HANDSHAKE = auto()
    HEAD = auto()
    """Something of a request has come, or the first request is awaited."""
    IDLE = auto()
    """Kept alive between requests."""
    REQUEST = auto()
    """With the request threads."""
    LINGER = auto()
    """Answered and shut down for writing; what the client still sends is thrown away, lest a reset eat the answer."""
    CLOSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds in total that a connection may spend in a stage."""

    handshake: float = 5.0
    head: float = 10.0
    idle: float = 90.0
    """As long as Go's clients keep an idle connection: longer is waste, shorter a race with their next request."""
    body: float = 10.0
    """To read a request's body, and for each write of the answer."""
    linger: float = 2.0

    def of(self, stage: Stage) -> float:
        """Return the limit of a stage of waiting."""
        match stage:
            case Stage.HANDSHAKE:
                return self.handshake
            case Stage.HEAD:
                return self.head
            case Stage.IDLE:
                return self.idle
            case Stage.LINGER:
                return self.linger
            case Stage.REQUEST | Stage.CLOSED:
                raise ValueError(f"{stage} waits for nobody")


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


class Connection:
    """One accepted socket. Used by one thread at a time: the poller's, or in stage REQUEST the request's."""

    def __init__(self, sock: socket.socket, client: tuple[str, int], server: tuple[str, int]) -> None:
        self.sock = sock
        self.client = client
        self.server = server
        self.stage = Stage.HANDSHAKE
        self.expires = 0.0
        """Monotonic time at which the stage is over."""
        self.events = 0
        """What the poller waits for; 0 while it does not."""
        self.steps = 0
        """How often the handshake was advanced: those that were seldom served come first."""
        self.head = bytearray()
        self._searched = 0
        """How far the head was searched for its end, lest a trickle be searched from the start each time."""
        self.parser: HeadParser | None = None
        self._chain: tuple[bytes, ...] | None = None

    @property
    def peer_chain(self) -> tuple[bytes, ...]:
        """The client's verified chain, computed once."""
        if self._chain is None:
            self._chain = verified_chain(self.sock)
        return self._chain

    def read_head(self) -> bool:
        """Read what has come and return whether it is enough for the parser.

        Raises ssl.SSLWantReadError or BlockingIOError when nothing is there, EOFError at the end, OSError.
        """
        while True:
            data = self.sock.recv(RECORD)
            if not data:
                raise EOFError
            self.head += data
            if self.head_is_whole():
                return True
            if not self._undelivered():
                return False

    def head_is_whole(self) -> bool:
        """Tell whether the buffer is enough for the parser: it holds a whole head, or one that is wrong already."""
        if _JUDGED.search(self.head, max(0, self._searched - _LONGEST_END + 1)):
            return True
        self._searched = len(self.head)
        return False

    @property
    def asks_for_health(self) -> bool:
        """Whether the buffered head is a probe's: a kubelet that hears 429 would end a process that is only busy."""
        return self.head.startswith(_PROBES)

    @property
    def head_is_too_large(self) -> bool:
        """Whether no end of the head is in sight within the limit."""
        return len(self.head) > LARGEST_HEAD

    def answers_are_read(self) -> bool:
        """Whether what was sent so far leaves room to send a small answer without waiting.

        A socket that is waited for is writable up to two thirds of its buffer, and an answer is written in two pieces:
        one third leaves room for both.
        """
        try:
            memory = self.sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        except OSError:
            return True  # not Linux, or already closed: then writing tells
        send_buffer, queued = _MEMINFO.unpack(memory)
        return bool(3 * queued <= send_buffer)

    def begin_request(self, cfg: Config, seconds: float) -> HeadParser:
        """Hand the buffered bytes to the parser; reads of the body and writes may take so long."""
        if self.parser is None:
            self.parser = HeadParser(cfg, BoundedUnreader(self.sock), self.client)
        self.parser.source.unread(bytes(self.head))
        self.head.clear()
        self._searched = 0
        self.parser.source.allow(seconds)
        self.sock.settimeout(seconds)
        return self.parser

    def body_is_read(self) -> bool:
        """Whether nothing of the request is outstanding, so that the next one may follow; never waits."""
        if self.parser is None:
            return False
        self.parser.source.allow(0)
        return bool(self.parser.finish_body())

    def end_request(self) -> None:
        """Take back what was read beyond the request: the beginning of the next one."""
        self.sock.settimeout(0)
        if self.parser is not None:
            self.head += self.parser.source.take_buffered()

    @property
    def is_open(self) -> bool:
        """Whether there still is a socket: what failed within TLS or within an answer has closed it."""
        return self.sock.fileno() >= 0

    def discard(self) -> bool:
        """Throw away what the client still sends; returns whether there may be more."""
        return bool(os.read(self.sock.fileno(), RECORD))

    def shut_down(self) -> None:
        """Say that nothing more will be sent, without waiting for anything."""
        with suppress(OSError, ValueError):
            self.sock.settimeout(0)
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock._sslobj.shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - unwrap() would make it wait
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def send_last(self, data: bytes) -> None:
        """Send a short final answer as far as it can be sent at once."""
        self.sock.settimeout(0)
        with suppress(OSError):
            self.sock.send(data)

    def send_plain(self, data: bytes) -> None:
        """Send below TLS, to a client that does not speak it."""
        with suppress(OSError):
            os.write(self.sock.fileno(), data)

    def close(self) -> None:
        """Close the socket."""
        self.stage = Stage.CLOSED
        with suppress(OSError):
            self.sock.close()

    def _undelivered(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0


def _header_lines(data: bytes) -> Iterator[tuple[str, str]]:
    for line in data.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        yield name, value.strip(" \t")
