"""Connections that wait for their clients: by stage, the oldest first, each with the time at which it expires.

New connections also wait for the poller thread, where the addresses of their clients take turns. If there are too many
connections, the address that has the most loses one, so that nobody can displace others by connecting again and again.
For the poller thread only.
"""

from __future__ import annotations

import selectors
import time
from collections import Counter
from typing import TYPE_CHECKING

from adapter.foundation.service.server.connections.client_addresses import FamiliarAddresses
from adapter.foundation.service.server.connections.held_bytes import HeadBytes
from adapter.foundation.service.server.connections.stages import Deadlines, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.service.server.connections.connection import Connection


_UNFINISHED = (Stage.HANDSHAKE, Stage.HEAD, Stage.BODY)
"""Stages of connections that have not sent a complete request yet."""
_DROPPED_FIRST = (Stage.LINGER, Stage.HANDSHAKE, Stage.HEAD, Stage.BODY, Stage.SEND, Stage.IDLE)


FAMILIAR_WEIGHT = 8.0
"""The share of an address with a recent authentication, as a multiple of the share of other addresses."""


class AddressTurns:
    """Connections that wait for the poller thread to do work such as a handshake; their addresses take turns.

    The order follows start-time fair queueing (Goyal, Vin and Cheng, 1996), with processor time as the cost. However
    many connections one address opens, another address waits for no more than a few of their handshakes. Within an
    address, the order is that of arrival, so the clients behind one proxy all get their turn.

    Only addresses that have a waiting connection take memory. Not thread-safe.
    """

    def __init__(self, is_familiar: Callable[[bytes], bool]) -> None:
        """`is_familiar` returns whether somebody has authenticated from an address recently."""
        self._is_familiar = is_familiar
        self._waiting: dict[bytes, dict[Connection, None]] = {}
        self._starts: dict[bytes, float] = {}
        """The virtual time at which the next turn of a waiting address begins."""
        self._now = 0.0
        """The virtual time at which the last turn began."""

    def __len__(self) -> int:
        """Return the number of addresses that have a waiting connection."""
        return len(self._waiting)

    def add(self, conn: Connection) -> None:
        """Let a connection wait for its turn."""
        self._starts.setdefault(conn.address, self._now)
        self._waiting.setdefault(conn.address, {})[conn] = None

    def discard(self, conn: Connection) -> None:
        """Forget a connection; do nothing if it is not waiting."""
        waiting = self._waiting.get(conn.address, {})
        waiting.pop(conn, None)
        if not waiting:
            self._waiting.pop(conn.address, None)
            self._starts.pop(conn.address, None)

    def first(self) -> Connection | None:
        """Return the connection whose turn it is; None if none waits."""
        if not self._waiting:
            return None
        # There are at most some hundred addresses, and usually two.
        address = min(self._starts, key=self._starts.__getitem__)
        self._now = self._starts[address]
        return next(iter(self._waiting[address]))

    def charge(self, address: bytes, seconds: float) -> None:
        """Charge an address with the processor time of its turn."""
        if address in self._starts:
            self._starts[address] += seconds / (FAMILIAR_WEIGHT if self._is_familiar(address) else 1.0)


