"""Socket options of connections (tcp(7), Linux)."""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from contextlib import suppress

MOST_UNSENT = 32 * 1024
"""Bytes that the kernel accepts beyond the client's window. The rest of an answer waits in this process, where it is
counted; in the kernel, it could be megabytes for each client that reads nothing."""

_TCP_NOTSENT_LOWAT = 25
"""Linux's number (linux/tcp.h); the standard library has no name for it before Python 3.12."""
_INT = struct.Struct("i")
_CLOSE_WAIT = 8
"""The state in which the client has sent the end of its data (linux/tcp_states.h)."""


def prepare_accepted(sock: socket.socket) -> None:
    """Make an accepted socket non-blocking, with TCP_NODELAY and a small send queue in the kernel.

    Setting the options on the listener is not enough: connections that arrived before that never get them.
    """
    sock.settimeout(0)
    with suppress(OSError):  # It is not TCP, or the client is gone, which the next read shows.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, MOST_UNSENT)


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Return how many bytes the client has not acknowledged; 0 if the kernel does not report it."""
    try:
        count: int = _INT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_INT.size)))[0]
    except (OSError, ValueError):
        return 0
    return count


def has_hung_up(sock: socket.socket) -> bool:
    """Return whether the client will send nothing more; False if the kernel does not report it."""
    try:
        # The state is the first byte (struct tcp_info).
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSE_WAIT
    except (OSError, IndexError):
        return False


def reset_on_close(sock: socket.socket) -> None:
    """Make the kernel discard unsent bytes when the socket is closed.

    Otherwise it would keep them for minutes, for a client that does not read them.
    """
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
