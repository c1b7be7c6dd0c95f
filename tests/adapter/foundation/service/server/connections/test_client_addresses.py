"""Addresses that count as one, and the addresses that are remembered."""

from __future__ import annotations

import pytest

from adapter.foundation.service.server.connections.client_addresses import FamiliarAddresses, address_key


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "not an address", True),
        ("", "10.0.0.1", False),
    ],
)
def test_clients_are_grouped_by_ipv4_address_or_ipv6_network(one: str, other: str, is_same: bool) -> None:  # noqa: FBT001 - a column of the table
    assert (address_key(one) == address_key(other)) is is_same


class Time:
    now = 0.0


def test_an_address_is_familiar_for_a_time_after_its_last_authentication() -> None:
    time = Time()
    familiar = FamiliarAddresses(seconds=10.0, clock=lambda: time.now)
    found = []
    for noted, now in ((True, 0.0), (True, 9.0), (False, 18.0), (False, 20.0)):
        time.now = now
        if noted:
            familiar.note(b"a")
        found.append(b"a" in familiar)
    assert found == [True, True, True, False]
    assert b"b" not in familiar


def test_only_the_newest_addresses_are_remembered() -> None:
    familiar = FamiliarAddresses(most=3)
    for number in (1, 2, 3, 1, *range(10, 12)):
        familiar.note(bytes([number]))
    assert [number for number in range(20) if bytes([number]) in familiar] == [1, 10, 11]
    assert len(familiar) == 3
