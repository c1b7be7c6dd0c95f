"""Bodies of requests that are received before a thread is given to the request.

The poller thread receives them, so that a body that never ends occupies a connection and some memory, and no thread.
Which bodies are received is decided from the head alone (`PlanBody`), so the caller is known before anything is read.
Each body must arrive at a minimum rate and within a time limit. All bodies together have a limit in bytes, which
includes complete ones that a request is using: beyond it, the largest unfinished body is dropped. A single body may
exceed this limit while the others are small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import socket

_PORTION = 64 * 1024
_MOST_A_TURN = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Limits on bodies that are received in advance."""

    most_bytes: int = 32 * 1024 * 1024
    """Limit in bytes for all bodies together."""
    most_beside_bytes: int = 8 * 1024 * 1024
    """The largest body may exceed `most_bytes` while all other bodies together have fewer bytes than this."""
    least_rate: float = 16 * 1024.0
    """Bytes per second that a client must send between two checks (`Deadlines.body_pace`)."""


@dataclass(frozen=True, slots=True)
class Head:
    """The parts of a request's head that decide whether its body is received."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    """Name and value of each header line."""
    peer_chain: tuple[bytes, ...]
    """Verified client certificate chain in DER, leaf first; empty if there is none."""


@dataclass(frozen=True, slots=True)
class BodyPlan:
    """The limits for the body of a request whose head was admitted."""

    largest_bytes: int
    largest_reserved_bytes: int = 0
    """Largest body with which a request still gets a reserved thread; 0 if it never gets one."""


AdmitHead: TypeAlias = Callable[[Head], bool]
"""Returns whether the head alone proves that the caller may make this request. Never waits."""
PlanBody: TypeAlias = Callable[[Head], BodyPlan | None]
"""Returns the plan; None if a request thread is to judge the request before anything is read. Never waits."""


class ArrivingBody:
    """A body of known length, while it arrives."""

    def __init__(self, plan: BodyPlan, length: int) -> None:
        self._plan = plan
        self._since = time.monotonic()
        self.received = bytearray()
        self._length = length
        self._before = 0

    @property
    def is_reserved(self) -> bool:
        """Whether its request is to have a reserved thread."""
        return 0 < self._length <= self._plan.largest_reserved_bytes

    @property
    def missing(self) -> int:
        """Number of bytes that have not arrived."""
        return self._length - len(self.received)

    def read(self, sock: socket.socket, has_more: Callable[[], bool]) -> bool:
        """Read the available bytes, up to a limit for each turn; return whether the body is complete.

        `has_more` tells whether TLS holds bytes that the poller cannot see. Raises what the socket raises if nothing is
        available, and EOFError at the end of the connection.
        """
        limit = len(self.received) + _MOST_A_TURN
        while self.missing:
            data = sock.recv(min(_PORTION, self.missing))
            if not data:
                raise EOFError
            self.received += data
            if len(self.received) >= limit and not has_more():
                break
        return not self.missing

    def take(self) -> bytearray:
        """Return the body without copying it, and keep no reference to it."""
        taken, self.received = self.received, bytearray()
        return taken

    def keeps_pace(self, enough: float, longest_seconds: float) -> bool:
        """Return whether enough bytes have arrived since the last call, within the time for the whole body."""
        newly, self._before = len(self.received) - self._before, len(self.received)
        return newly >= enough and time.monotonic() < self._since + longest_seconds


def read_head(head: bytes, peer_chain: tuple[bytes, ...]) -> tuple[Head, str]:
    """Parse a head, which may be malformed, without its empty line; return it and the HTTP version it states."""
    line, *rest = head.decode("latin-1").split("\r\n")
    method, _, others = line.partition(" ")
    target, _, version = others.partition(" ")
    return Head(method, target, header_lines(rest), peer_chain), version


def header_lines(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return name and value of each header line."""
    return tuple((name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines))


def planned_body(head: bytes, peer_chain: tuple[bytes, ...], plan_body: PlanBody) -> ArrivingBody | None:
    """Return the body to be received for a head, which may be malformed; None if a request thread is to judge it.

    A body is received only if the head states its length plainly; gunicorn's parser judges everything else.
    """
    found, version = read_head(head, peer_chain)
    headers = found.headers
    names = [name.lower() for name, _ in headers]
    if version != "HTTP/1.1" or "transfer-encoding" in names or "expect" in names or names.count("content-length") != 1:
        return None
    length = headers[names.index("content-length")][1]
    if not (length.isascii() and length.isdigit() and len(length) <= 12):
        return None
    plan = plan_body(found)
    if plan is None or int(length) > plan.largest_bytes:
        return None
    return ArrivingBody(plan, int(length))
