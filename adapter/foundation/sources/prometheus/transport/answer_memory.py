"""Limits the memory that large answers of one server take while they are received and read.

Each answer has a limit of its own, but a process requests many at once. Beyond a common limit, only one answer may
grow: the one whose reception began first. The others wait, and so does the server that sends them, until that answer
has also been decoded and released, because answers are received faster than they are decoded. Every answer ends by its
deadline at the latest.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from adapter.foundation.sources.deadlines import Deadline, DeadlinePassedError

MOST_BYTES: Final = 192 * 1024 * 1024
"""Limit of all answers together; one answer at a time may grow beyond it."""
SMALL_BYTES: Final = 1024 * 1024
"""A body up to this size is not counted and never waits for others."""


class ReceivedBody(bytearray):
    """The body of an answer, which counts for as long as anything refers to it."""

    __slots__ = ("__weakref__",)


class AnswerMemory:
    """The bodies of one server's answers that are in memory. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_BYTES, small_bytes: int = SMALL_BYTES) -> None:
        """`most_bytes` is the common limit; bodies of at most `small_bytes` do not count."""
        self._most = most_bytes
        self._small = small_bytes
        # Re-entrant, because the garbage collector may release a body anywhere.
        self._changed = threading.Condition(threading.RLock())
        self._bytes: dict[int, int] = {}
        """The size of each body that counts, by its identity."""
        self._growing: dict[int, None] = {}
        """Bodies that are being received; the one that began to count first comes first."""
        self._on_top: int | None = None
        """The body that may grow beyond the limit until it is released."""

    @property
    def held_bytes(self) -> int:
        """The size of all bodies that count, in bytes."""
        with self._changed:
            return sum(self._bytes.values())

    @contextmanager
    def receiving(self, body: ReceivedBody) -> Iterator[None]:
        """Register a body that is received during the block; if the block raises an error, the body is emptied."""
        key = id(body)
        try:
            yield
        except BaseException:
            # The traceback refers to the body, and may live until the garbage collector runs.
            body.clear()
            with self._changed:
                self._growing.pop(key, None)
                self._let_go(key)
            raise
        with self._changed:
            self._growing.pop(key, None)
            self._changed.notify_all()

    def wait_to_grow(self, body: ReceivedBody, deadline: Deadline) -> None:
        """Count the bytes received of a body, and wait until more may be received. Raises DeadlinePassedError."""
        if len(body) <= self._small:
            return
        key = id(body)
        with self._changed:
            if key not in self._bytes:
                weakref.finalize(body, self._let_go, key)
                self._growing[key] = None
            self._bytes[key] = len(body)
            while not self._may_grow(key):
                self._wait(deadline)

    def _may_grow(self, key: int) -> bool:
        if sum(self._bytes.values()) <= self._most:
            self._on_top = None
            return True
        if self._on_top is None:
            self._on_top = next(iter(self._growing))
        return self._on_top == key

    def _wait(self, deadline: Deadline) -> None:
        try:
            self._changed.wait(deadline.remaining())
        except DeadlinePassedError:
            raise DeadlinePassedError("other large answers of it were being read") from None

    def _let_go(self, key: int) -> None:
        with self._changed:
            self._bytes.pop(key, None)
            if self._on_top == key:
                self._on_top = None
            self._changed.notify_all()
