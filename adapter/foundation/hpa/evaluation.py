"""One evaluation of an HPA: guards, metrics, behaviour, in the order of `reconcileAutoscaler` in `horizontal.go`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from adapter.foundation.hpa.behaviour import (
    Limited,
    LimitReason,
    limit,
    limit_by_default,
    limit_rate,
    stabilize,
    stabilize_by_default,
)
from adapter.foundation.hpa.decision import AbleReason, ActiveReason, HpaDecision, HpaStep
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, with_change
from adapter.foundation.hpa.proposals import HpaWorkload, Observation, Proposal, propose
from adapter.foundation.hpa.spec import ExternalMetric, HPASpec, MetricSpec, ObjectMetric, PodsMetric, ResourceMetric


def evaluate(
    spec: HPASpec,
    workload: HpaWorkload,
    observations: Sequence[Observation],
    history: HpaHistory | None = None,
    *,
    now: float,
    scaled_to_zero: bool | None = None,
) -> HpaDecision:
    """Return what the HPA controller decides at this moment (`now` in seconds, on the clock of the history).

    There is one observation for each metric of the spec, in its order; raises ValueError if the numbers differ and
    TypeError if the kinds differ. No history means that the controller has just started: the current replicas then
    count as the first recommendation. `scaled_to_zero` is the HPA's condition ScaledToZero, without which controllers
    since Kubernetes 1.36 leave 0 replicas as they are; None for earlier ones, which go by minReplicas.
    """
    if len(observations) != len(spec.metrics):
        raise ValueError(f"{len(observations)} observations came for {len(spec.metrics)} metrics")
    current = workload.spec_replicas
    if history is None or not history.recommendations:
        past = history or HpaHistory()
        history = HpaHistory((PastRecommendation(current, now),), past.ups, past.downs)
    may_grow = spec.min_replicas == 0 if scaled_to_zero is None else scaled_to_zero
    if current == 0 and not may_grow:
        return _decision_to_stay(
            current, ActiveReason.SCALING_DISABLED, "scaled to 0 by hand: autoscaling is off", history
        )
    # What the controller made 0 follows its metrics again, even if the minimum has been raised meanwhile.
    if current != 0 and not spec.min_replicas <= current <= spec.max_replicas:
        return _into_range(spec, current, history, now)
    proposals = tuple(
        propose(spec, metric, observation, workload, now)
        for metric, observation in zip(spec.metrics, observations, strict=True)
    )
    largest = largest_usable([proposal.replicas for proposal in proposals], current)
    if largest is None:
        return _metrics_failed(current, proposals, history)
    return _by_metrics(spec, current, max(largest, 0), proposals, history, now)


def largest_usable(proposals: Sequence[int | None], spec_replicas: int) -> int | None:
    """Return the largest number that the metrics ask for; None if nothing may be done.

    A proposal of None means that the metric failed. While a metric fails, the others may scale up or keep the number,
    but not scale down.
    """
    usable = [replicas for replicas in proposals if replicas is not None]
    largest = max(usable, default=None)
    if largest is None or (len(usable) < len(proposals) and largest < spec_replicas):
        return None
    return largest


def _decision_to_stay(current: int, reason: ActiveReason, message: str, history: HpaHistory) -> HpaDecision:
    return HpaDecision(
        current=current,
        desired=current,
        reason=reason,
        message=message,
        steps=(HpaStep("unchanged", current, message),),
        proposals=(),
        history=history,
    )


def _into_range(spec: HPASpec, current: int, history: HpaHistory, now: float) -> HpaDecision:
    """Return the decision for a number below minimum or above maximum; metrics and behaviour are ignored."""
    above = current > spec.max_replicas
    desired = spec.max_replicas if above else spec.min_replicas
    message = f"the size {current} is {'above maxReplicas' if above else 'below minReplicas'} {desired}"
    return HpaDecision(
        current=current,
        desired=desired,
        reason=LimitReason.TOO_MANY_REPLICAS if above else LimitReason.TOO_FEW_REPLICAS,
        message=message,
        steps=(HpaStep("into range", desired, message),),
        proposals=(),
        history=with_change(history, spec.behaviour, current, desired, now),
    )


def _metrics_failed(current: int, proposals: tuple[Proposal, ...], history: HpaHistory) -> HpaDecision:
    failed = [proposal for proposal in proposals if proposal.replicas is None]
    first, detail = failed[0].metric.name, failed[0].detail
    if len(proposals) == 1:
        message = f"the metric {first} failed: {detail}"
    else:
        message = f"{len(failed)} of {len(proposals)} metrics failed, first {first}: {detail}"
    decision = _decision_to_stay(current, _failure_reason(failed[0].metric), message, history)
    return replace(decision, proposals=proposals, steps=(*map(_metric_step, proposals), *decision.steps))


def _failure_reason(metric: MetricSpec) -> ActiveReason:
    match metric:
        case PodsMetric():
            return ActiveReason.FAILED_GET_PODS_METRIC
        case ResourceMetric(container=None):
            return ActiveReason.FAILED_GET_RESOURCE_METRIC
        case ResourceMetric():
            return ActiveReason.FAILED_GET_CONTAINER_RESOURCE_METRIC
        case ObjectMetric():
            return ActiveReason.FAILED_GET_OBJECT_METRIC
        case ExternalMetric():
            return ActiveReason.FAILED_GET_EXTERNAL_METRIC
        case _:
            assert_never(metric)


def _metric_step(proposal: Proposal) -> HpaStep:
    kind = type(proposal.metric).__name__.removesuffix("Metric").lower()
    return HpaStep(f"metric/{kind}/{proposal.metric.name}", proposal.replicas, proposal.detail)


def _by_metrics(
    spec: HPASpec, current: int, wanted: int, proposals: tuple[Proposal, ...], history: HpaHistory, now: float
) -> HpaDecision:
    """Return the decision from the metrics' proposals, after the look-back and the limits."""
    minimum, maximum, behaviour = spec.min_replicas, spec.max_replicas, spec.behaviour
    if behaviour is None:
        stable = stabilize_by_default(wanted, history, spec.settings.downscale_stabilization_seconds, now)
        limited = limit_by_default(current, stable.replicas, minimum, maximum)
    else:
        stable = stabilize(current, wanted, spec.windows, history, now)
        rate = limit_rate(current, stable.replicas, behaviour, history, now)
        limited = limit(current, stable.replicas, minimum, maximum, rate)
    if current == 0 and limited.replicas < minimum:
        limited = Limited(minimum, LimitReason.TOO_FEW_REPLICAS)
    able = _able_reason(wanted, stable.replicas)
    unlimited = limited.reason is LimitReason.DESIRED_WITHIN_RANGE
    held = able is not AbleReason.READY_FOR_NEW_SCALE
    return HpaDecision(
        current=current,
        desired=limited.replicas,
        reason=able if unlimited and held else limited.reason,
        message=_message(current, limited.replicas, wanted, proposals),
        steps=(
            *map(_metric_step, proposals),
            HpaStep("largest", wanted, "the largest number that a metric asks for, at least 0"),
            HpaStep("stabilized", stable.replicas, able.value),
            HpaStep("limited", limited.replicas, limited.reason.value),
        ),
        proposals=proposals,
        history=with_change(stable.history, behaviour, current, limited.replicas, now),
    )


def _able_reason(wanted: int, stable: int) -> AbleReason:
    if stable == wanted:
        return AbleReason.READY_FOR_NEW_SCALE
    return AbleReason.SCALE_UP_STABILIZED if stable < wanted else AbleReason.SCALE_DOWN_STABILIZED


def _message(current: int, desired: int, wanted: int, proposals: tuple[Proposal, ...]) -> str:
    highest = max(proposal.replicas for proposal in proposals if proposal.replicas is not None)
    asking = next(proposal for proposal in proposals if proposal.replicas == highest)
    kind = _metric_step(asking).step
    if wanted > current:
        cause = f"{kind} is above its target"
    elif wanted < current:
        cause = "all metrics are below their targets"
    else:
        cause = f"{kind} is near its target"
    return f"replicas {current} -> {desired}: {cause} ({asking.detail})"
