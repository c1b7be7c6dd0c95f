"""Settings of the server and the worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.service.server.connections.bodies import BodyLimits
from adapter.foundation.service.server.connections.outgoing import OutgoingLimits
from adapter.foundation.service.server.connections.stages import Deadlines

if TYPE_CHECKING:
    from adapter.foundation.service.server.addresses import Address
    from adapter.foundation.service.server.tls import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits on connections and on requests."""

    most: int = 4000
    most_unfinished: int = 1000
    """Limit on connections in a handshake, or within a request's head or a body that is received in advance."""
    most_requests: int = 0
    """Limit on requests that are in progress or queued; further requests get status 429. 0 sets no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Settings of a serving process."""

    program: str
    """Name of the program, which begins the line on stderr that says why it could not start."""
    version: str
    metrics_prefix: str
    address: Address
    tls: TlsSettings | None
    """TLS settings; None for plain HTTP."""
    plain_address: Address | None
    """Address for metrics and health checks without TLS."""
    threads: int = 16
    reserved_threads: int = 0
    """Number of additional threads, for requests whose plan reserves one (`bodies`)."""
    shutdown_delay_seconds: float = 5.0
    drain_seconds: float = 5.0
    stop_seconds: float = 3.0
    """Time limit for tasks and callbacks after the drain."""
    pin_cpu: bool = False
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    deadlines: Deadlines = field(default_factory=Deadlines)
    answers: OutgoingLimits = field(default_factory=OutgoingLimits)
    bodies: BodyLimits = field(default_factory=BodyLimits)

    @property
    def end_seconds(self) -> float:
        """Time after which a worker that has not ended is killed."""
        return self.shutdown_delay_seconds + self.drain_seconds + self.stop_seconds + 1.5
