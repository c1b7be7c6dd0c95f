"""The stages of a connection, and the seconds that it may spend in each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Stage(Enum):
    """The stage of a connection; in all stages but REQUEST it belongs to the poller thread."""

    HANDSHAKE = auto()
    HEAD = auto()
    """A part of a request has arrived, or the first request is expected."""
    BODY = auto()
    """The head has arrived, and the body is received in advance (`bodies`)."""
    IDLE = auto()
    """The connection is kept alive between requests."""
    REQUEST = auto()
    """A request thread is using the connection."""
    SEND = auto()
    """The rest of an answer waits until the client reads."""
    LINGER = auto()
    """Answered and shut down for writing. Input is discarded, since closing with unread input would lose the answer."""
    CLOSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Total seconds that a connection may spend in each stage."""

    handshake: float = 5.0
    head: float = 10.0
    idle: float = 90.0
    """Go's clients keep an idle connection for the same time; a shorter limit would race with their next request."""
    body: float = 10.0
    """Time limit for reading a request's body."""
    body_pace: float = 2.0
    """Interval between checks that a client sends a body at the required rate."""
    send: float = 60.0
    """Time limit from the start of an answer to its last byte; it is the same in Kubernetes API servers."""
    pace: float = 5.0
    """Interval between checks that a client reads at the required rate."""
    linger: float = 2.0

    def of(self, stage: Stage) -> float:
        """Return the time limit of a stage; for SEND and BODY, the time until the next check of the rate."""
        match stage:
            case Stage.HANDSHAKE:
                return self.handshake
            case Stage.HEAD:
                return self.head
            case Stage.BODY:
                return min(self.body_pace, self.body)
            case Stage.IDLE:
                return self.idle
            case Stage.SEND:
                return min(self.pace, self.send)
            case Stage.LINGER:
                return self.linger
            case Stage.REQUEST | Stage.CLOSED:
                raise ValueError(f"{stage} has no time limit")
