"""Addresses to listen on, as Go's net.Listen reads them, and the sockets for them."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from adapter.foundation.service.runtime.errors import StartError

BACKLOG = 1024
"""Connections that the kernel queues until they are accepted, such as during a restart of the worker."""

NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` when file descriptors or memory have run out; the connection keeps waiting."""

_WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound without being asked


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port; an empty host is every address of the machine, port 0 a free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """`host:port`, with brackets around an IPv6 host."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse an address written as `host:port`, `:port` or `[ipv6]:port`; raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise ValueError(f"{text!r} has no port: write HOST:PORT or :PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r} is ambiguous: write an IPv6 address in brackets, [{host}]:{port}")
    return Address(host, parse_port(port))


def parse_host(text: str) -> str:
    """Return a host without a port: a name, an IPv4 or an IPv6 address; raises ValueError."""
    if text.startswith("[") or text.count(":") == 1:
        raise ValueError(f"{text!r} is not a host alone: write it without brackets, and its port with the other flag")
    return text


def parse_port(text: str) -> int:
    """Return a port number from 0 to 65535; raises ValueError."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise ValueError(f"{text!r} is not a port: write a number from 0 to 65535")
    return int(text)


def listening_socket(address: Address) -> socket.socket:
    """Return a non-blocking listening socket; raises StartError, whose message says what to do.

    A wildcard host listens on IPv4 and IPv6, even when it is written `0.0.0.0`. Go does the same, so manifests that
    say `--bind-address=0.0.0.0` work on IPv6 clusters.
    """
    try:
        listener = _bound_socket(address)
    except OSError as e:
        raise StartError(f"cannot listen on {address}: {_reason(e)}") from e
    listener.settimeout(0)
    return listener


def address_of(listener: socket.socket) -> Address:
    """Return the address that a socket listens on, with its actual port."""
    host, port = listener.getsockname()[:2]
    return Address(host, port)


def overlap(one: Address, other: Address) -> bool:
    """Return whether only one socket can listen on the two addresses, since their ports are the same.

    A wildcard host includes every other one. Port 0 is another port each time.
    """
    hosts = {one.host, other.host}
    return one.port == other.port != 0 and (len(hosts) == 1 or bool(hosts & _WILDCARDS))


def _bound_socket(address: Address) -> socket.socket:
    if address.host in _WILDCARDS:
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("::", address.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
            )
        return socket.create_server(("0.0.0.0", address.port), backlog=BACKLOG)  # noqa: S104 - asked for by the user
    family, _, _, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[:2], family=family, backlog=BACKLOG)


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another process listens on this address: stop it, or choose another port"
    if error.errno == errno.EACCES:
        return "permission denied: ports below 1024 need a privilege, so choose a higher one"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            "this machine does not have the address: choose one that it has, or leave the host empty for all addresses"
        )
    return error.strerror or str(error)
