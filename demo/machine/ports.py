"""Ports of this machine: which one is free, which one answers, and what."""

from __future__ import annotations

import secrets
import socket
import urllib.request
from contextlib import suppress
from typing import Final

_PORTS: Final = range(11_000, 30_000)
"""Ports that neither the system gives to clients nor kube-apiserver to services."""
_MOST_TRIES: Final = 100


def free_port(host: str = "127.0.0.1") -> int:
    """Return a random TCP port that is free now. Raises OSError if none is found.

    Another process may take it before it is used, so a program that can bind port 0 itself should do that instead.
    That is unlikely, since it would have to ask for the very same port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(_MOST_TRIES):
        port = secrets.choice(_PORTS)
        with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, port))
            return port
    raise OSError(f"no free port of {host} was found in {_MOST_TRIES} tries: is the address one of this machine?")


def fetched(url: str) -> bytes:
    """Return the body of an address of this machine. Raises OSError."""
    with urllib.request.urlopen(url, timeout=30.0) as response:  # noqa: S310 - an address of ours on loopback
        body: bytes = response.read()
        return body


def answers(url: str) -> bool:
    """Return whether an address of this machine answers with status 200 within a second."""
    try:
        with urllib.request.urlopen(url, timeout=1.0) as response:  # noqa: S310 - an address of ours on loopback
            return bool(response.status == 200)
    except OSError:
        return False
