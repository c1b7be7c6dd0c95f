"""A port that is chosen for a program of a test is still free when the program binds it."""

from __future__ import annotations

import socket

import pytest

from demo.machine.ports import free_port


def test_two_suites_on_one_machine_choose_different_ports_below_those_of_clients_and_services() -> None:
    found = [free_port() for _ in range(200)]
    assert len(set(found)) > 150
    assert max(found) < 30_000


def test_a_port_in_use_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))
        taken = server.getsockname()[1]
        choices = iter([taken, taken, taken + 1, taken + 2])
        monkeypatch.setattr("secrets.choice", lambda _: next(choices))
        assert free_port() > taken


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(OSError, match=r"192\.0\.2\.1"):
        free_port("192.0.2.1")