class WaitingConnections:
    """All connections that no request thread is using. For the poller thread only."""

    def __init__(
        self,
        poller: selectors.BaseSelector,
        deadlines: Deadlines,
        others: selectors.BaseSelector | None = None,
    ) -> None:
        """`others` polls the connections that do not come first; if it is None, `poller` polls all connections."""
        self._poller = poller
        self._others = others
        self._deadlines = deadlines
        self.heads = HeadBytes()
        self.familiar = FamiliarAddresses()
        self.newcomers = AddressTurns(self.familiar.__contains__)
        """Connections whose handshake can go on."""
        self._members: dict[Stage, dict[Connection, None]] = {stage: {} for stage in _DROPPED_FIRST}
        """Connections in order of arrival in the stage, which is also the order of expiry."""
        self._unfinished: Counter[bytes] = Counter()
        """The number of unfinished connections of each address."""
        self._idle: Counter[bytes] = Counter()

    def __len__(self) -> int:
        """Return the number of connections."""
        return sum(map(len, self._members.values()))

    def counts(self) -> dict[Stage, int]:
        """Return the number of connections in each stage."""
        return {stage: len(members) for stage, members in self._members.items()}

    def count_unfinished(self) -> int:
        """Return the number of connections that have not sent a complete request yet."""
        return self._unfinished.total()

    def all(self, *stages: Stage) -> list[Connection]:
        """Return the connections of these stages, or of all stages if none is named."""
        return [conn for stage in stages or _DROPPED_FIRST for conn in self._members[stage]]

    def put(self, conn: Connection, stage: Stage, events: int = selectors.EVENT_READ) -> None:
        """Add a connection to a stage; its time starts now."""
        self._forget(conn)
        conn.stage = stage
        conn.expires = time.monotonic() + self._deadlines.of(stage)
        self._members[stage][conn] = None
        if stage is Stage.IDLE and conn.is_known:
            # A connection that is kept for hours authenticates once, and must not lose this share.
            self.familiar.note(conn.address)
        if (counts := self._counts(stage)) is not None:
            counts[conn.address] += 1
        self.poll(conn, events)

    def park(self, conn: Connection) -> None:
        """Let a connection whose handshake can go on wait for its turn, without extending its deadline."""
        self.poll(conn, 0)
        self.newcomers.add(conn)

    def take(self, conn: Connection) -> None:
        """Remove a connection; do nothing if it is unknown."""
        self._forget(conn)
        self.poll(conn, 0)

    def poll(self, conn: Connection, events: int) -> None:
        """Change the events that the poller waits for; 0 for none."""
        poller = self._poller if self._others is None or conn.comes_first else self._others
        if conn.poller is not None and (not events or poller is not conn.poller):
            conn.poller.unregister(conn.sock)
            conn.poller = None
        if events and conn.poller is None:
            poller.register(conn.sock, events, conn)
            conn.poller = poller
        elif events and events != conn.events:
            poller.modify(conn.sock, events, conn)
        conn.events = events

    def shorten(self, stage: Stage, seconds: float) -> None:
        """Limit the time that the connections of a stage have left, keeping their order."""
        limit = time.monotonic() + seconds
        for conn in self._members[stage]:
            conn.expires = min(conn.expires, limit)

    def expired_connections(self) -> list[Connection]:
        """Return the connections that have expired."""
        now = time.monotonic()
        return [conn for members in self._members.values() for conn in _expired_connections(members, now)]

    def next_expiry(self, longest: float) -> float:
        """Return the seconds until the next connection expires, at most `longest`."""
        firsts = [next(iter(members)).expires for members in self._members.values() if members]
        return min(longest, max(0.0, min(firsts) - time.monotonic())) if firsts else longest

    def least_missed(self) -> Connection | None:
        """Return the connection to close if there are too many: if possible, one that was answered and is lingering.

        Otherwise, it is the oldest unfinished connection of the address that has the most of these; if there is none,
        the slowest reader of an answer; if there is none, the longest idle connection of the address with the most.
        """
        if self._members[Stage.LINGER]:
            return next(iter(self._members[Stage.LINGER]))
        if self._unfinished:
            return self._oldest_of(self._largest_address(self._unfinished), *_UNFINISHED)
        if self._members[Stage.SEND]:
            return self.slowest_reader()
        return self._oldest_of(self._largest_address(self._idle), Stage.IDLE) if self._idle else None

    def _largest_address(self, counts: Mapping[bytes, int]) -> bytes:
        """Return the address with the most connections; a familiar address may have more than others."""
        return max(counts, key=lambda one: counts[one] / (FAMILIAR_WEIGHT if one in self.familiar else 1.0))

    def _oldest_of(self, address: bytes, *stages: Stage) -> Connection | None:
        """Return the oldest connection of an address in the first of these stages in which it has any."""
        return next((conn for stage in stages for conn in self._members[stage] if conn.address == address), None)

    def slowest_reader(self) -> Connection | None:
        """Return the connection that reads its answer slowest; None if there is none."""
        now = time.monotonic()
        return min(self._members[Stage.SEND], key=lambda conn: conn.outbox.pace(now), default=None)

    def _forget(self, conn: Connection) -> None:
        self.heads.forget(conn)
        self.newcomers.discard(conn)
        members = self._members.get(conn.stage)
        if members is None or conn not in members:
            return
        del members[conn]
        if (counts := self._counts(conn.stage)) is not None:
            counts[conn.address] -= 1
            if not counts[conn.address]:
                del counts[conn.address]

    def _counts(self, stage: Stage) -> Counter[bytes] | None:
        """Return the numbers of connections by address in which this stage is counted; None if it is not counted."""
        if stage in _UNFINISHED:
            return self._unfinished
        return self._idle if stage is Stage.IDLE else None


def _expired_connections(members: dict[Connection, None], now: float) -> Iterator[Connection]:
    for conn in members:
        if conn.expires > now:
            return
        yield conn
