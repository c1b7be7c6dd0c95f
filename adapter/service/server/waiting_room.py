"""Connections that wait for their clients, by stage and oldest first, each with the time at which it expires."""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING

from adapter.service.server.connections import Connection, Stage
from adapter.service.server.head_bytes import HeadBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.service.server.connections import Deadlines

_DROPPED_FIRST = (Stage.LINGER, Stage.HANDSHAKE, Stage.HEAD, Stage.SEND, Stage.IDLE)


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
        return len(self._members[Stage.HANDSHAKE]) + len(self._members[Stage.HEAD])

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
        return [conn for members in self._members.values() for conn in _expired(members, now)]

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


def _expired(members: dict[Connection, None], now: float) -> Iterator[Connection]:
    for conn in members:
        if conn.expires > now:
            return
        yield conn
