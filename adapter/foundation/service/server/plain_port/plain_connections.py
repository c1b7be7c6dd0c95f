"""One connection of the plain port: the arrived part of a head, and the unsent part of an answer."""

from __future__ import annotations

import math
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.foundation.files.gzip_format import Piece, text_bytes, text_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Sequence

    from adapter.foundation.service.server.plain_port.paced_text import Pieces

LARGEST_HEAD = 16 * 1024
_JUDGED_AFTER = 0.75
"""Seconds after which a reader's rate is judged while others wait for a new text, which takes memory too."""
_LARGE = 1024 * 1024
_FASTER = 4
"""A reader is assumed to be able to read this many times faster than it has so far."""
_AT_ONCE = 128 * 1024
_MOST_PIECES = 64
"""Pieces that are offered to the kernel at once; it accepts at most 1024 (IOV_MAX)."""


class PlainConnection:
    """One connection."""

    def __init__(self, sock: socket.socket, expires: float, address: bytes = b"") -> None:
        self.sock = sock
        self.address = address
        """The part of the client's address that identifies the client."""
        self.expires = expires
        self.inbox = bytearray()
        self.wants_body = True
        self.is_answered = False
        self.is_waiting = False
        """Whether a text is being made for this connection."""
        self.pieces: Pieces = ()
        """The body of the answer, which stays in memory until its last byte is sent."""
        self._outbox: list[memoryview] = []
        self._waiting: Iterator[Piece] = iter(())
        self._left = 0
        """Bytes of the answer that are not sent."""
        self._sent = 0
        self._since = math.inf

    def read(self) -> bool:
        """Read the available bytes; return whether the head is complete. Raises EOFError if it can never be."""
        data = self.sock.recv(LARGEST_HEAD)
        self.inbox += data
        if b"\r\n\r\n" in self.inbox:
            return True
        if not data or len(self.inbox) > LARGEST_HEAD:
            raise EOFError
        return False

    def answer(self, head: bytes, pieces: Pieces) -> None:
        """Set the answer to send."""
        self.is_answered, self.pieces, self._since = True, pieces, time.monotonic()
        self._outbox, self._waiting = [], iter((head, *pieces))
        self._left = text_bytes((head, *pieces))

    def write(self) -> bool:
        """Send what fits; return whether everything is sent. Raises OSError."""
        self._unpack_some()
        with suppress(BlockingIOError):
            count = self.sock.sendmsg(self._outbox)
            self._sent += count
            self._left -= count
            while self._outbox and count >= len(self._outbox[0]):
                count -= len(self._outbox.pop(0))
            if count:
                self._outbox[0] = self._outbox[0][count:]
        return not self._left

    def _unpack_some(self) -> None:
        """Prepare the next bytes to send: at most one piece of a packed text."""
        ready = sum(map(len, self._outbox))
        while ready < _AT_ONCE and len(self._outbox) < _MOST_PIECES:
            piece = next(self._waiting, None)
            if piece is None:
                return
            if text := text_of(piece):
                self._outbox.append(memoryview(text))
                ready += len(text)

    def is_too_slow(self, now: float) -> bool:
        """Return whether the rest of a large answer cannot be read by the deadline, even at several times the rate."""
        is_judged = self._left > _LARGE and now >= self._since + _JUDGED_AFTER
        return is_judged and self._left > _FASTER * self.pace(now) * (self.expires - now)

    def pace(self, now: float) -> float:
        """Return the average bytes per second of the answer so far, over at least one second."""
        return self._sent / max(1.0, now - self._since)


def slowest_of(readers: Iterable[PlainConnection]) -> PlainConnection:
    """Return the reader that has read the fewest bytes per second."""
    now = time.monotonic()
    return min(readers, key=lambda connection: connection.pace(now))


def connections_of_largest_address(connections: Iterable[PlainConnection]) -> list[PlainConnection]:
    """Return the connections of the address that has the most of them, in order; empty if there are no connections."""
    connections = list(connections)
    counts = Counter(connection.address for connection in connections)
    crowded = max(counts, key=counts.__getitem__, default=b"")
    return [connection for connection in connections if connection.address == crowded]


def is_of_one_text(reader: PlainConnection, other: PlainConnection) -> bool:
    """Return whether two answers consist of the same objects in memory. Different texts may share some pieces."""
    return [*map(id, reader.pieces)] == [*map(id, other.pieces)]


def held_bytes(readers: Sequence[PlainConnection]) -> int:
    """Return the bytes of the readers' answers in memory; a piece that several of them read counts once."""
    pieces = {id(piece): piece for connection in readers for piece in connection.pieces}.values()
    return sum(len(piece if isinstance(piece, bytes) else piece.member) for piece in pieces)
