"""A small separate HTTP server for metrics and health checks, independent of the connections on the TLS port.

It has one thread, one poller, one request per connection and a total deadline for each. The oldest connections are
dropped if there are too many, or too many unread bytes. Answers are made in that thread, so they must come from memory.
"""

from __future__ import annotations

import logging
import selectors
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from adapter.service.server.addresses import NO_ROOM
from adapter.service.server.sockets import prepare_accepted, reset_on_close, unacknowledged

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 128
LARGEST_HEAD = 16 * 1024
MOST_BYTES = 16 * 1024 * 1024
"""Limit on the bytes of unread answers."""
DEADLINE = 5.0
"""Seconds from accept to the last byte of the answer."""
HEALTH_AND_METRICS = ("/metrics", "/livez", "/readyz")
"""Paths that every program serves."""
_LONGEST_WAIT = 0.5
_ACCEPT_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """Status, body and content type of an answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Answer: TypeAlias = "Callable[[str, str], PlainAnswer | None]"
"""Returns the answer for a path and a query, or None if the path is unknown. Never waits."""


class PlainServer:
    """Serves GET and HEAD on a listening socket until stopped."""

    def __init__(
        self,
        listener: socket.socket,
        answer: Answer,
        *,
        paths: Callable[[], Sequence[str]] = lambda: HEALTH_AND_METRICS,
        deadline_seconds: float = DEADLINE,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._listener = listener
        self._answer = answer
        self._paths = paths
        """Paths that the answer to an unknown path names."""
        self._deadline = deadline_seconds
        self._most_bytes = most_bytes
        self._poller = selectors.DefaultSelector()
        self._visitors: dict[_Visitor, None] = {}
        """Open connections, the oldest first."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="plain-http", daemon=True)

    def start(self) -> None:
        """Start to serve in a thread."""
        self._poller.register(self._listener, selectors.EVENT_READ)
        self._thread.start()

    def stop(self) -> None:
        """Stop within about half a second, whatever clients do."""
        self._stopped.set()
        self._thread.join(2 * _LONGEST_WAIT)

    def _run(self) -> None:
        while not self._stopped.is_set():
            for key, _ in self._poller.select(_LONGEST_WAIT):
                if key.data is None:
                    self._accept()
                else:
                    self._advance(key.data)
            self._expire()
        for visitor in list(self._visitors):
            self._close(visitor)
        self._poller.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError as e:
            if e.errno in NO_ROOM and not self._make_room():
                # The listener stays readable, so without a pause this loop would never sleep.
                self._stopped.wait(_ACCEPT_PAUSE)
            return
        if len(self._visitors) >= MOST_CONNECTIONS:
            self._make_room()
        prepare_accepted(sock)
        visitor = _Visitor(sock, time.monotonic() + self._deadline)
        self._visitors[visitor] = None
        self._poller.register(sock, selectors.EVENT_READ, visitor)

    def _make_room(self) -> bool:
        """Close the oldest connection; return whether there was one."""
        oldest = next(iter(self._visitors), None)
        if oldest is not None:
            self._cut(oldest)
        return oldest is not None

    def _advance(self, visitor: _Visitor) -> None:
        if visitor not in self._visitors:
            return
        try:
            if not visitor.outbox and visitor.read():
                visitor.answer(self._response(bytes(visitor.inbox)))
                self._make_room_beside(visitor)
                self._poller.modify(visitor.sock, selectors.EVENT_WRITE, visitor)
            if visitor.outbox and visitor.write():
                self._close(visitor)
        except BlockingIOError:
            pass
        except (OSError, EOFError):
            self._close(visitor)

    def _make_room_beside(self, newest: _Visitor) -> None:
        """Close connections with unread answers, the oldest first, until the unread bytes are within the limit."""
        readers = [visitor for visitor in self._visitors if visitor.outbox and visitor is not newest]
        held = newest.held_bytes + sum(visitor.held_bytes for visitor in readers)
        for visitor in readers:
            if held <= self._most_bytes:
                return
            held -= visitor.held_bytes
            self._cut(visitor)

    def _expire(self) -> None:
        now = time.monotonic()
        for visitor in [visitor for visitor in self._visitors if visitor.expires <= now]:
            self._cut(visitor)

    def _cut(self, visitor: _Visitor) -> None:
        """Close a connection, and let the kernel discard its unread bytes."""
        if unacknowledged(visitor.sock):
            reset_on_close(visitor.sock)
        self._close(visitor)

    def _close(self, visitor: _Visitor) -> None:
        del self._visitors[visitor]
        with suppress(OSError, KeyError, ValueError):
            self._poller.unregister(visitor.sock)
        with suppress(OSError):
            visitor.sock.close()

    def _response(self, head: bytes) -> bytes:
        parts = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
            return _http(PlainAnswer(400, b"this is not an HTTP request\n"))
        method, target, _ = parts
        if method not in {"GET", "HEAD"}:
            return _http(PlainAnswer(405, b"only GET and HEAD are allowed here\n"), "Allow: GET, HEAD\r\n")
        path, _, query = target.partition("?")
        try:
            answer = self._answer(path, query)
        except Exception:  # noqa: BLE001 - the loop: one answer that fails must not end metrics and health
            _log.exception("%s could not be answered", path)
            answer = PlainAnswer(500, b"internal error\n")
        whole = _http(answer or self._not_found())
        return whole if method == "GET" else whole[: whole.index(b"\r\n\r\n") + 4]

    def _not_found(self) -> PlainAnswer:
        *others, last = self._paths()
        return PlainAnswer(404, f"there are {', '.join(others)} and {last} here\n".encode())


class _Visitor:
    """One connection."""

    def __init__(self, sock: socket.socket, expires: float) -> None:
        self.sock = sock
        self.expires = expires
        self.inbox = bytearray()
        self.outbox = memoryview(b"")
        self.held_bytes = 0
        """Bytes of the answer, which stay in memory until the last of them is sent."""

    def read(self) -> bool:
        """Read the available bytes; return whether the head is complete. Raises EOFError if it can never be."""
        data = self.sock.recv(LARGEST_HEAD)
        self.inbox += data
        if b"\r\n\r\n" in self.inbox:
            return True
        if not data or len(self.inbox) > LARGEST_HEAD:
            raise EOFError
        return False

    def answer(self, data: bytes) -> None:
        """Set the answer to send."""
        self.outbox, self.held_bytes = memoryview(data), len(data)

    def write(self) -> bool:
        """Send what fits; return whether everything is sent."""
        self.outbox = self.outbox[self.sock.send(self.outbox) :]
        return not self.outbox


def _http(answer: PlainAnswer, more_headers: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: {answer.content_type}\r\n"
        f"X-Content-Type-Options: nosniff\r\nConnection: close\r\n{more_headers}"
        f"Content-Length: {len(answer.body)}\r\n\r\n"
    )
    return head.encode("latin-1") + answer.body
