"""What the kernel is told, and asked, of a connection's socket (tcp(7), Linux)."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from contextlib import suppress

MOST_UNSENT = 32 * 1024
"""Bytes that the kernel takes beyond what the client's window allows to be sent. What more there is of an answer waits
in this process, where it is counted; in the kernel it could be megabytes for each client that reads nothing."""

_TCP_NOTSENT_LOWAT = 25
"""Linux's number (linux/tcp.h); the standard library has no name for it before Python 3.12."""
_INT = struct.Struct("i")


def prepare_accepted(sock: socket.socket) -> None:
    """Make an accepted socket non-blocking, without delay for small segments, with little unsent in the kernel.

    An option of the listener would not do: a connection that came before it was set is without it for good.
    """
    sock.settimeout(0)
    with suppress(OSError):  # not TCP, or the client is gone: then reading tells
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, MOST_UNSENT)


def unacknowledged(sock: socket.socket) -> int:
    """Return how many bytes the other side has not acknowledged; 0 where the kernel cannot tell."""
    try:
        count: int = _INT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_INT.size)))[0]
    except (OSError, ValueError):
        return 0
    return count


def reset_on_close(sock: socket.socket) -> None:
    """Have the kernel throw away what it has not sent when the socket is closed.

    Otherwise it would keep the bytes for minutes, for a client that does not read them.
    """
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
