"""Addresses take turns: however many connections one address opens, another address waits for only a few of them."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.waiting_connections import FAMILIAR_WEIGHT, AddressTurns

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="sock")
def _sock() -> Iterator[socket.socket]:
    with closing(socket.socket()) as sock:
        yield sock


def connection(sock: socket.socket, host: str) -> Connection:
    return Connection(sock, (host, 1), ("", 2))


def taken(turns: AddressTurns, seconds: float = 1.0) -> Connection | None:
    """Take the first connection, and charge its address."""
    conn = turns.first()
    if conn is not None:
        turns.discard(conn)
        turns.charge(conn.address, seconds)
    return conn


def test_a_new_address_waits_for_at_most_one_connection_of_another_address(sock: socket.socket) -> None:
    turns = AddressTurns(lambda _: False)
    for _ in range(500):
        turns.add(connection(sock, "127.0.0.2"))
    for _ in range(50):
        taken(turns)
    scheduler = connection(sock, "127.0.0.1")
    turns.add(scheduler)
    assert scheduler in [taken(turns), taken(turns)]


def test_clients_behind_one_address_are_taken_in_order_of_arrival(sock: socket.socket) -> None:
    turns = AddressTurns(lambda _: False)
    clients = [connection(sock, "127.0.0.2") for _ in range(5)]
    for conn in clients:
        turns.add(conn)
    assert [taken(turns) for _ in range(6)] == [*clients, None]


def test_a_familiar_address_has_a_larger_share_than_an_unknown_one(sock: socket.socket) -> None:
    familiar = connection(sock, "127.0.0.1").address
    turns = AddressTurns(lambda address: address == familiar)
    for _ in range(100):
        turns.add(connection(sock, "127.0.0.1"))
        turns.add(connection(sock, "127.0.0.2"))
    hosts = [conn.client[0] for _ in range(45) if (conn := taken(turns))]
    assert hosts.count("127.0.0.2") == 45 // (1 + FAMILIAR_WEIGHT)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["add", "take", "discard"])), max_size=60))
def test_each_connection_is_taken_once_and_only_waiting_addresses_are_kept(
    steps: list[tuple[int, str]],
) -> None:
    with closing(socket.socket()) as sock:
        turns, waiting = AddressTurns(lambda _: False), list[Connection]()
        for number, step in steps:
            if step == "add":
                waiting.append(connection(sock, f"10.0.0.{number}"))
                turns.add(waiting[-1])
            elif step == "take":
                conn = taken(turns, 0.5 * number)
                assert (conn is None) is (not waiting)
                if conn is not None:
                    waiting.remove(conn)
            elif waiting:
                turns.discard(waiting.pop(number % len(waiting)))
            assert len(turns) == len({conn.address for conn in waiting})
