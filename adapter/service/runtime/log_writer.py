"""Writes lines of the log in a thread of its own, so that nobody who logs waits for whoever reads the log.

A container's stderr is a pipe. When its reader stalls the pipe is full after 64 kB, and a thread that writes a line
itself stands still with whatever lock it holds. Here lines wait in a queue of bounded size; what does not fit is
dropped and counted, and a line says how many there were as soon as lines are read again.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

MOST_BYTES = 1024 * 1024
FLUSH_SECONDS = 1.0
"""At the end of the process, for what still waits."""
_IDLE_SECONDS = 5.0
"""Without a line, after which the thread ends: so there is hardly ever one while the arbiter forks a worker."""
_PIECE = select.PIPE_BUF
"""Bytes that fit into a pipe at once if it takes any (pipe(7))."""


class QueuedHandler(logging.Handler):
    """Formats records where they are logged, and has the lines written to a stream by a thread.

    The thread begins with the first line of a process, so a child that is forked has one of its own. Lines that wait at
    the fork are the parent's to write.
    """

    def __init__(self, stream: TextIO, most_bytes: int = MOST_BYTES) -> None:
        super().__init__()
        self._descriptor = stream.fileno()
        self._most = most_bytes
        self._begin()
        os.register_at_fork(before=self._hold, after_in_parent=self._let_go, after_in_child=self._begin)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record's line; never waits for the stream."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - logging's own contract: a record that cannot be formatted harms no caller
            line = f"a record of {record.name} could not be formatted: {record.msg!r}"
        self._put(f"{line}\n".encode(errors="backslashreplace"))

    def flush(self) -> None:
        """Wait until everything is written, for at most FLUSH_SECONDS: nobody may be reading."""
        until = time.monotonic() + FLUSH_SECONDS
        with self._change:
            while (self._lines or self._is_writing) and self._thread is not None:
                left = until - time.monotonic()
                if left <= 0:
                    return
                self._change.wait(left)
        # No thread can be started any more when the interpreter ends.
        while (line := self._next()) is not None:
            if not _written(self._descriptor, line, until):
                return

    def _begin(self) -> None:
        self._change = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0
        self._is_writing = False
        self._thread: threading.Thread | None = None

    def _hold(self) -> None:
        self._change.acquire()

    def _let_go(self) -> None:
        self._change.release()

    def _put(self, line: bytes) -> None:
        with self._change:
            if self._bytes + len(line) > self._most:
                self._dropped += 1
                return
            self._lines.append(line)
            self._bytes += len(line)
            if self._thread is None:
                self._start()
            self._change.notify_all()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        # Out of threads, or at the end of the interpreter: the line waits for the next one, or for flush.
        with suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._lines and not self._dropped:
                    if not self._change.wait(_IDLE_SECONDS):
                        self._thread = None
                        return
                self._is_writing = True
            line = self._next()
            if line is not None:
                _written(self._descriptor, line)
            with self._change:
                self._is_writing = False
                self._change.notify_all()

    def _next(self) -> bytes | None:
        """Take the next line out of the queue; after the last one, that of how many were dropped."""
        with self._change:
            if self._lines:
                line = self._lines.popleft()
                self._bytes -= len(line)
                return line
            dropped, self._dropped = self._dropped, 0
        return self._told(dropped) if dropped else None

    def _told(self, dropped: int) -> bytes:
        message = "lines of the log were dropped: they came faster than the log was read"
        record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (), None)
        record.__dict__["fields"] = {"lines": dropped}
        return f"{self.format(record)}\n".encode()


def _written(descriptor: int, data: bytes, until: float | None = None) -> bool:
    """Write everything, waiting for the reader until a monotonic time, or for ever; return whether it was written.

    A stream that is closed takes nothing, and nobody can be told.
    """
    view = memoryview(data)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    while view:
        left = None if until is None else max(0.0, 1000 * (until - time.monotonic()))
        if not poll.poll(left):
            return False
        try:
            view = view[os.write(descriptor, view[:_PIECE]) :]
        except BlockingIOError:
            continue
        except OSError:
            return False
    return True
