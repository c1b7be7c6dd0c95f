"""Connections that wait for their clients, by stage and oldest first, each with the time at which it expires.

The memory of heads and bodies that are arriving is limited over all connections together. For the poller thread only.
"""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING

from adapter.foundation.service.server.connections import Connection, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from adapter.foundation.service.server.connections import Deadlines

MOST_STRANGERS_BYTES = 16 * 1024 * 1024
"""Bytes of incomplete heads in all connections without a verified client certificate."""
MOST_KNOWN_BYTES = 64 * 1024 * 1024
"""Bytes of incomplete heads in all connections with a verified client certificate."""
_DROPPED_FIRST = (Stage.LINGER, Stage.HANDSHAKE, Stage.HEAD, Stage.BODY, Stage.SEND, Stage.IDLE)


class WaitingRoom:
    """All connections that no request thread is using. For the poller thread only."""

    def __init__(self, poller: selectors.BaseSelector, deadlines: Deadlines) -> None:
        self._poller = poller
        self._deadlines = deadlines
        self.heads = HeadBytes()
        self._members: dict[Stage, dict[Connection, None]] = {stage: {} for stage in _DROPPED_FIRST}
        """Connections in order of arrival in the stage, which is also the order of expiry."""

    def __len__(self) -> int:
        """Return the number of connections."""
        return sum(map(len, self._members.values()))

    def counts(self) -> dict[Stage, int]:
        """Return the number of connections in each stage."""
        return {stage: len(members) for stage, members in self._members.items()}

    def unfinished(self) -> int:
        """Return the number of connections that have not sent a complete request yet."""
        return sum(len(self._members[stage]) for stage in (Stage.HANDSHAKE, Stage.HEAD, Stage.BODY))

    def all(self, *stages: Stage) -> list[Connection]:
        """Return the connections of these stages, or of all stages if none is named."""
        return [conn for stage in stages or _DROPPED_FIRST for conn in self._members[stage]]

    def put(self, conn: Connection, stage: Stage, events: int = selectors.EVENT_READ) -> None:
        """Add a connection to a stage; its time starts now."""
        self._forget(conn)
        conn.stage = stage
        conn.expires = time.monotonic() + self._deadlines.of(stage)
        self._members[stage][conn] = None
        self.poll(conn, events)

    def take(self, conn: Connection) -> None:
        """Remove a connection; do nothing if it is unknown."""
        self._forget(conn)
        self.poll(conn, 0)

    def poll(self, conn: Connection, events: int) -> None:
        """Change the events that the poller waits for; 0 for none."""
        if events == conn.events:
            return
        if not conn.events:
            self._poller.register(conn.sock, events, conn)
        elif events:
            self._poller.modify(conn.sock, events, conn)
        else:
            self._poller.unregister(conn.sock)
        conn.events = events

    def shorten(self, stage: Stage, seconds: float) -> None:
        """Limit the time that the connections of a stage have left, keeping their order."""
        limit = time.monotonic() + seconds
        for conn in self._members[stage]:
            conn.expires = min(conn.expires, limit)

    def expired(self) -> list[Connection]:
        """Return the connections that have expired."""
        now = time.monotonic()
        return [conn for members in self._members.values() for conn in _expired_connections(members, now)]

    def next_expiry(self, longest: float) -> float:
        """Return the seconds until the next connection expires, at most `longest`."""
        firsts = [next(iter(members)).expires for members in self._members.values() if members]
        return min(longest, max(0.0, min(firsts) - time.monotonic())) if firsts else longest

    def least_missed(self) -> Connection | None:
        """Return the connection to close if there are too many: the oldest unfinished, else the longest idle.

        Among connections with unread answers, it is the one that reads slowest.
        """
        stage = next((stage for stage, members in self._members.items() if members), None)
        if stage is None:
            return None
        return self.slowest_reader() if stage is Stage.SEND else next(iter(self._members[stage]))

    def slowest_reader(self) -> Connection | None:
        """Return the connection that reads its answer slowest; None if there is none."""
        now = time.monotonic()
        return min(self._members[Stage.SEND], key=lambda conn: conn.outbox.pace(now), default=None)

    def _forget(self, conn: Connection) -> None:
        self.heads.forget(conn)
        members = self._members.get(conn.stage)
        if members is not None:
            members.pop(conn, None)


def _expired_connections(members: dict[Connection, None], now: float) -> Iterator[Connection]:
    for conn in members:
        if conn.expires > now:
            return
        yield conn


class HeldBytes:
    """The bodies or answers that connections hold, the oldest first."""

    def __init__(self, most: int, size_of: Callable[[Connection], int]) -> None:
        self._most = most
        self._size_of = size_of
        self._sizes: dict[Connection, int] = {}
        self.total = 0
        """Number of bytes."""

    def note(self, conn: Connection) -> None:
        """Record how many bytes a connection holds now."""
        size = self._size_of(conn)
        self.total += size - self._sizes.get(conn, 0)
        self._sizes[conn] = size

    def release(self, conn: Connection) -> None:
        """Forget what a connection holds; do nothing if it is unknown."""
        self.total -= self._sizes.pop(conn, 0)

    def one_too_many(self, droppable: Iterable[Connection] | None = None) -> Connection | None:
        """Return the one with the most bytes, of these or of all, to be dropped; None while there is room."""
        if self.total <= self._most:
            return None
        return max(
            self._sizes if droppable is None else droppable, key=lambda conn: self._sizes.get(conn, 0), default=None
        )


def held_bodies(most_bytes: int) -> HeldBytes:
    """Return the memory of bodies that are arriving or in use."""
    return HeldBytes(most_bytes, lambda conn: len(conn.body.received) if conn.body else 0)


class HeadBytes:
    """The memory of incomplete heads, with separate limits for clients with and without a verified certificate."""

    def __init__(self, most_strangers: int = MOST_STRANGERS_BYTES, most_known: int = MOST_KNOWN_BYTES) -> None:
        self._of_strangers = HeldBytes(most_strangers, lambda conn: len(conn.head))
        self._of_known = HeldBytes(most_known, lambda conn: len(conn.head))

    def of(self, conn: Connection) -> HeldBytes:
        """Return the heads that share a limit with this connection's."""
        return self._of_known if conn.is_known else self._of_strangers

    def forget(self, conn: Connection) -> None:
        """Forget a head that is complete or whose connection has ended; do nothing if it is unknown."""
        self._of_strangers.release(conn)
        self._of_known.release(conn)
