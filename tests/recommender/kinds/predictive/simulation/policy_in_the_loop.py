"""The production policy makes the decisions of a simulated fleet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.decisions.loads.load_inputs import PodConnections
from recommender.kinds.predictive.policy.load_situation import LoadForecast, LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings
    from recommender.kinds.predictive.simulation.connections import Decide
    from recommender.kinds.predictive.simulation.pods import StickyPods
    from recommender.kinds.predictive.simulation.serving import FleetSettings


def decided_by_policy(
    policy: PredictiveSettings, load: FloatArray, upper: FloatArray, model: str, fleet: FleetSettings
) -> Decide:
    """Return decisions of the production policy, which sees the pods; call this once for each simulation.

    `load` and `upper` are what is observed and forecast at each step, shape (steps,); NaN where it is unknown.
    """
    settings = replace(
        policy,
        load_per_replica=fleet.load_per_replica,
        # Until a pod serves, rounded up to steps: for so long the policy waits for those that start.
        horizon_seconds=fleet.lag_steps * fleet.step_seconds,
        min_replicas=fleet.min_replicas,
        max_replicas=fleet.max_replicas,
    )
    memory, looks_at_pods = PolicyMemory(), policy.connections is not None
    loads, uppers = load.tolist(), upper.tolist()

    def decide(step: int, pods: StickyPods, _refused: float) -> int:
        nonlocal memory
        observed = observed_pods(pods, step, fleet) if looks_at_pods and pods.count else None
        situation = LoadSituation(
            load=loads[step],
            forecast=LoadForecast(uppers[step], uppers[step], model),
            pods=observed,
            current_replicas=pods.count or None,
            interval_seconds=fleet.step_seconds,
        )
        sized = size_of(settings, situation, memory, step * fleet.step_seconds)
        memory = sized.memory
        return fleet.min_replicas if sized.replicas is None else sized.replicas

    return decide


def observed_pods(pods: StickyPods, step: int, fleet: FleetSettings) -> tuple[PodConnections, ...]:
    """Return the pods as the policy sees them. A pod that has not started yet has no sample."""
    rows = zip(pods.connections.tolist(), pods.ready(step).tolist(), pods.starts_at.tolist(), pods.numbers, strict=True)
    return tuple(
        PodConnections(connections, is_ready, str(number))
        if starts_at <= step
        else PodConnections(
            None,
            is_ready=False,
            name=str(number),
            unready_seconds=(step - starts_at + fleet.lag_steps) * fleet.step_seconds,
        )
        for connections, is_ready, starts_at, number in rows
    )
