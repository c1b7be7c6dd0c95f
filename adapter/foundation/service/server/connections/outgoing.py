"""Answers that are waiting for their clients to read them.

A request thread sends what the socket accepts at once. The rest stays here, and the poller thread sends it whenever the
client has read something. So a client that reads slowly, or not at all, occupies memory but never a thread. Memory is
limited for each connection and in total, and a client that reads too slowly for too long is dropped.
"""

from __future__ import annotations

import errno
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.service.server.sockets import unacknowledged_bytes

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

MOST_BYTES_EACH = 32 * 1024 * 1024
PORTION = 64 * 1024
"""Bytes to offer to a socket at once: few enough that every connection gets its turn soon."""
SMALL = 16 * 1024
"""Size up to which head and body are sent in one piece: one TLS record."""
_KEPT, _ENDED = b"\r\nConnection: keep-alive\r\n", b"\r\nConnection: close\r\n"
FULL = (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError)
"""Errors of a socket that accepts no more bytes for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingLimits:
    """Limits on unread answers: their size, and the rate at which clients must read."""

    most_bytes: int = 48 * 1024 * 1024
    """Limit in bytes for all connections; beyond it, the slowest readers are dropped."""
    most_bytes_each: int = MOST_BYTES_EACH
    """Size of the largest answer in bytes."""
    least_rate: float = 4096.0
    """Bytes per second that a client must read between two checks (`Deadlines.pace`)."""


class OutgoingTooLargeError(OSError):
    """An answer exceeds the limit of a connection. It is an OSError because gunicorn does not catch those."""


class Outbox:
    """The unsent part of a connection's answer.

    To gunicorn it is the socket that the answer is written to. Used by one thread at a time, as its connection is.
    """

    def __init__(self, sock: socket.socket, most_bytes: int = MOST_BYTES_EACH) -> None:
        self.sock = sock
        self.bodies: tuple[object, ...] = ()
        """The bytes that `HeldAnswers` counts for this connection."""
        self._most = most_bytes
        self._pieces: deque[memoryview] = deque()
        self._tried = 0
        """Number of pieces that were offered to the socket: TLS must send a piece once it was offered."""
        self._sent = 0
        """Bytes sent over the connection's life; the next two fields count from the same start."""
        self._sent_before = 0
        self._read = 0
        self.since = 0.0
        """Monotonic time at which the answer started."""

    # What gunicorn calls

    def sendall(self, data: bytes) -> None:
        """Append a part of the answer; nothing is sent before `flush`. Raises OutgoingTooLargeError."""
        if self.unsent + len(data) > self._most:
            raise OutgoingTooLargeError(f"the answer has more than {self._most} bytes")
        if data:
            self._pieces.append(memoryview(data))

    def send(self, data: bytes) -> int:
        """Append an interim response and send as much of it as possible now, since the client waits for it."""
        self.sendall(data)
        self.flush()
        return len(data)

    def shutdown(self, _how: int) -> NoReturn:
        """Raise an error, because only the poller thread shuts down connections."""
        raise OSError(errno.ENOTCONN, "only the poller thread shuts down connections")

    def close(self) -> None:
        """Do nothing, because only the poller thread closes connections."""

    # What the connection's owner calls

    @property
    def unsent(self) -> int:
        """Number of unsent bytes."""
        return sum(map(len, self._pieces))

    @property
    def pieces(self) -> Iterable[memoryview]:
        """Unsent pieces in order. A piece of a shared body is a view of it, not a copy."""
        return self._pieces

    def begin(self, sock: socket.socket) -> None:
        """Start an answer on this socket; if the connection uses TLS, the socket has been wrapped by now."""
        self.sock = sock
        self.since = time.monotonic()
        self._sent_before = self._sent

    def replace(self, data: bytes) -> None:
        """Replace everything that has not been offered to the socket yet."""
        while len(self._pieces) > self._tried:
            self._pieces.pop()
        self._pieces.append(memoryview(data))

    def announce_end(self) -> None:
        """Make the answer's head announce the end of the connection, unless it was already offered to the socket."""
        if len(self._pieces) > self._tried:
            head = bytes(self._pieces[self._tried])
            self._pieces[self._tried] = memoryview(head.replace(_KEPT, _ENDED, 1))

    def flush(self) -> bool:
        """Send what fits and return whether that was all; never waits. Raises OSError if the connection is lost."""
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
        """Send to the socket once; return whether nothing is left. Raises one of FULL, or OSError if it is lost."""
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
        """Discard the unsent bytes when the connection has ended."""
        self._pieces.clear()

    def newly_read(self) -> int:
        """Return how many bytes the client has acknowledged since the last call."""
        acknowledged = self._sent - unacknowledged_bytes(self.sock)
        newly, self._read = acknowledged - self._read, acknowledged
        return newly

    def pace(self, now: float) -> float:
        """Return the average bytes per second of this answer so far, over at least one second."""
        return (self._sent - self._sent_before) / max(1.0, now - self.since)


class HeldAnswers:
    """Number of unread bytes in all connections, counting a shared body once. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[int, int] = {}
        """Number of connections that hold each body, by the body's identity."""
        self.total = 0
        """Total number of bytes."""

    def hold(self, outbox: Outbox) -> None:
        """Count an outbox's bytes in full until they are released, since a view of any part keeps all bytes alive."""
        outbox.bodies = tuple(piece.obj for piece in outbox.pieces)
        with self._lock:
            for body in outbox.bodies:
                holders = self._holders.get(id(body), 0)
                self._holders[id(body)] = holders + 1
                self.total += 0 if holders else len(body)  # type: ignore[arg-type] # bytes, as they were put in

    def release(self, outbox: Outbox) -> None:
        """Stop counting the bytes of an outbox; do nothing if it holds none."""
        bodies, outbox.bodies = outbox.bodies, ()
        if not bodies:
            return
        with self._lock:
            for body in bodies:
                holders = self._holders.pop(id(body)) - 1
                if holders:
                    self._holders[id(body)] = holders
                else:
                    self.total -= len(body)  # type: ignore[arg-type] # likewise
