"""Requests whose thread cannot be started, as at a limit of processes of the pod or of the node."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from adapter.foundation.service.server.answering import AnsweringWorker
from adapter.foundation.service.server.connections.connection import Connection
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from gunicorn.workers.gthread import PollableMethodQueue


class Worker(AnsweringWorker):
    """A worker that answers each request at once, and notes which connections come back to the poller thread."""

    def __init__(self) -> None:
        self.answered: list[Connection] = []
        self.ended: list[tuple[Connection, bool]] = []
        self.method_queue = cast("PollableMethodQueue", SimpleNamespace(defer=self._note))

    def _note(self, _finish: Callable[..., None], conn: Connection, done: Future[bool]) -> None:
        self.ended.append((conn, done.cancelled()))

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        raise NotImplementedError

    def handle(self, conn: Connection) -> bool:
        self.answered.append(conn)
        return True


def test_a_connection_whose_request_gets_no_thread_returns_to_the_poller(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    worker, pool = Worker(), ThreadPoolExecutor(1)
    with closing(socket.socket()) as sock:
        first, second = (Connection(sock, ("", 1), ("", port)) for port in (2, 3))
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refuse)
            worker._start(pool, first)
        worker._start(pool, second)
        until(lambda: len(worker.ended) == 2)
    pool.shutdown()
    assert (worker.ended, worker.answered) == ([(first, True), (second, False)], [second])
    assert (first.fault, second.fault) == ("no_thread", "")
