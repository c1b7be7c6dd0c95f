"""Long-lived connections: the load that follows from arrivals, and what becomes of them with each policy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.history import of_one_series
from recommender.kinds.predictive.simulation.connections import (
    measure_connections,
    open_connections,
    replayed,
    simulate_connections,
)
from recommender.kinds.predictive.simulation.session_option import parse_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.backtest.report import PolicyResult
    from recommender.kinds.predictive.arrays import BoolArray
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.serving import FleetSettings


def with_connections(arrivals: LoadHistory, sessions: str) -> LoadHistory:
    """Return the open connections as load; without sessions, the history as it is."""
    if not sessions:
        return arrivals
    load = open_connections(arrivals.values[0], arrivals.step_seconds, parse_sessions(sessions, 1.0))
    return of_one_series(arrivals.start_seconds, arrivals.step_seconds, load)


def with_refusals(
    results: Sequence[PolicyResult], arrivals: LoadHistory, judged: BoolArray, fleet: FleetSettings, sessions: str
) -> tuple[PolicyResult, ...]:
    """Return the policies with what became of the connections; a pod takes `load_per_replica` without a limit."""
    settings = parse_sessions(sessions, fleet.load_per_replica)
    found = []
    for result in results:
        run = simulate_connections(arrivals.values[0], replayed(np.ceil(result.fleet.asked)), fleet, settings)
        found.append(replace(result, connections=measure_connections(run, judged, fleet)))
    return tuple(found)
