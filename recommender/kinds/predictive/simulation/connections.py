"""Long-lived connections to a simulated fleet: which of them are accepted, and which are refused.

Requests end when they are answered, but connections stay on the pod that accepted them, so that a new pod helps only
later connections: what counts is the room on ready pods, not the sum of all limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recommender.kinds.predictive.simulation.pods import StickyPods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.simulation.serving import FleetSettings


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How connections start and end."""

    mean_session_seconds: float
    """The mean lifetime of a connection; lifetimes are exponentially distributed."""
    limit: float
    """The number of connections at which a pod becomes not ready, until it has fewer than 95% of this number."""
    backoff_seconds: float = 30.0
    """Connections that were refused or cut off try again, evenly spread over this time."""

    def ended_ratio(self, step_seconds: float) -> float:
        """Return the share of connections that end in a step."""
        return float(-np.expm1(-step_seconds / self.mean_session_seconds))

    def backoff_steps(self, step_seconds: float) -> int:
        """Return the number of steps during which lost connections return, at least one."""
        return max(1, int(np.ceil(self.backoff_seconds / step_seconds - 1e-9)))


@dataclass(frozen=True, slots=True)
class ConnectionRun:
    """The events of each step; arrays of shape (steps,)."""

    asked: FloatArray
    ready: FloatArray
    """Pods that could take new connections at the beginning of the step. If there are 0, the Service has no
    endpoints."""
    open: FloatArray
    """Connections at the end of the step."""
    attempted: FloatArray
    """New connections, including those that return."""
    refused: FloatArray
    """Attempts that found no ready pod below its limit."""
    cut_off: FloatArray
    """Connections on pods that were dropped."""


@dataclass(frozen=True, slots=True)
class ConnectionMeasures:
    """Sums over the judged steps."""

    attempted: float
    refused: float
    refused_ratio: float
    cut_off: float
    steps_without_endpoints: int
    replica_hours: float


Decide: TypeAlias = "Callable[[int, StickyPods, float], int]"
"""A function from (step, pods before the decision, connections refused in the last step) to the requested replicas."""


def open_connections(arrivals: FloatArray, step_seconds: float, settings: SessionSettings) -> FloatArray:
    """Return how many connections are open after each step if none is refused; shape (steps,).

    `conn[t] = conn[t-1] * exp(-step / mean session) + arrivals[t]`. Where arrivals are unknown, the result is NaN;
    until they are known again, the last known ones are assumed.
    """
    kept = 1 - settings.ended_ratio(step_seconds)
    found = np.full(len(arrivals), np.nan)
    present = last = 0.0
    for step, value in enumerate(arrivals.tolist()):
        is_known = value == value  # noqa: PLR0124 - not NaN
        last = value if is_known else last
        present = present * kept + last
        if is_known:
            found[step] = present
    return found


def simulate_connections(
    arrivals: FloatArray, decide: Decide, fleet: FleetSettings, settings: SessionSettings
) -> ConnectionRun:
    """Return the events of the connections when `decide` sets the size. Unknown arrivals count as none.

    A pod that is requested in step t takes connections from t + start-up + one step, as in the simulation of load. At
    the start, the fleet has the size of the first decision, and no connections.
    """
    steps, lag = len(arrivals), fleet.lag_steps
    ended, backoff = settings.ended_ratio(fleet.step_seconds), settings.backoff_steps(fleet.step_seconds)
    returning = np.zeros(steps + backoff + 1)
    run = ConnectionRun(*(np.zeros(steps) for _ in range(6)))
    pods = StickyPods(decide(0, StickyPods(0, settings.limit), 0.0), settings.limit)
    refused = 0.0
    for step, value in enumerate(np.nan_to_num(arrivals).tolist()):
        pods.lose(ended)
        asked = decide(step, pods, refused) if step else pods.count
        cut_off = pods.resize(asked, step, lag)
        ready = pods.ready(step)
        attempted = value + float(returning[step])
        refused = pods.place(attempted, ready)
        again = refused + cut_off
        if again:
            returning[step + 1 : step + 1 + backoff] += again / backoff
        run.ready[step], run.asked[step] = np.count_nonzero(ready), asked
        run.open[step] = pods.connections.sum()
        run.attempted[step], run.refused[step], run.cut_off[step] = attempted, refused, cut_off
    return run


def replayed_decisions(asked: FloatArray) -> Decide:
    """Return a function that repeats earlier decisions, of shape (steps,), whatever the state of the pods is."""
    sizes: Sequence[int] = asked.astype(np.int64).tolist()
    return lambda step, _pods, _refused: sizes[step]


def measure_connections(run: ConnectionRun, judged: BoolArray, fleet: FleetSettings) -> ConnectionMeasures:
    """Return the sums over the judged steps."""
    attempted, refused = float(run.attempted[judged].sum()), float(run.refused[judged].sum())
    return ConnectionMeasures(
        attempted=attempted,
        refused=refused,
        refused_ratio=refused / attempted if attempted else 0.0,
        cut_off=float(run.cut_off[judged].sum()),
        steps_without_endpoints=int((run.ready[judged] == 0).sum()),
        replica_hours=float(run.asked[judged].sum() * fleet.step_seconds / 3600),
    )
