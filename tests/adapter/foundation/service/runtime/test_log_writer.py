"""A log whose reader stalls: no thread that logs waits for it, and the number of lost lines is logged."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import select
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import FileIO
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.runtime.log_writer import QueuedHandler
from adapter.foundation.service.runtime.logs import TextFormatter
from tests.adapter.foundation.service.servers import (
    PATIENCE,
    Certificates,
    get,
    read_answer,
    send_head,
    settings_of,
    tcp_to,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PIPE_BYTES = 4096


@dataclass(frozen=True)
class Pipe:
    """A pipe of the smallest possible size, and every handler that writes into it."""

    reading: FileIO
    writing: FileIO
    handlers: list[QueuedHandler] = field(default_factory=list)

    def handler(self, most_bytes: int = 1 << 20) -> QueuedHandler:
        stream = os.fdopen(self.writing.fileno(), "w", closefd=False)
        handler = QueuedHandler(stream, most_bytes)
        handler.setFormatter(TextFormatter())
        self.handlers.append(handler)
        return handler


@pytest.fixture(name="pipe")
def _pipe() -> Iterator[Pipe]:
    """Yield a pipe that is closed once nothing more will be written to it.

    The thread of a handler that still has lines would write them into whichever file gets the same descriptor next.
    """
    reading, writing = os.pipe()
    with FileIO(writing, "wb") as writer, FileIO(reading, "rb") as reader:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        pipe = Pipe(reader, writer)
        yield pipe
        reader.close()
        for handler in pipe.handlers:
            handler.flush()


def record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("adapter.x", logging.INFO, "x.py", 1, message, args, None)


def lines_read(pipe: Pipe, handler: QueuedHandler) -> list[str]:
    """Read until everything has been written."""
    with ThreadPoolExecutor(1) as pool:
        everything = pool.submit(pipe.reading.readall)
        handler.flush()
        pipe.writing.close()
        return everything.result(PATIENCE).decode().splitlines()


def test_lines_arrive_in_order(pipe: Pipe) -> None:
    handler = pipe.handler()
    for number in range(500):
        handler.handle(record("line %d", number))
    lines = lines_read(pipe, handler)
    assert [line.rsplit(" ", 1)[1] for line in lines] == [str(number) for number in range(500)]


def test_a_line_queued_while_the_idle_thread_ends_is_written_at_once(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = pipe.handler()
    waited = handler._change.wait

    def wait(timeout: float | None = None) -> bool:
        """Let the time pass at the moment in which the next line is queued."""
        if timeout is None or threading.current_thread().name != "log":
            return waited(timeout)
        monkeypatch.setattr(handler._change, "wait", waited)
        handler.handle(record("second"))
        return False

    monkeypatch.setattr(handler._change, "wait", wait)
    handler.handle(record("first"))
    text = b""
    while b"second" not in text:
        assert select.select([pipe.reading], [], [], PATIENCE)[0], "the line waits for the next one"
        text += os.read(pipe.reading.fileno(), PIPE_BYTES)


def test_logging_does_not_block_on_an_unread_log_and_dropped_lines_are_counted(pipe: Pipe) -> None:
    handler = pipe.handler(most_bytes=100_000)
    for number in range(1000):
        handler.handle(record("line %d %s", number, "x" * 1000))
    lines = lines_read(pipe, handler)
    kept = [line for line in lines if " line " in line]
    (notice,) = [line for line in lines if "were dropped" in line]
    lost = int(re.findall(r"lines=(\d+)", notice)[0])
    assert lost > 800
    assert len(kept) + lost == 1000


def test_a_flush_does_not_wait_forever_for_a_reader(pipe: Pipe) -> None:
    handler = pipe.handler()
    for _ in range(10):
        handler.handle(record("x" * PIPE_BYTES))
    handler.flush()
    assert len(os.read(pipe.reading.fileno(), 65536)) <= PIPE_BYTES


def test_a_closed_reader_is_not_an_error(pipe: Pipe) -> None:
    handler = pipe.handler()
    pipe.reading.close()
    for _ in range(100):
        handler.handle(record("x" * PIPE_BYTES))
    handler.flush()


def test_a_record_that_cannot_be_formatted_is_still_logged(pipe: Pipe) -> None:
    handler = pipe.handler()
    handler.handle(record("%d of %d", "one"))
    assert lines_read(pipe, handler) == ["a record of adapter.x could not be formatted: '%d of %d'"]


def refuse_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_a_line_is_written_at_once_although_no_thread_can_be_started(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_threads(monkeypatch)
    handler = pipe.handler()
    for message in ("first", "second"):
        handler.handle(record(message))
        assert select.select([pipe.reading], [], [], 0)[0]
        assert os.read(pipe.reading.fileno(), PIPE_BYTES).endswith(f" {message}\n".encode())


def test_without_threads_an_unread_log_delays_nobody_and_goes_on_as_soon_as_it_is_read(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = pipe.handler(most_bytes=20_000)
    with monkeypatch.context() as threadless:
        refuse_threads(threadless)
        for number in range(30):
            handler.handle(record("line %d %s", number, "x" * 1000))
        assert select.select([pipe.reading], [], [], 0)[0]
        text = os.read(pipe.reading.fileno(), PIPE_BYTES)
        handler.handle(record("line 30 %s", "x" * 1000))
        assert select.select([pipe.reading], [], [], 0)[0], "a line that is dropped makes no other line wait"
    lines = (text.decode() + "\n".join(lines_read(pipe, handler))).splitlines()
    numbers = [int(found[1]) for line in lines if (found := re.search(r" line (\d+) x{1000}$", line))]
    (lost,) = [int(found[1]) for line in lines if (found := re.search(r" lines=(\d+)$", line))]
    assert numbers == list(range(31 - lost))
    assert len(lines) == len(numbers) + 1


FORKS = """
import logging, os, sys
from adapter.foundation.service.runtime.logs import configure_logs
configure_logs(queued=True)
log = logging.getLogger("x")
log.warning("before the fork")
child = os.fork()
log.warning("in the child" if child == 0 else "in the parent")
if child:
    os.waitpid(child, 0)
raise RuntimeError("the end")
"""


def test_parent_and_child_of_a_fork_write_their_own_lines_and_tracebacks() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=PATIENCE, check=False)
    counts = {
        what: ran.stderr.count(what) for what in ("before the fork", "in the child", "in the parent", "RuntimeError")
    }
    assert counts == {"before the fork": 1, "in the child": 1, "in the parent": 1, "RuntimeError": 2}


def test_requests_are_answered_while_the_log_is_not_read(certificates: Certificates) -> None:
    everything = settings_of(certificates, tls=False, threads=2)
    command = [sys.executable, "-m", "tests.adapter.foundation.service.example_server", json.dumps(everything)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            started = next(line for line in process.stderr if " serving address=" in line)
            (port,) = re.findall(r"address=http://\S+:(\d+) ", started)
            for _ in range(40):
                with tcp_to(int(port)) as sock:
                    send_head(sock, "/fail")
                    assert read_answer(sock)[0] == 500
            with tcp_to(int(port)) as sock:
                assert get(sock)[0] == 200
            process.terminate()
            rest = process.stderr.read()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert rest.count("RuntimeError: the application is broken") == 40
