"""One day of decisions for the chart of the page, in a SQLite file with versioned tables that may be lost at any time.

    history = HistoryCache(folder / "history.sqlite", telemetry.count_history_failure)
    tasks.running("history", history.run)
    …
    history.add(now, records)
    history.read("coredns", since)

Points are written in batches by the task's thread, so that no decision waits for a disk. A file that is corrupt
is moved aside and replaced by an empty one, and a deleted one is made anew; with a full disk the recommender continues
without a history.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections import deque
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.foundation.time.backoff import Backoff
from adapter.foundation.time.clock import Clock
from recommender.running.history.history_points import INSERT, SELECT, point_of, points_of, row_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from recommender.decisions.history_point import HistoryPoint
    from recommender.decisions.record import Record


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
"""The migration at index N leads from version N to version N + 1. Existing ones are never changed; new ones are
appended."""


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


_log = logging.getLogger(__name__)

KEPT_SECONDS = 86_400.0
_UNCHANGED_SECONDS = 60.0
"""How often a value that stays the same is recorded."""
_MOST_WAITING = 20_000
_BATCH = 1000
_PRUNE_SECONDS = 600.0
_AHEAD_SECONDS = 60.0
"""Points further in the future than this come from a wrong clock."""
_BUSY_SECONDS = 2.0
_LOOP_SECONDS = 1.0
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE = 0xFF
"""The part of an extended result code that names the kind of error (SQLite, "Result and Error Codes")."""


class HistoryCache:
    """The history of all recommendations. `add` and `read` may be called from any thread."""

    def __init__(self, path: Path, failed: Callable[[], None], *, clock: Clock | None = None) -> None:
        """`failed` is called when the file cannot be written or read. The file is opened by `run` or `flush`."""
        self._path = path
        self._failed = failed
        self._clock = clock or Clock()
        self._states = StateLog(_log)
        self._waiting: deque[tuple[str, HistoryPoint]] = deque(maxlen=_MOST_WAITING)
        self._last: dict[str, HistoryPoint] = {}
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """The device and the inode of the open file."""
        self._backoff = Backoff(1.0, 60.0, jitter_ratio=0.5)
        self._retry_at = 0.0
        self._pruned_at: float | None = None

    def add(self, now: float, records: Iterable[Record]) -> None:
        """Note all records of a poll; `now` is in Unix seconds. Never waits."""
        before, self._last = self._last, {}
        for name, point in points_of(now, records):
            # Nothing is kept about recommendations that are no longer decided.
            last = before.get(name)
            # A load differs in every poll, which alone is not worth a point.
            same = last is not None and replace(last, time=now, load=point.load) == point
            if last is None or not same or abs(now - last.time) >= _UNCHANGED_SECONDS:
                last = point
                self._waiting.append((name, point))
            self._last[name] = last

    def read(self, name: str, since: float) -> tuple[HistoryPoint, ...]:
        """Return the points of a recommendation from `since` on, oldest first; empty if they cannot be read."""
        if not os.path.exists(self._path):  # noqa: PTH110 - Path.exists raises where the folder may not be looked at
            return ()
        try:
            uri = f"{self._path.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
                rows = connection.execute(
                    SELECT,
                    (name, since),
                ).fetchall()
        except sqlite3.Error as error:
            self._failed()
            self._states.failed("read", f"the history in {self._path} cannot be read: {error}", level=logging.WARNING)
            return ()
        self._states.recovered("read", "the history can be read again")
        return tuple(point_of(row) for row in rows)

    def run(self, stop: threading.Event) -> None:
        """Write added points until `stop` is set."""
        while not stop.wait(_LOOP_SECONDS):
            self.flush()
        self.flush()
        self._close()

    def flush(self) -> None:
        """Write the queued points, and delete those that are older than a day. To be called by one thread only."""
        if self._clock.monotonic() < self._retry_at:
            return
        try:
            if self._connection is not None and self._file_in_place() != self._file:
                # SQLite writes on to a file that was deleted, whose room is free only once it is closed.
                self._close()
            connection = self._connection = self._connection or self._open_database()
            self._write(connection)
            self._prune(connection)
        except (sqlite3.Error, NewerHistoryError, OSError) as error:
            self._after(error)
            return
        self._backoff.reset()
        self._states.recovered("write", "the history is written again")

    def _write(self, connection: sqlite3.Connection) -> None:
        while self._waiting:
            batch = [self._waiting[at] for at in range(min(_BATCH, len(self._waiting)))]
            rows = [(name, *row_of(one)) for name, one in batch]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, rows)
            connection.commit()
            for _ in batch:
                self._waiting.popleft()

    def _prune(self, connection: sqlite3.Connection) -> None:
        now = self._clock.monotonic()
        if self._pruned_at is not None and now - self._pruned_at < _PRUNE_SECONDS:
            return
        wall = self._clock.wall()
        bounds = (wall - KEPT_SECONDS, wall + _AHEAD_SECONDS)
        connection.execute("DELETE FROM points WHERE time < ? OR time > ?", bounds)
        self._pruned_at = now

    def _open_database(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        with ExitStack() as unless_usable:
            unless_usable.callback(connection.close)
            # Not WAL, whose index is mapped into memory: if somebody truncates that file, this process is killed.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = NORMAL")
            _check(connection)
            migrate(connection)
            self._file = self._file_in_place()
            unless_usable.pop_all()
        return connection

    def _file_in_place(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _after(self, error: Exception) -> None:
        """Recover from a failure: with a new file if this one is unusable, otherwise by trying again later."""
        self._failed()
        self._close()
        code = getattr(error, "sqlite_errorcode", None) or 0
        if isinstance(error, NewerHistoryError) or code & _PRIMARY_CODE in _CORRUPT:
            self._move_aside(error)
            return
        self._retry_at = self._clock.monotonic() + self._backoff.delay()
        message = f"the history cannot be written to {self._path}: {error}: the page shows the history up to now"
        self._states.failed("write", message, level=logging.WARNING)

    def _move_aside(self, problem: Exception) -> None:
        aside = self._path.with_name(f"{self._path.name}.broken")
        try:
            self._path.replace(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            self._retry_at = self._clock.monotonic() + self._backoff.delay()
            self._states.failed("write", f"{self._path} can be neither used nor moved aside: {error.strerror}")
            return
        about = fields(file=str(self._path), problem=str(problem), moved_to=str(aside))
        _log.warning("the history cannot be used and is replaced by an empty one", extra=about)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _check(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError for a file whose pages are damaged, before a query meets them."""
    (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        error = sqlite3.DatabaseError(state)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
