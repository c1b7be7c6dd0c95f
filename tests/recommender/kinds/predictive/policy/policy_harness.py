"""Settings, situations and a loop of polls for the tests of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.loads.load_inputs import PodConnections
from recommender.kinds.predictive.policy.load_situation import LoadForecast, LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of
from recommender.kinds.predictive.predictive_settings import Connections, PredictiveSettings, ScaleDown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.kinds.predictive.policy.sizing import Sized

NOW = 1_800_000_000.0
LIMIT = 25_000


def settings(**changes: object) -> PredictiveSettings:
    """Return settings of 25,000 connections per replica and a start-up of 120 s, without headroom."""
    values: dict[str, object] = {"load_per_replica": LIMIT, "horizon_seconds": 120.0, "headroom_ratio": 0.0, **changes}
    return PredictiveSettings(**values)  # type: ignore[arg-type]


def sticky(**changes: object) -> PredictiveSettings:
    """Return settings of long-lived connections."""
    return settings(connections=Connections(LIMIT, metric="websocket_connections"), **changes)


def gently(decay: float | None = 0.05, window: float = 0.0, drain: float | None = None) -> ScaleDown:
    return ScaleDown(decay, window, drain)


def forecast(upper: float, model: str = "quantile") -> LoadForecast:
    return LoadForecast(median=upper, upper=upper, model=model)


def ready(*connections: float | None) -> tuple[PodConnections, ...]:
    return tuple(PodConnections(each, is_ready=True, name=f"ready-{place}") for place, each in enumerate(connections))


def unready(*connections: float | None, seconds: float | None = 30.0) -> tuple[PodConnections, ...]:
    return tuple(
        PodConnections(each, is_ready=False, name=f"unready-{place}", unready_seconds=seconds)
        for place, each in enumerate(connections)
    )


def polls(
    policy: PredictiveSettings,
    loads: Iterable[float | None],
    *,
    seconds: float = 10.0,
    memory: PolicyMemory | None = None,
    start: float = NOW,
) -> list[Sized]:
    """Return the decision of each poll, with the load itself as the forecast."""
    found: list[Sized] = []
    memory = memory or PolicyMemory()
    for place, load in enumerate(loads):
        situation = LoadSituation(load, None if load is None else forecast(load, "reactive"))
        found.append(size_of(policy, situation, memory, start + place * seconds))
        memory = found[-1].memory
    return found


def sizes(decisions: Iterable[Sized]) -> list[int | None]:
    return [decision.replicas for decision in decisions]
