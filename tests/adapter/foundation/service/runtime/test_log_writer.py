"""A log whose reader stalls: nobody who logs waits for it, and what was lost is told."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import subprocess
import sys
import threading
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


@pytest.fixture(name="pipe")
def _pipe() -> Iterator[tuple[int, int]]:
    """The reading and the writing end of the smallest pipe that there is."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    yield reading, writing
    for descriptor in (reading, writing):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def handler_to(writing: int, most_bytes: int = 1 << 20) -> QueuedHandler:
    stream = os.fdopen(writing, "w", closefd=False)
    handler = QueuedHandler(stream, most_bytes)
    handler.setFormatter(TextFormatter())
    return handler


def record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("adapter.x", logging.INFO, "x.py", 1, message, args, None)


def lines_read(reading: int, handler: QueuedHandler, writing: int) -> list[str]:
    """Read until everything is written."""
    collected = bytearray()

    def read() -> None:
        while data := os.read(reading, 65536):
            collected.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    handler.flush()
    os.close(writing)
    reader.join()
    return collected.decode().splitlines()


def test_lines_arrive_in_order(pipe: tuple[int, int]) -> None:
    handler = handler_to(pipe[1])
    for number in range(500):
        handler.handle(record("line %d", number))
    lines = lines_read(pipe[0], handler, pipe[1])
    assert [line.rsplit(" ", 1)[1] for line in lines] == [str(number) for number in range(500)]


def test_nobody_waits_for_a_log_that_is_not_read_and_what_was_lost_is_told(pipe: tuple[int, int]) -> None:
    handler = handler_to(pipe[1], most_bytes=100_000)
    for number in range(1000):
        handler.handle(record("line %d %s", number, "x" * 1000))
    lines = lines_read(pipe[0], handler, pipe[1])
    kept = [line for line in lines if " line " in line]
    (told,) = [line for line in lines if "were dropped" in line]
    lost = int(re.findall(r"lines=(\d+)", told)[0])
    assert lost > 800
    assert len(kept) + lost == 1000


def test_the_end_does_not_wait_for_ever_for_a_reader(pipe: tuple[int, int]) -> None:
    handler = handler_to(pipe[1])
    for _ in range(10):
        handler.handle(record("x" * PIPE_BYTES))
    handler.flush()
    assert len(os.read(pipe[0], 65536)) <= PIPE_BYTES


def test_a_reader_that_is_gone_hurts_nobody(pipe: tuple[int, int]) -> None:
    handler = handler_to(pipe[1])
    os.close(pipe[0])
    for _ in range(100):
        handler.handle(record("x" * PIPE_BYTES))
    handler.flush()


def test_a_record_that_cannot_be_formatted_is_a_line_all_the_same(pipe: tuple[int, int]) -> None:
    handler = handler_to(pipe[1])
    handler.handle(record("%d of %d", "one"))
    assert lines_read(pipe[0], handler, pipe[1]) == ["a record of adapter.x could not be formatted: '%d of %d'"]


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


def test_parent_and_child_of_a_fork_write_their_own_lines_and_their_last_words() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=PATIENCE, check=False)
    counts = {
        what: ran.stderr.count(what) for what in ("before the fork", "in the child", "in the parent", "RuntimeError")
    }
    assert counts == {"before the fork": 1, "in the child": 1, "in the parent": 1, "RuntimeError": 2}


def test_requests_are_answered_while_nobody_reads_the_log(certificates: Certificates) -> None:
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
