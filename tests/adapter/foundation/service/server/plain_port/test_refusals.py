"""The plain port of a worker: what the kernel refuses ends one connection, and no more."""

from __future__ import annotations

import errno
import select
import selectors
import socket
import threading
from contextlib import closing
from typing import Any, cast

import pytest

from adapter.foundation.service.server.addresses import Address, address_of, listening_socket
from adapter.foundation.service.server.plain_port.paced_text import PacedText
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.server.plain_port.plain_connections import PlainConnection
from adapter.foundation.service.server.plain_port.plain_server import _ACCEPT_PAUSE, PlainServer
from tests.adapter.foundation.service.servers import ask, connect, is_closed
from tests.support.waiting import until


def answer(path: str, query: str) -> PlainAnswer | None:
    return PlainAnswer(200, f"metrics {query}".encode(), "text/x") if path == "/metrics" else None


class NoDescriptors:
    """A listening socket of a process that has no free descriptor until one of its own connections is closed."""

    def __init__(self, listener: socket.socket, until: socket.socket) -> None:
        self._listener = listener
        self._until = until
        self.attempts = 0
        self.exhausted = False

    def fileno(self) -> int:
        return self._listener.fileno()

    def accept(self) -> tuple[socket.socket, object]:
        if self.exhausted and not select.select([self._until], [], [], 0)[0]:
            self.attempts += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()


def test_without_a_free_descriptor_the_oldest_connection_is_dropped() -> None:
    with closing(listening_socket(Address("127.0.0.1", 0))) as real, socket.socket() as oldest:
        port = address_of(real).port
        oldest.connect(("127.0.0.1", port))
        listener = NoDescriptors(real, oldest)
        server = PlainServer(cast("socket.socket", listener), answer, deadline_seconds=3600)
        server.start()
        until(lambda: server._connections)
        listener.exhausted = True
        assert ask(port, "/metrics")[0] == 200
        assert listener.attempts == 1
        assert is_closed(oldest)
        server.stop()


class Pauses(threading.Event):
    """Record the requested waits, without waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return self.is_set()


def test_without_a_free_descriptor_or_a_connection_to_drop_accepting_pauses() -> None:
    quiet, other = socket.socketpair()
    with closing(quiet), closing(other), closing(listening_socket(Address("127.0.0.1", 0))) as real:
        listener = NoDescriptors(real, quiet)
        listener.exhausted = True
        server = PlainServer(cast("socket.socket", listener), answer)
        pauses = server._stopped = Pauses()
        server._accept()
    assert listener.attempts == 1
    assert pauses.seconds == [_ACCEPT_PAUSE]


class UnwatchableOnce(selectors.DefaultSelector):
    """Refuses one registration of a connection, as a kernel does whose limit of watched descriptors is reached."""

    def __init__(self, refused: int) -> None:
        super().__init__()
        self._until = refused

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:  # noqa: ANN401 - inherited
        if isinstance(data, PlainConnection):
            self._until -= 1
            if not self._until:
                raise OSError(errno.ENOSPC, "No space left on device")
        return super().register(fileobj, events, data)


@pytest.mark.parametrize("refused", [1, 2], ids=["when it arrives", "when its text is built"])
def test_only_a_connection_that_cannot_be_polled_is_dropped(refused: int) -> None:
    metrics = PacedText(lambda: (b"made",))
    with closing(listening_socket(Address("127.0.0.1", 0))) as listener:
        server = PlainServer(listener, answer, metrics=metrics)
        server._poller = UnwatchableOnce(refused)
        metrics.start()
        server.start()
        with connect(address_of(listener).port) as sock:
            sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert is_closed(sock)
        assert ask(address_of(listener).port, "/metrics") == (200, b"made")
        server.stop()
        metrics.stop()
