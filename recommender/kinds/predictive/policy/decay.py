"""Limits how fast capacity is lowered, and measures how long the sessions last that must end first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from recommender.kinds.predictive.policy.memory import SessionMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.loads.load_inputs import PodConnections

DECAY_SECONDS: Final = 10.0
"""The time in which the share `decay` may be removed, regardless of the poll interval and the step."""
_LEAST_ENDED: Final = 30.0
"""The length of sessions is unknown until this many have been seen to end."""
_MOST_ENDED: Final = 3000.0
"""Beyond this many ended sessions, the weight of the evidence so far is halved."""


def kept_ratio(decay_ratio: float | None, session_seconds: float | None, elapsed_seconds: float) -> float:
    """Return the least share of the capacity that must be kept after this time; 0 without a limit.

    `session_seconds` is None if no sessions are open, or if their length is unknown. While they are open, capacity is
    lowered no faster than they end: by the share `1 - exp(-elapsed_seconds / session_seconds)`.
    """
    kept = 0.0 if decay_ratio is None else (1 - decay_ratio) ** (elapsed_seconds / DECAY_SECONDS)
    if session_seconds is not None:
        kept = max(kept, math.exp(-elapsed_seconds / session_seconds))
    return kept


def after_watching_pods(memory: SessionMemory, pods: Iterable[PodConnections], elapsed_seconds: float) -> SessionMemory:
    """Return the memory after a look at the pods, `elapsed_seconds` after the last look; 0 if that is too long ago."""
    before = dict(memory.closed_pods)
    open_seconds, ended, closed = memory.open_seconds, memory.ended, []
    for pod in pods:
        if pod.is_ready or pod.connections is None or not pod.name:
            continue
        closed.append((pod.name, pod.connections))
        earlier = before.get(pod.name)
        # More connections than before: the pod was ready in between.
        if earlier is not None and pod.connections <= earlier and elapsed_seconds > 0:
            open_seconds += elapsed_seconds * (earlier + pod.connections) / 2
            ended += earlier - pod.connections
    if ended > _MOST_ENDED:
        open_seconds, ended = open_seconds / 2, ended / 2
    return SessionMemory(tuple(closed), open_seconds, ended)


def session_seconds(memory: SessionMemory) -> float | None:
    """Return the mean length of sessions: the time for which they were watched / those that ended; None if unknown.

    Source: the maximum likelihood estimate of the mean of exponential lifetimes, most of which have not ended yet.
    """
    return memory.open_seconds / memory.ended if memory.ended >= _LEAST_ENDED else None
