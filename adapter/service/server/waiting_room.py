"""Where connections wait for their clients: by stage, oldest first, each with the time at which its patience ends."""

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
    """All connections that are not with the request threads. For the poller thread alone."""

    def __init__(self, poller: selectors.BaseSelector, deadlines: Deadlines) -> None:
        self._poller = poller
        self._deadlines = deadlines
        self.heads = HeadBytes()
        self._members: dict[Stage, dict[Connection, None]] = {stage: {} for stage in _DROPPED_FIRST}
        """In order of arrival in the stage: with one limit for each stage, also in order of expiry."""

    def __len__(self) -> int:
        """How many connections wait."""
        return sum(map(len, self._members.values()))

    def counts(self) -> dict[Stage, int]:
        """How many connections wait in each stage."""
        return {stage: len(members) for stage, members in self._members.items()}

    def unfinished(self) -> int:
        """How many have not sent a whole request yet."""
        return len(self._members[Stage.HANDSHAKE]) + len(self._members[Stage.HEAD])

    def all(self, *stages: Stage) -> list[Connection]:
        """Return the connections of these stages; of every stage if none is named."""
        return [conn for stage in stages or _DROPPED_FIRST for conn in self._members[stage]]

    def put(self, conn: Connection, stage: Stage, events: int = selectors.EVENT_READ) -> None:
        """Let a connection wait in a stage, its time beginning now."""
        self._forget(conn)
        conn.stage = stage
        conn.expires = time.monotonic() + self._deadlines.of(stage)
        self._members[stage][conn] = None
        self.poll(conn, events)

    def take(self, conn: Connection) -> None:
        """Let a connection leave; nothing if it does not wait."""
        self._forget(conn)
        self.poll(conn, 0)

    def poll(self, conn: Connection, events: int) -> None:
        """Change what the poller looks for; 0: nothing."""
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
        """Leave the members of a stage at most so much time from now on; keeps their order."""
        limit = time.monotonic() + seconds
        for conn in self._members[stage]:
            conn.expires = min(conn.expires, limit)

    def expired(self) -> list[Connection]:
        """Return those whose time is over."""
        now = time.monotonic()
        return [conn for members in self._members.values() for conn in _expired(members, now)]

    def next_expiry(self, longest: float) -> float:
        """Seconds until the next one expires, at most `longest`."""
        firsts = [next(iter(members)).expires for members in self._members.values() if members]
        return min(longest, max(0.0, min(firsts) - time.monotonic())) if firsts else longest

    def least_missed(self) -> Connection | None:
        """Return the connection to close when there are too many: the oldest unfinished, else the longest idle.

        Of those that are sent an answer it is the one that reads slowest.
        """
        stage = next((stage for stage, members in self._members.items() if members), None)
        if stage is None:
            return None
        return self.slowest_reader() if stage is Stage.SEND else next(iter(self._members[stage]))

    def slowest_reader(self) -> Connection | None:
        """Return the connection that has read least of its answer for the time that it had; None where none is read."""
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
