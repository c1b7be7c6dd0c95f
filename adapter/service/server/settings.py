"""How a process serves: what its flags come down to, for the server and for the worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.service.server.connections import Deadlines
from adapter.service.server.outgoing import OutgoingLimits

if TYPE_CHECKING:
    from adapter.service.server.addresses import Address
    from adapter.service.server.tls import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections may be open, and how many of them may be asking."""

    most: int = 4000
    most_unfinished: int = 1000
    """Of those, in handshake or within a request's head."""
    most_requests: int = 0
    """Of those, with a request that is answered or waits for a thread; the next get 429. 0: as many as there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a process serves."""

    program: str
    """Begins the one line on stderr that says why it could not start."""
    version: str
    metrics_prefix: str
    address: Address
    tls: TlsSettings | None
    """None: plain HTTP."""
    plain_address: Address | None
    """Metrics and health, without TLS."""
    threads: int = 16
    shutdown_delay_seconds: float = 5.0
    drain_seconds: float = 5.0
    stop_seconds: float = 3.0
    """For tasks and callbacks, after the drain."""
    pin_cpu: bool = False
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    deadlines: Deadlines = field(default_factory=Deadlines)
    answers: OutgoingLimits = field(default_factory=OutgoingLimits)

    @property
    def end_seconds(self) -> float:
        """Within which the worker has ended, or is killed."""
        return self.shutdown_delay_seconds + self.drain_seconds + self.stop_seconds + 1.5
