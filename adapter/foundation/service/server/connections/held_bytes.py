"""Limits the memory that the incomplete heads, and the bodies, of all connections take together.

For the poller thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.service.server.connections.bodies import BodyLimits
    from adapter.foundation.service.server.connections.connection import Connection

MOST_UNAUTHENTICATED_BYTES = 16 * 1024 * 1024
"""Bytes of incomplete heads in all connections without a verified client certificate."""
MOST_KNOWN_BYTES = 64 * 1024 * 1024
"""Bytes of incomplete heads in all connections with a verified client certificate."""


class HeldBytes:
    """The bytes of the bodies, or of the incomplete heads, that connections hold."""

    def __init__(self, most: int, size_of: Callable[[Connection], int], *, most_beside: int = 0) -> None:
        """`most` limits the total; the largest item may exceed it while the others have less than `most_beside`."""
        self._most = most
        self._most_beside = most_beside
        self._size_of = size_of
        self._sizes: dict[Connection, int] = {}
        self.total = 0
        """Total number of bytes."""

    def note(self, conn: Connection) -> None:
        """Record how many bytes a connection holds now."""
        size = self._size_of(conn)
        self.total += size - self._sizes.get(conn, 0)
        self._sizes[conn] = size

    def release(self, conn: Connection) -> None:
        """Forget what a connection holds; do nothing if it is unknown."""
        self.total -= self._sizes.pop(conn, 0)

    def one_too_many(self, droppable: Iterable[Connection] | None = None) -> Connection | None:
        """Return the connection to drop: the largest holder (of `droppable`, or of all); None while there is room."""
        if self.total <= self._most or self.total - max(self._sizes.values()) < self._most_beside:
            return None
        return max(
            self._sizes if droppable is None else droppable, key=lambda conn: self._sizes.get(conn, 0), default=None
        )


def held_bodies(limits: BodyLimits) -> HeldBytes:
    """Return the counter for bodies that are arriving or in use."""
    return HeldBytes(
        limits.most_bytes,
        lambda conn: len(conn.body.received) if conn.body else 0,
        most_beside=limits.most_beside_bytes,
    )


class HeadBytes:
    """The memory of incomplete heads, with separate limits for clients with and without a verified certificate."""

    def __init__(
        self, most_unauthenticated: int = MOST_UNAUTHENTICATED_BYTES, most_known: int = MOST_KNOWN_BYTES
    ) -> None:
        self._of_unauthenticated = HeldBytes(most_unauthenticated, lambda conn: len(conn.head))
        self._of_known = HeldBytes(most_known, lambda conn: len(conn.head))

    def of(self, conn: Connection) -> HeldBytes:
        """Return the counter of the heads that share a limit with this connection's head."""
        return self._of_known if conn.is_known else self._of_unauthenticated

    def forget(self, conn: Connection) -> None:
        """Forget a head that is complete or whose connection has ended; do nothing if it is unknown."""
        self._of_unauthenticated.release(conn)
        self._of_known.release(conn)
