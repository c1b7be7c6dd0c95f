"""Links and addresses of a network namespace by rtnetlink(7), since not every machine has the program `ip`.

Only the parts that the suite's network needs are here: bridges, veth pairs, addresses. The kernel acknowledges every
request.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of <linux/netlink.h>, <linux/rtnetlink.h>, <linux/if_link.h> and <linux/veth.h>.
_NLMSG_ERROR: Final = 2
_REQUEST_ACKNOWLEDGED: Final = 0x1 | 0x4
_CREATE_NEW: Final = 0x200 | 0x400
_RTM_NEWLINK: Final = 16
_RTM_DELLINK: Final = 17
_RTM_NEWADDR: Final = 20
_IFLA_ADDRESS: Final = 1
_IFLA_IFNAME: Final = 3
_IFLA_MASTER: Final = 10
_IFLA_LINKINFO: Final = 18
_IFLA_INFO_KIND: Final = 1
_IFLA_INFO_DATA: Final = 2
_IFLA_NET_NS_PID: Final = 19
_VETH_INFO_PEER: Final = 1
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2
_IFF_UP: Final = 1
# Administered locally, for one link.
_BRIDGE_ADDRESS: Final = bytes.fromhex("020000000001")
_ANSWER_BYTES: Final = 1 << 16


def set_up(name: str) -> None:
    """Bring a link up. Raises OSError, as all functions of this module do."""
    _ask(_RTM_NEWLINK, 0, _link(socket.if_nametoindex(name), up=True))


def add_bridge(name: str) -> None:
    """Make a bridge to which other links may be attached; there can be only one, as its hardware address is fixed.

    Without one of its own it takes the lowest among its ports, and changes it as they come and go: whoever knows the
    old one reaches nobody there for half a minute.
    """
    kind = _attribute(_IFLA_LINKINFO, _text(_IFLA_INFO_KIND, "bridge"))
    address = _attribute(_IFLA_ADDRESS, _BRIDGE_ADDRESS)
    _ask(_RTM_NEWLINK, _CREATE_NEW, _link() + _text(_IFLA_IFNAME, name) + address + kind)


def add_veth(name: str, *, bridge: str, peer: str, pid: int) -> None:
    """Make a pair of connected links: one on `bridge`, and `peer` in the network namespace of a process."""
    other = _link() + _text(_IFLA_IFNAME, peer) + _number(_IFLA_NET_NS_PID, pid)
    data = _attribute(_IFLA_INFO_DATA, _attribute(_VETH_INFO_PEER, other))
    master = _number(_IFLA_MASTER, socket.if_nametoindex(bridge))
    kind = _attribute(_IFLA_LINKINFO, _text(_IFLA_INFO_KIND, "veth") + data)
    _ask(_RTM_NEWLINK, _CREATE_NEW, _link(up=True) + _text(_IFLA_IFNAME, name) + master + kind)


def delete(name: str) -> None:
    """Remove a link, and with it its peer."""
    _ask(_RTM_DELLINK, 0, _link(socket.if_nametoindex(name)))


def add_address(name: str, address: str, prefix: int) -> None:
    """Give a link an IPv4 address; the kernel adds the route to its network."""
    packed = socket.inet_aton(address)
    header = struct.pack("=BBBBi", socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(name))
    _ask(_RTM_NEWADDR, _CREATE_NEW, header + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed))


def _ask(kind: int, flags: int, body: bytes) -> None:
    length = 16 + len(body)
    with _rtnetlink() as kernel:
        kernel.send(struct.pack("=IHHII", length, kind, _REQUEST_ACKNOWLEDGED | flags, 1, 0) + body)
        answer = kernel.recv(_ANSWER_BYTES)
    _, answered, _, _, _, code = struct.unpack_from("=IHHIIi", answer)
    if answered != _NLMSG_ERROR:
        raise OSError(f"rtnetlink answered with message type {answered} where an acknowledgement was due")
    if code:
        raise OSError(-code, f"rtnetlink request {kind}: {os.strerror(-code)}")


@contextmanager
def _rtnetlink() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(5.0)
        kernel.bind((0, 0))
        yield kernel


def _link(index: int = 0, *, up: bool = False) -> bytes:
    flags = _IFF_UP if up else 0
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def _attribute(kind: int, value: bytes) -> bytes:
    padding = b"\0" * (-len(value) % 4)
    return struct.pack("=HH", 4 + len(value), kind) + value + padding


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=I", value))
