"""Test data of decisions: one recommendation, one target, and inputs of a given age."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.values.state import Autoscaler, AutoscalerMetric, ClusterState, Observed
from recommender.decisions.calculation import Calculation
from recommender.decisions.inputs import Inputs, TargetState
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import Brakes, Output, RecommendationPolicy
from recommender.decisions.record import Step, TargetReference
from recommender.decisions.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.decisions.calculation import Calculate
    from recommender.decisions.record import Record

NOW = 1_800_000_000.0
DNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
FOLLOWED = AutoscalerMetric("recommended_replicas", average_milli=1000)
BOTH_OUTPUTS = frozenset({Output.METRIC, Output.SCALE})


def policy(**changes: Any) -> RecommendationPolicy:  # noqa: ANN401 - the fields of a dataclass
    return replace(RecommendationPolicy("coredns", "proportional", (DNS,), BOTH_OUTPUTS), **changes)


def braked(**brakes: Any) -> RecommendationPolicy:  # noqa: ANN401 - the fields of a dataclass
    return policy(brakes=Brakes(**brakes))


def asks_for(replicas: int | None, confirmed: float = NOW, note: str = "") -> Calculate:
    def calculate(_inputs: Inputs, memory: Memory, _now: float) -> Calculation:
        step = Step("linear/nodes", replicas or 0, f"ceil({replicas} / 1)")
        return Calculation(
            Replicas(replicas),
            confirmed,
            memory.own,
            {"nodes": 5.0},
            (step,),
            None if replicas is None else step.step,
            note=note,
        )

    return calculate


def fails_with(error: Exception) -> Calculate:
    def calculate(_inputs: Inputs, _memory: Memory, _now: float) -> Calculation:
        raise error

    return calculate


def inputs(
    current: int | None = 3,
    *,
    autoscalers: tuple[Autoscaler, ...] = (),
    time: float = NOW,
    others: dict[TargetReference, TargetState] | None = None,
    **state: Any,  # noqa: ANN401 - likewise
) -> Inputs:
    """Return inputs with one target; if `current` is None, the target does not exist."""
    target = None if current is None else TargetState(current, **state)
    targets: dict[TargetReference, Any] = {DNS: Observed(target, time)}
    targets |= {reference: Observed(each, time) for reference, each in (others or {}).items()}
    none: tuple[Autoscaler, ...] = ()
    found = {DNS.namespace: Observed(autoscalers, time), WEB.namespace: Observed(none, time)}
    return Inputs(ClusterState(autoscalers=found), targets=targets)


def remembers(replicas: int, *changes: float, decided: float = NOW - 10, confirmed: float = NOW - 10) -> Memory:
    return Memory(LastValue(replicas, decided, confirmed), changes)


def autoscaler(**changes: Any) -> Autoscaler:  # noqa: ANN401 - the fields of a dataclass
    metrics = (FOLLOWED,)
    default = Autoscaler("kube-system", "dns", {}, "apps/v1", "Deployment", "coredns", 1, 50, None, None, metrics)
    return replace(default, **changes)


def metric_only(make: Callable[..., RecommendationPolicy] = policy) -> RecommendationPolicy:
    return make(outputs=frozenset({Output.METRIC}))


def sized(record: Record, replicas: int | None) -> Record:
    """Return the record with this value, also for each of its targets."""
    targets = tuple(replace(each, recommended_replicas=replicas) for each in record.targets)
    return replace(record, replicas=replicas, targets=targets)
