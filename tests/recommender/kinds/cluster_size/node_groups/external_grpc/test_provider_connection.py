"""The connection to a provider whose machine is gone."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import grpc
import pytest

from recommender.kinds.cluster_size.node_groups.external_grpc.channel import CallError
from recommender.kinds.cluster_size.node_groups.external_grpc.provider import ExternalGrpcProvider
from tests.recommender.kinds.cluster_size.node_groups.external_grpc.harnesses import settings, two_groups
from tests.support.grpc_provider import GrpcProvider
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Relay:
    """A port that leads to another one, until the connections of a moment are forgotten, as with a lost machine."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("localhost", 0))
        self._ends: list[socket.socket] = []
        self._forgotten: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def forget_connections(self) -> None:
        """Pass nothing on any more, in connections that stay open."""
        self._forgotten.extend(self._ends)

    def close(self) -> None:
        for each in (self._listener, *self._ends):
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("localhost", self._target))
                self._ends += client, server
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                if one not in self._forgotten:
                    other.sendall(data)


@pytest.fixture
def provider() -> Iterator[GrpcProvider]:
    provider = GrpcProvider(*two_groups())
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def relay(provider: GrpcProvider) -> Iterator[Relay]:
    relay = Relay(provider.port)
    yield relay
    relay.close()


def test_after_a_call_without_an_answer_another_connection_is_made(relay: Relay) -> None:
    found = ExternalGrpcProvider(settings(f"localhost:{relay.port}", 2.0))

    def has_answered() -> bool:
        with suppress(CallError):
            found.refresh()
            return True
        return False

    until(has_answered)
    relay.forget_connections()
    with pytest.raises(CallError) as raised:
        found.refresh()
    assert raised.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    until(has_answered)
    assert len(found.node_groups()) == 2
    found.close()
