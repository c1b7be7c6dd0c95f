"""Answers on their way to their readers.

A request thread hands over what the socket takes at once; the rest stays here, and the poller thread writes it whenever
the client has read something. So a client that reads slowly, or not at all, holds memory and never a thread: memory is
bounded for each connection and in all, and who reads too little for too long is cut off.
"""

from __future__ import annotations

import errno
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from adapter.service.server.sockets import unacknowledged

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

MOST_BYTES_EACH = 32 * 1024 * 1024
PORTION = 64 * 1024
"""Bytes offered to a socket at once: few enough that everybody's turn comes soon."""
SMALL = 16 * 1024
"""Bytes that are sent in one piece, head and body: one TLS record."""
FULL = (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError)
"""What a socket raises that takes no more for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingLimits:
    """How much may wait for readers, and how fast they must read."""

    most_bytes: int = 48 * 1024 * 1024
    """In all connections. Beyond it those that read slowest are cut off."""
    most_bytes_each: int = MOST_BYTES_EACH
    """The largest answer."""
    least_rate: float = 4096.0
    """Bytes a second, over each time between two looks (`Deadlines.pace`)."""


class OutgoingTooLargeError(OSError):
    """An answer has more bytes than a connection may hold. An OSError, since gunicorn lets those pass."""


class Outbox:
    """The unsent part of a connection's answer.

    To gunicorn it is the socket that the answer is written to. Used by one thread at a time, as its connection is.
    """

    def __init__(self, sock: socket.socket, most_bytes: int = MOST_BYTES_EACH) -> None:
        self.sock = sock
        self.bodies: tuple[object, ...] = ()
        """What `HeldAnswers` counts for this connection."""
        self._most = most_bytes
        self._pieces: deque[memoryview] = deque()
        self._tried = 0
        """How many of the pieces have been offered: TLS insists on sending what it was once given."""
        self._sent = 0
        """Over the connection's life, as are those below."""
        self._sent_before = 0
        self._read = 0
        self._since = 0.0

    # What gunicorn calls

    def sendall(self, data: bytes) -> None:
        """Take in a part of the answer; nothing is sent before `flush`. Raises AnswerTooLargeError."""
        if self.unsent + len(data) > self._most:
            raise OutgoingTooLargeError(f"the answer has more than {self._most} bytes")
        if data:
            self._pieces.append(memoryview(data))

    def send(self, data: bytes) -> int:
        """Take in an interim response and send it as far as possible at once: the client waits for it."""
        self.sendall(data)
        self.flush()
        return len(data)

    def shutdown(self, _how: int) -> NoReturn:
        """Refuse to be shut down, and so to be waited for: the poller thread ends connections."""
        raise OSError(errno.ENOTCONN, "connections are ended by the poller thread")

    def close(self) -> None:
        """Do nothing, for the same reason."""

    # What the connection's owner calls

    @property
    def unsent(self) -> int:
        """How many bytes wait."""
        return sum(map(len, self._pieces))

    @property
    def pieces(self) -> Iterable[memoryview]:
        """What waits, in order. A piece of a body that many are sent is a view of it, not a copy."""
        return self._pieces

    @property
    def since(self) -> float:
        """Monotonic time at which the answer began."""
        return self._since

    def begin(self, sock: socket.socket) -> None:
        """Begin an answer: on the socket as it is now, after TLS was put on it."""
        self.sock = sock
        self._since = time.monotonic()
        self._sent_before = self._sent

    def replace(self, data: bytes) -> None:
        """Send this instead of what has not been offered to the socket yet."""
        while len(self._pieces) > self._tried:
            self._pieces.pop()
        self._pieces.append(memoryview(data))

    def flush(self) -> bool:
        """Send what fits and return whether that was all; never waits. Raises OSError where the connection is lost."""
        if len(self._pieces) > 1 and self.unsent <= SMALL:
            self._pieces = deque([memoryview(b"".join(self._pieces))])
        try:
            while self._pieces:
                self.step()
        except FULL:
            self._tried = len(self._pieces)
            return False
        return True

    def step(self) -> bool:
        """Send once; return whether that was the rest. Raises one of FULL, or OSError where the connection is lost."""
        first = self._pieces[0]
        count = self.sock.send(first[:PORTION])
        self._sent += count
        if count == len(first):
            self._pieces.popleft()
            self._tried = max(0, self._tried - 1)
        else:
            self._pieces[0] = first[count:]
        return not self._pieces

    def clear(self) -> None:
        """Forget what was not sent: the connection is over."""
        self._pieces.clear()

    def newly_read(self) -> int:
        """Return how many bytes the client's side has acknowledged since this was asked last."""
        acknowledged = self._sent - unacknowledged(self.sock)
        newly, self._read = acknowledged - self._read, acknowledged
        return newly

    def pace(self, now: float) -> float:
        """Return bytes a second of this answer so far; its first second counts whole."""
        return (self._sent - self._sent_before) / max(1.0, now - self._since)


class HeldAnswers:
    """How many bytes wait for readers in all connections; a body that many wait for counts once. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[int, int] = {}
        """By identity of a body: how many connections hold it."""
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes that wait, in all."""
        return self._total

    def hold(self, outbox: Outbox) -> None:
        """Count what waits in an outbox, in full until it is released: a view keeps the whole body alive."""
        outbox.bodies = tuple(piece.obj for piece in outbox.pieces)
        with self._lock:
            for body in outbox.bodies:
                holders = self._holders.get(id(body), 0)
                self._holders[id(body)] = holders + 1
                self._total += 0 if holders else len(body)  # type: ignore[arg-type] # bytes, as they were put in

    def release(self, outbox: Outbox) -> None:
        """Count no longer what an outbox held; nothing if it held nothing."""
        bodies, outbox.bodies = outbox.bodies, ()
        if not bodies:
            return
        with self._lock:
            for body in bodies:
                holders = self._holders.pop(id(body)) - 1
                if holders:
                    self._holders[id(body)] = holders
                else:
                    self._total -= len(body)  # type: ignore[arg-type] # likewise
