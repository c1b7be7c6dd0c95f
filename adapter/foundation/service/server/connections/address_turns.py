"""Connections that wait for the poller thread to do work such as a handshake; their addresses take turns.

The order follows start-time fair queueing (Goyal, Vin and Cheng, 1996), with processor time as the cost. However many
connections one address opens, another address waits for no more than a few of their handshakes. Within an address,
the order is that of arrival, so the clients behind one proxy all get their turn.

Only addresses that have a waiting connection take memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.service.server.connections.connection import Connection

FAMILIAR_WEIGHT = 8.0
"""The share of an address from which somebody has authenticated recently, as a multiple of a stranger's share."""


class AddressTurns:
    """Waiting connections, and whose turn it is. For one thread."""

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

    def spent(self, address: bytes, seconds: float) -> None:
        """Charge an address with the processor time of its turn."""
        if address in self._starts:
            self._starts[address] += seconds / (FAMILIAR_WEIGHT if self._is_familiar(address) else 1.0)
