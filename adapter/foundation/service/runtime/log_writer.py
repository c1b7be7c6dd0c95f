"""Writes log lines in a separate thread, so that no other thread waits for the reader of the log.

A container's stderr is a pipe. If its reader stalls, the pipe is full after 64 kB, and a thread that writes a log line
blocks while it holds its locks. Here lines wait in a queue of bounded size; lines that do not fit are
dropped and counted, and as soon as lines are read again, a line says how many were dropped.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

MOST_BYTES = 1024 * 1024
FLUSH_SECONDS = 1.0
"""Time to write the remaining lines when the process exits."""
_IDLE_SECONDS = 5.0
"""Idle time after which the thread ends, so that it rarely exists while the arbiter forks a worker."""
_PIECE = select.PIPE_BUF
"""Number of bytes that a pipe that is ready for writing always accepts (pipe(7))."""


class QueuedHandler(logging.Handler):
    """Formats records in the thread that logs them, and writes the lines to a stream in another thread.

    The thread starts with the first line of a process, so a forked child has its own. Lines that are queued at the fork
    are written by the parent. If no thread can be started, the thread that logs writes what it can without waiting.
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
        """Wait until everything is written, for at most FLUSH_SECONDS, since the stream may have no reader."""
        until = time.monotonic() + FLUSH_SECONDS
        with self._change:
            while (self._lines or self._is_writing) and self._thread is not None:
                left = until - time.monotonic()
                if left <= 0:
                    return
                self._change.wait(left)
        # No thread can be started while the interpreter shuts down.
        while (line := self._next()) is not None:
            if _write_all(self._descriptor, line, until):
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
            else:
                self._lines.append(line)
                self._bytes += len(line)
            if self._thread is None:
                self._start()
            self._change.notify_all()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # There are no threads left, or the interpreter shuts down.
            self._write_ready()
        else:
            self._thread = thread

    def _write_ready(self) -> None:
        """Write what the stream accepts at once; the rest waits for the next line or for `flush`."""
        while (line := self._next()) is not None:
            if rest := _write_all(self._descriptor, line, time.monotonic()):
                self._lines.appendleft(rest)
                self._bytes += len(rest)
                return

    def _run(self) -> None:
        while True:
            with self._change:
                # The condition decides, and not how the wait ended: a line may be queued as the time ends.
                if not self._change.wait_for(lambda: self._lines or self._dropped, _IDLE_SECONDS):
                    self._thread = None
                    return
                self._is_writing = True
            line = self._next()
            if line is not None:
                _write_all(self._descriptor, line)
            with self._change:
                self._is_writing = False
                self._change.notify_all()

    def _next(self) -> bytes | None:
        """Take the next line out of the queue; after the last one, return a line that counts the dropped lines."""
        with self._change:
            if self._lines:
                line = self._lines.popleft()
                self._bytes -= len(line)
                return line
            dropped, self._dropped = self._dropped, 0
        return self._dropped_line(dropped) if dropped else None

    def _dropped_line(self, dropped: int) -> bytes:
        message = "log lines were dropped because they were written faster than they were read"
        record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (), None)
        record.__dict__["fields"] = {"lines": dropped}
        return f"{self.format(record)}\n".encode()


def _write_all(descriptor: int, data: bytes, until: float | None = None) -> bytes:
    """Write data, waiting for the reader until a monotonic time or without limit; return what is left then.

    Text for a closed stream is lost, since there is no place to report it.
    """
    view = memoryview(data)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    while view:
        left_ms = None if until is None else max(0.0, 1000 * (until - time.monotonic()))
        if not poll.poll(left_ms):
            return bytes(view)
        try:
            view = view[os.write(descriptor, view[:_PIECE]) :]
        except BlockingIOError:
            continue
        except OSError:
            break
    return b""
