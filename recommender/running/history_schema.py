"""The tables of the history, and how older ones become newer ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

MIGRATIONS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE points (
        name TEXT NOT NULL,
        time REAL NOT NULL,
        replicas INTEGER,
        status TEXT NOT NULL,
        binding TEXT,
        current INTEGER,
        PRIMARY KEY (name, time)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX points_by_time ON points (time)",
    "ALTER TABLE points ADD COLUMN observed REAL",
    "ALTER TABLE points ADD COLUMN median REAL",
    "ALTER TABLE points ADD COLUMN upper REAL",
    "ALTER TABLE points ADD COLUMN predicted_for REAL",
)
"""Each one leads from the version that is its index to the next. They are never changed, only added to."""


class NewerHistoryError(Exception):
    """The file was written by a newer version of this program."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables up to date, each step in a transaction of its own.

    The connection must not begin transactions by itself. Raises NewerHistoryError and sqlite3.Error.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise NewerHistoryError(f"it has schema version {version}, and this program reads up to {len(MIGRATIONS)}")
    for number in range(version, len(MIGRATIONS)):
        connection.execute("BEGIN IMMEDIATE")
        # Commits, or rolls back if the block raises.
        with connection:
            connection.execute(MIGRATIONS[number])
            connection.execute(f"PRAGMA user_version = {number + 1}")
