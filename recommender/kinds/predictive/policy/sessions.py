"""Measures how long sessions last on pods without new connections, where only the ends of sessions are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.predictive.policy.memory import SessionMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.loads.load_inputs import PodConnections

LEAST_ENDED: Final = 30.0
"""The length of sessions is unknown until this many have been seen to end."""
_MOST_ENDED: Final = 3000.0
"""Beyond this many ended sessions, the weight of the evidence so far is halved."""


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
    return memory.open_seconds / memory.ended if memory.ended >= LEAST_ENDED else None
