"""Connections outside of requests: handshakes, heads and the rest of answers, moved on by one thread for all of them.

A thread that waits for a client belongs to that client for as long as it likes. So nobody waits: handshakes and heads
advance when bytes arrive, answers when the client has read something, and each stage has a deadline in total, not for
each read or write. A connection reaches the request threads only with a whole head in its buffer, and leaves them with
what its socket did not take of the answer (`outgoing`).
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from adapter.service.server.heads import LARGEST_HEAD, RECORD, STRANGERS_HEAD, BoundedUnreader, HeadParser
from adapter.service.server.outgoing import MOST_BYTES_EACH, Outbox
from adapter.service.server.tls import verified_chain

if TYPE_CHECKING:
    from gunicorn.config import Config

_PROBES = tuple(f"{method} /{check}".encode() for method in ("GET", "HEAD") for check in ("livez", "readyz", "healthz"))
_JUDGED = re.compile(rb"\r\n\r\n|(?<!\r)\n")
"""The end of a head, or what makes it wrong already: a line that ends without a carriage return."""
_LONGEST_END = 4


class Stage(Enum):
    """Where a connection stands; all but REQUEST belong to the poller thread."""

    HANDSHAKE = auto()
    HEAD = auto()
    """Something of a request has come, or the first request is awaited."""
    IDLE = auto()
    """Kept alive between requests."""
    REQUEST = auto()
    """With the request threads."""
    SEND = auto()
    """The rest of an answer waits for its reader."""
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
    """To read a request's body."""
    send: float = 60.0
    """From the beginning of an answer until its last byte is taken; Kubernetes' API servers allow as much."""
    pace: float = 5.0
    """Between two looks whether a reader keeps to the least rate."""
    linger: float = 2.0

    def of(self, stage: Stage) -> float:
        """Return the limit of a stage of waiting; of SEND the time until the next look."""
        match stage:
            case Stage.HANDSHAKE:
                return self.handshake
            case Stage.HEAD:
                return self.head
            case Stage.IDLE:
                return self.idle
            case Stage.SEND:
                return min(self.pace, self.send)
            case Stage.LINGER:
                return self.linger
            case Stage.REQUEST | Stage.CLOSED:
                raise ValueError(f"{stage} waits for nobody")


class Connection:
    """One accepted socket. Used by one thread at a time: the poller's, or in stage REQUEST the request's."""

    def __init__(
        self,
        sock: socket.socket,
        client: tuple[str, int],
        server: tuple[str, int],
        most_answer_bytes: int = MOST_BYTES_EACH,
    ) -> None:
        self.sock = sock
        self.outbox = Outbox(sock, most_answer_bytes)
        self.is_kept = False
        """Whether it may be used for another request after the present one."""
        self.fault = ""
        """Why the request threads gave it another answer than it should have; empty if they did not."""
        self.client = client
        self.server = server
        self.stage = Stage.HANDSHAKE
        self.expires = 0.0
        """Monotonic time at which the stage is over."""
        self.events = 0
        """What the poller waits for; 0 while it does not."""
        self.steps = 0
        """How often it was advanced, until a request was answered: those that were seldom served come first."""
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

    @property
    def is_known(self) -> bool:
        """Whether the client has shown a certificate of an authority that callers are trusted by."""
        return bool(self.peer_chain)

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
        """Whether no end of the head is in sight within the limit, which is lower for strangers."""
        size = len(self.head)
        return size > LARGEST_HEAD or (size > STRANGERS_HEAD and not self.is_known)

    def forget_head(self) -> None:
        """Free the memory of a head that will not be answered."""
        self.head = bytearray()

    def begin_request(self, cfg: Config, seconds: float) -> HeadParser:
        """Hand the buffered bytes to the parser; reads of the body may take so long."""
        if self.parser is None:
            self.parser = HeadParser(cfg, BoundedUnreader(self.sock), self.client)
        self.parser.source.unread(bytes(self.head))
        self.head.clear()
        self._searched = 0
        self.parser.source.allow(seconds)
        self.outbox.begin(self.sock)
        return self.parser

    def body_is_read(self) -> bool:
        """Whether nothing of the request is outstanding, so that the next one may follow; never waits."""
        if self.parser is None:
            return False
        self.parser.source.allow(0)
        return bool(self.parser.finish_body())

    def end_request(self) -> None:
        """Take back what was read beyond the request: the beginning of the next one."""
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
        self.outbox.clear()
        with suppress(OSError):
            self.sock.close()

    def _undelivered(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
