"""The memory of the policy as numbers by name, which is how it outlives the process.

{"time": 1000.0, "capacity": 9.5, "wish@990.0": 10.0, "load@995.0": 180.0, "closed:gateway-1": 60.0}
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from recommender.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WISH: Final = "wish@"
_LOAD: Final = "load@"
_CLOSED: Final = "closed:"


def values_of(memory: PolicyMemory) -> dict[str, float]:
    """Return the numbers of a memory; what it does not know is left out."""
    reconnect, sessions = memory.reconnect, memory.sessions
    single = {
        "time": memory.time,
        "capacity": memory.capacity,
        "heldUntil": reconnect.held_until,
        "openSeconds": sessions.open_seconds or None,
        "ended": sessions.ended or None,
    }
    return (
        {name: value for name, value in single.items() if value is not None}
        | {f"{_WISH}{time!r}": float(replicas) for time, replicas in memory.wishes}
        | {f"{_LOAD}{time!r}": load for time, load in reconnect.loads}
        | {f"{_CLOSED}{pod}": connections for pod, connections in sessions.closed_pods}
    )


def memory_of(values: Mapping[str, float]) -> PolicyMemory:
    """Return the memory that the numbers state. What is not known, or not finite, is left out: somebody edited it."""
    usable = {name: value for name, value in values.items() if math.isfinite(value)}
    return PolicyMemory(
        time=usable.get("time"),
        capacity=usable.get("capacity"),
        wishes=tuple((time, int(replicas)) for time, replicas in _by_time(usable, _WISH)),
        reconnect=ReconnectMemory(tuple(_by_time(usable, _LOAD)), usable.get("heldUntil")),
        sessions=SessionMemory(
            tuple((name.removeprefix(_CLOSED), value) for name, value in usable.items() if name.startswith(_CLOSED)),
            usable.get("openSeconds", 0.0),
            usable.get("ended", 0.0),
        ),
    )


def _by_time(values: Mapping[str, float], prefix: str) -> Iterator[tuple[float, float]]:
    """Yield time and number of the names with the prefix, oldest first."""
    found = []
    for name, value in values.items():
        if name.startswith(prefix):
            try:
                time = float(name.removeprefix(prefix))
            except ValueError:
                continue
            if math.isfinite(time):
                found.append((time, value))
    yield from sorted(found)
