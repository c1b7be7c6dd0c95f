"""Ports of this machine: which one is free, and which one answers."""

from __future__ import annotations

import socket
import urllib.request


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port that is free now.

    Another process may take it before it is used, so a program that can bind port 0 itself should do that instead.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    """Return whether an address of this machine answers with status 200 within a second."""
    try:
        with urllib.request.urlopen(url, timeout=1.0) as response:  # noqa: S310 - an address of ours on loopback
            return bool(response.status == 200)
    except OSError:
        return False
