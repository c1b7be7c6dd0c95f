"""What sizes depend on besides the present situation. It survives restarts, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReconnectMemory:
    """The loads of the last minute, and until when a mass reconnect holds the capacity."""

    loads: tuple[tuple[float, float], ...] = ()
    """(time, load), ascending in time and descending in load: what may still be the largest of the last minute."""
    held_until: float | None = None
    """Seconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """How fast sessions end, measured on pods that take no new ones."""

    closed_pods: tuple[tuple[str, float], ...] = ()
    """Name and connections of the pods that were not ready at the last poll."""
    open_seconds: float = 0.0
    """Connections times the seconds for which they were watched."""
    ended: float = 0.0
    """How many of them ended meanwhile."""


@dataclass(frozen=True, slots=True)
class PolicyMemory:
    """The memory of one target."""

    time: float | None = None
    """The last decision, in seconds since the Unix epoch."""
    capacity: float | None = None
    """The size of the last decision, before it was rounded up: this is what decays."""
    wishes: tuple[tuple[float, int], ...] = ()
    """(time, replicas), ascending in time and descending in replicas: what may still be the largest of the window."""
    reconnect: ReconnectMemory = field(default_factory=ReconnectMemory)
    sessions: SessionMemory = field(default_factory=SessionMemory)
