"""A small separate HTTP server for metrics and health checks, independent of the connections on the TLS port.

It has one thread, one poller, one request per connection, and a total deadline for each connection. That thread also
builds the answers, so they must come from memory at once. The metrics take longer, so another thread builds them
(`PacedText`). If there are too many readers or connections, the address that has the most loses one, so that nobody
can displace others by connecting again and again: its slowest reader first. If there are too many unread bytes, the
slowest reader of all is closed.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.foundation.service.server.addresses import NO_ROOM
from adapter.foundation.service.server.connections.client_addresses import address_key
from adapter.foundation.service.server.plain_port.plain_answers import (
    HEALTH_AND_METRICS,
    Answer,
    PlainAnswer,
    PlainAnswers,
)
from adapter.foundation.service.server.plain_port.plain_connections import (
    PlainConnection,
    connections_of_largest_address,
    held_bytes,
    is_of_one_text,
    slowest_of,
)
from adapter.foundation.service.server.sockets import prepare_accepted, reset_on_close, unacknowledged_bytes
from adapter.foundation.web.metric_text import METRICS_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.service.server.plain_port.paced_text import PacedText, Pieces

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 128
MOST_READERS = 64
"""The most connections whose answers have not been read to the end. Far fewer ever begin at once, so a reader that has
just begun is never the slowest."""
MOST_BYTES = 16 * 1024 * 1024
"""Limit on the bytes of unread answers. A text that several readers share counts once. The newest text may exceed the
limit, however large it is."""
DEADLINE = 5.0
"""Seconds from accept to the last byte of the answer, not counting the time in which the answer is built."""
LONGEST_MAKING = 60.0
"""Seconds for which a reader of metrics waits for the text."""
_LONGEST_WAIT = 0.5
_ACCEPT_PAUSE = 0.2


class PlainServer:
    """Serves GET and HEAD on a listening socket until stopped."""

    def __init__(
        self,
        listener: socket.socket,
        answer: Answer,
        *,
        metrics: PacedText | None = None,
        paths: Callable[[], Sequence[str]] = lambda: HEALTH_AND_METRICS,
        deadline_seconds: float = DEADLINE,
        most_bytes: int = MOST_BYTES,
        allows_host: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`metrics` is the text of `/metrics`; without it, `answer` answers that path, too.

        The answer to an unknown path names `paths`, and `allows_host` decides under which names browsers may reach the
        server.
        """
        self._listener = listener
        self._answers = PlainAnswers(answer, paths, allows_host, leaves_out_metrics=metrics is not None)
        self._metrics = metrics
        self._deadline = deadline_seconds
        self._most_bytes = most_bytes
        self._poller = selectors.DefaultSelector()
        self._connections: dict[PlainConnection, None] = {}
        """Open connections, the oldest first."""
        self._made: deque[tuple[PlainConnection, PlainAnswer]] = deque()
        """Texts from the other thread, which wakes this one by sending a byte."""
        self._wake: socket.socket | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to serve in a thread."""
        self._poller.register(self._listener, selectors.EVENT_READ, self._accept)
        woken, self._wake = socket.socketpair()
        for end in (woken, self._wake):
            end.settimeout(0)
        self._poller.register(woken, selectors.EVENT_READ, lambda: self._take_made(woken))
        self._thread = threading.Thread(target=self._run, args=(woken,), name="plain-http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop at once, whatever clients do."""
        self._stopped.set()
        if self._wake is not None:
            # Closing this end of the connection wakes the poller.
            self._wake.close()
        if self._thread is not None:
            self._thread.join(2 * _LONGEST_WAIT)

    def _run(self, woken: socket.socket) -> None:
        while not self._stopped.is_set():
            # Without connections nothing expires, and the end of the socket pair that wakes the poller shows the stop.
            for key, _ in self._poller.select(_LONGEST_WAIT if self._connections else None):
                if isinstance(key.data, PlainConnection):
                    self._advance(key.data)
                else:
                    key.data()
            self._expire()
        for connection in list(self._connections):
            self._close(connection)
        self._poller.close()
        woken.close()

    def _accept(self) -> None:
        try:
            sock, client = self._listener.accept()
        except OSError as e:
            if e.errno in NO_ROOM and not self._make_room():
                # The listener stays readable, so without a pause this loop would never sleep.
                self._stopped.wait(_ACCEPT_PAUSE)
            return
        if len(self._connections) >= MOST_CONNECTIONS:
            self._make_room()
        prepare_accepted(sock)
        connection = PlainConnection(sock, time.monotonic() + self._deadline, address_key(client[0]))
        self._connections[connection] = None
        try:
            self._poller.register(sock, selectors.EVENT_READ, connection)
        except OSError:  # The kernel watches no further descriptor.
            self._close(connection)

    def _make_room(self) -> bool:
        """Close a connection of the address that has the most: its slowest reader or, if it has none, its oldest one.

        Return whether one was closed.
        """
        crowd = connections_of_largest_address(self._connections)
        readers = [connection for connection in crowd if connection.is_answered]
        if crowd:
            self._cut_off(slowest_of(readers) if readers else crowd[0])
        return bool(crowd)

    def _advance(self, connection: PlainConnection) -> None:
        if connection not in self._connections:
            return
        try:
            if not connection.is_answered and connection.read():
                self._respond(connection)
            elif connection.is_answered and connection.write():
                self._close(connection)
        except BlockingIOError:
            pass
        except (OSError, EOFError):
            self._close(connection)

    def _respond(self, connection: PlainConnection) -> None:
        """Answer a complete head, or request the metrics for it. Raises OSError."""
        answer = self._answers.to(connection)
        if answer is not None:
            self._begin(connection, answer)
            return
        self._poller.unregister(connection.sock)
        connection.is_waiting, connection.expires = True, time.monotonic() + LONGEST_MAKING
        assert self._metrics is not None
        self._metrics.ask(lambda text: self._hand_over(connection, text))

    def _hand_over(self, connection: PlainConnection, text: Pieces | None) -> None:
        """Accept a text for a connection from the thread that has built it."""
        made = (
            PlainAnswer(200, b"", METRICS_TYPE, further=text)
            if text is not None
            else PlainAnswer(500, b"internal error\n")
        )
        self._made.append((connection, made))
        if self._wake is not None:
            with suppress(OSError):  # It is full, so that a byte is there already; or it is closed.
                self._wake.send(b"\0")

    def _take_made(self, woken: socket.socket) -> None:
        with suppress(OSError):
            woken.recv(4096)
        while self._made:
            connection, answer = self._made.popleft()
            if connection not in self._connections:
                continue
            connection.is_waiting, connection.expires = False, time.monotonic() + self._deadline
            try:
                self._poller.register(connection.sock, selectors.EVENT_WRITE, connection)
                self._begin(connection, answer)
            except BlockingIOError:
                pass
            except OSError:
                self._close(connection)

    def _begin(self, connection: PlainConnection, answer: PlainAnswer) -> None:
        """Begin to send an answer. Raises OSError."""
        connection.answer(answer.head(), (answer.body, *answer.further) if connection.wants_body else ())
        self._poller.modify(connection.sock, selectors.EVENT_WRITE, connection)
        if connection.write():
            self._close(connection)
        else:
            self._make_room_beside(connection)

    def _make_room_beside(self, newest: PlainConnection) -> None:
        """Close readers until there are few and their unread bytes are within the limit.

        However large the newest text is, its readers do not displace each other.
        """
        while len(others := self._readers_beside(newest)) >= MOST_READERS:
            self._cut_off(slowest_of(connections_of_largest_address(others)))
        while (
            former := [
                connection for connection in self._readers_beside(newest) if not is_of_one_text(connection, newest)
            ]
        ) and held_bytes([newest, *former]) > self._most_bytes:
            self._cut_off(slowest_of(former))

    def _readers_beside(self, newest: PlainConnection) -> list[PlainConnection]:
        return [connection for connection in self._connections if connection.is_answered and connection is not newest]

    def _expire(self) -> None:
        now = time.monotonic()
        is_wanted = any(connection.is_waiting for connection in self._connections)
        for connection in [
            one for one in self._connections if one.expires <= now or (is_wanted and one.is_too_slow(now))
        ]:
            self._cut_off(connection)

    def _cut_off(self, connection: PlainConnection) -> None:
        """Close a connection, and let the kernel discard its unread bytes."""
        if unacknowledged_bytes(connection.sock):
            reset_on_close(connection.sock)
        self._close(connection)

    def _close(self, connection: PlainConnection) -> None:
        del self._connections[connection]
        with suppress(OSError, KeyError, ValueError):
            self._poller.unregister(connection.sock)
        # A task that still waits for the connection would keep a large text in memory.
        connection.answer(b"", ())
        with suppress(OSError):
            connection.sock.close()
