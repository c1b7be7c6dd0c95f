"""The network addresses of clients: what counts as one address, and from which addresses callers have authenticated."""

from __future__ import annotations

import socket
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_FAMILIAR = 1024
"""Limit of remembered addresses: many times the nodes of a control plane and their proxies."""
FAMILIAR_SECONDS = 3600.0
"""How long an address is remembered after its last authenticated connection or request."""
_V4_MAPPED = bytes(10) + b"\xff\xff"
_PREFIX_BYTES = 8
"""Bytes of an IPv6 address that are compared: whoever has one address of a /64 usually has all of them."""


def address_key(host: str) -> bytes:
    """Return what counts as one address: an IPv4 address, also in its IPv6 form, or the /64 of an IPv6 address.

    What is not an IP address, such as the peer of a Unix socket, counts as one address.
    """
    try:
        if ":" not in host:
            return socket.inet_pton(socket.AF_INET, host)
        packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return b""
    return packed[len(_V4_MAPPED) :] if packed.startswith(_V4_MAPPED) else packed[:_PREFIX_BYTES]


class FamiliarAddresses:
    """Addresses from which a caller has authenticated recently, up to a limit. Not thread-safe."""

    def __init__(
        self,
        most: int = MOST_FAMILIAR,
        seconds: float = FAMILIAR_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._until: OrderedDict[bytes, float] = OrderedDict()
        """The time at which each address is forgotten; the first to be forgotten comes first."""

    def __contains__(self, address: bytes) -> bool:
        """Return whether somebody has authenticated from this address recently."""
        return self._until.get(address, 0.0) > self._clock()

    def __len__(self) -> int:
        """Return the number of addresses that are remembered."""
        return len(self._until)

    def note(self, address: bytes) -> None:
        """Remember an address from which somebody has authenticated now."""
        self._until[address] = self._clock() + self._seconds
        self._until.move_to_end(address)
        if len(self._until) > self._most:
            self._until.popitem(last=False)
