"""Deadlines of requests, and reads from a socket that observe them.

A socket's own timeout applies to a single read. A server that sends a byte now and then never exceeds it, neither in
the body nor in the head, which the standard library reads line by line. So before each read, the timeout is set to the
remaining time.
"""

from __future__ import annotations

import http
import http.client
import io
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

PIECE_BYTES = 64 * 1024
"""Largest number of bytes that are read at once."""


class DeadlinePassedError(TimeoutError):
    """The deadline of a request has passed."""


class Deadline:
    """The time by which a request must end."""

    __slots__ = ("_at", "_clock", "seconds")

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._at = clock() + seconds

    def remaining(self) -> float:
        """Return the remaining seconds, more than 0. Raises DeadlinePassedError."""
        remaining = self._at - self._clock()
        if remaining <= 0:
            raise DeadlinePassedError
        return remaining


class TimedReads:
    """The state that all reads of one answer share: how long the next read may wait, and what has been read so far."""

    __slots__ = ("next_wait", "received")

    def __init__(self, next_wait: Callable[[], float]) -> None:
        self.next_wait = next_wait
        self.received = 0


class _TimedReader(io.RawIOBase):
    """Reads from a socket with a time limit for each read."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, reads: TimedReads) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._reads = reads

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer, as io defines it
        self._sock.settimeout(self._reads.next_wait())
        count = self._raw.readinto(buffer) or 0
        self._reads.received += count
        return count

    def close(self) -> None:
        # Releases the socket, which stays open for its connection.
        self._raw.close()
        super().close()


class FinalResponse(http.client.HTTPResponse):
    """An answer whose connection is not used again if it is an interim one, such as 103 Early Hints."""

    def begin(self) -> None:
        super().begin()
        if self.status < http.HTTPStatus.OK:
            # The final answer follows, and would be taken for that of the next request.
            self.will_close = True


class TimedResponse(FinalResponse):
    """An answer whose head and body are read with a time limit."""

    def __init__(self, sock: socket.socket, *arguments: Any, reads: TimedReads, **options: Any) -> None:  # noqa: ANN401
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), sock, reads), PIECE_BYTES)
