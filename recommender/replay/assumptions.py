"""The assumptions of a replay about facts that no recording shows, and the notes on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import count_of
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.recording.recording import RecordingError
from recommender.replay.forecasts.workload_forecasts import ForecastPlan, workload_forecasts
from recommender.replay.policies import Outlook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.policy_outcome import PolicyOutcome
    from recommender.replay.spot import SpotMarket


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The facts that the operator states besides the recording."""

    forecasts: tuple[ForecastPlan, ...] = (ForecastPlan(PredictiveSettings()),)
    """The forecasts that the configuration has; by default, one for all workloads."""
    market: SpotMarket | None = None


def outlook_of(scene: Scene, assumptions: Assumptions) -> Outlook:
    """Return the assumptions that all policies share.

    Raises RecordingError if spot machines are stated for a group that is not replayed.
    """
    market = assumptions.market
    for name in () if market is None else market.interruptions:
        if name not in scene.new_kinds:
            known = ", ".join(scene.new_kinds)
            raise RecordingError(f"--spot-interruptions: there is no node group {name!r} to replay: there are {known}")
    return Outlook(workload_forecasts(scene, assumptions.forecasts), market)


def assumption_notes(scene: Scene, settings: ClusterSizeSettings, outlook: Outlook) -> Iterator[str]:
    """Yield the assumptions, and the policies that are left out because too little is known."""
    if outlook.forecasts is not None:
        whose = "of the configuration, made " if settings.forecasts else ""
        yield (
            f"Forecasts are {whose}of how many pods each workload has, from the past of the replay alone: the load "
            "that led to them is not recorded."
        )
    elif settings.forecasts:
        yield "The forecasts of the configuration are about no recorded workload: all policies are without them."
    if outlook.market is None and len(scene.new_kinds) > 1:
        yield (
            "Spot machines have no policy, since no recording says how often they are interrupted and for how long "
            "none is available. If a group is of spot machines, state both: --spot-interruptions GROUP=0.02 (of a node "
            "in an hour) and --spot-absence 30m."
        )


def spot_notes(configured: PolicyOutcome) -> Iterator[str]:
    """Yield notes on what happened to spot machines with the configured policy."""
    spot = configured.spot
    if spot is None:
        return
    cost = "" if spot.fallback_cost is None else f", which cost {spot.fallback_cost:,.2f}"
    yield (
        f"{configured.name}: {count_of(spot.interruptions, 'interruption')} took the node of "
        f"{count_of(spot.interrupted_pods, 'pod')}; {count_of(spot.fallback_nodes, 'node')} of other groups took the "
        f"place of spot machines that did not arrive, for {spot.fallback_node_hours:,.0f} node-hours{cost}."
    )
