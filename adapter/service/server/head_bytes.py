"""Limits the memory of incomplete heads in all connections together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.service.server.connections import Connection

MOST_STRANGERS_BYTES = 16 * 1024 * 1024
"""Bytes of incomplete heads in all connections without a verified client certificate."""
MOST_KNOWN_BYTES = 64 * 1024 * 1024
"""Bytes of incomplete heads in all connections with a verified client certificate."""


class HeadBytes:
    """The memory of incomplete heads, with separate limits for clients with and without a verified certificate."""

    def __init__(self, most_strangers: int = MOST_STRANGERS_BYTES, most_known: int = MOST_KNOWN_BYTES) -> None:
        self._of_strangers = _Sizes(most_strangers)
        self._of_known = _Sizes(most_known)

    def note(self, conn: Connection) -> None:
        """Record the growth of a head."""
        self._sizes(conn).note(conn)

    def forget(self, conn: Connection) -> None:
        """Forget a head that is complete or whose connection has ended; do nothing if it is unknown."""
        self._of_strangers.forget(conn)
        self._of_known.forget(conn)

    def one_too_many(self, conn: Connection) -> Connection | None:
        """Return the connection with the largest head, to be dropped for this one; None while there is room."""
        return self._sizes(conn).one_too_many()

    def _sizes(self, conn: Connection) -> _Sizes:
        return self._of_known if conn.is_known else self._of_strangers


class _Sizes:
    """Heads of one kind of client, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._by_connection: dict[Connection, int] = {}

    def note(self, conn: Connection) -> None:
        size = len(conn.head)
        self._total += size - self._by_connection.get(conn, 0)
        self._by_connection[conn] = size

    def forget(self, conn: Connection) -> None:
        self._total -= self._by_connection.pop(conn, 0)

    def one_too_many(self) -> Connection | None:
        sizes = self._by_connection
        return max(sizes, key=sizes.__getitem__) if self._total > self._most else None
