"""The memory of the policy as numbers by name, the form before schema version 5.

{"time": 1000.0, "capacity": 9.5, "wish@990.0": 10.0, "load@995.0": 180.0, "closed:gateway-1": 60.0}
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeVar

from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_DESIRED: Final = "wish@"
"""Former versions have stored desired sizes under this name."""
_LOAD: Final = "load@"
_CLOSED: Final = "closed:"
_Value = TypeVar("_Value", int, float)


def memory_of(values: Mapping[str, float]) -> PolicyMemory:
    """Return the memory that the numbers hold.

    Values that no decision can have produced are left out, because somebody must have edited them.
    """
    usable = {name: value for name, value in values.items() if math.isfinite(value) and value >= 0}
    capacity = usable.get("capacity")
    desired = ((time, int(replicas)) for time, replicas in _by_time(usable, _DESIRED) if replicas <= MOST_REPLICAS)
    return PolicyMemory(
        time=usable.get("time"),
        capacity=capacity if capacity is not None and capacity <= MOST_REPLICAS else None,
        desired_sizes=_largest_first(desired),
        reconnect=ReconnectMemory(_largest_first(_by_time(usable, _LOAD)), usable.get("heldUntil")),
        sessions=_sessions(usable),
    )


def _sessions(values: Mapping[str, float]) -> SessionMemory:
    open_seconds, ended = values.get("openSeconds", 0.0), values.get("ended", 0.0)
    # Sessions that ended were open for some time: otherwise their mean length would be zero.
    is_evidence = open_seconds > 0
    return SessionMemory(
        tuple((name.removeprefix(_CLOSED), value) for name, value in values.items() if name.startswith(_CLOSED)),
        open_seconds,
        ended if is_evidence else 0.0,
    )


def _largest_first(entries: Iterable[tuple[float, _Value]]) -> tuple[tuple[float, _Value], ...]:
    """Return the entries that exceed all later ones, so that the first entry is the largest."""
    kept: list[tuple[float, _Value]] = []
    for time, value in entries:
        while kept and kept[-1][1] <= value:
            kept.pop()
        kept.append((time, value))
    return tuple(kept)


def _by_time(values: Mapping[str, float], prefix: str) -> Iterator[tuple[float, float]]:
    """Yield time and number of each name with the prefix, oldest first."""
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
