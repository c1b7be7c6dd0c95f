"""Metrics with one value for each pod: how many replicas bring the average, or the utilisation, to its target.

The formulas are those of `replica_calculator.go`. Pods without a sample, and pods that are not ready, only ever make a
change smaller: when scaling up, they count as idle; when scaling down, pods without a sample count as fully used; and a
result that would reverse the direction changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adapter.foundation.hpa.arithmetic import Tolerances, quotient, ratio_of, whole_replicas
from adapter.foundation.hpa.pods import PodState, PodUsage


class UnusableMetricError(Exception):
    """No number of replicas follows from the metric; the message says why."""


@dataclass(frozen=True, slots=True)
class PodsProposal:
    """The number of replicas that a metric with one value for each pod asks for."""

    replicas: int
    average_milli: int
    """Mean over the pods that count and have a sample."""
    utilization_percent: int | None = None
    """Usage as a share of the requests; only for a target of type Utilization."""
    detail: str = ""
    """The calculation, in a line."""


@dataclass(frozen=True, slots=True)
class _Usage:
    """The intermediate result of the calculation."""

    ratio: float
    average: int
    utilization: int | None = None


def average_replicas(current: int, target: int, pods: Sequence[PodUsage], tolerances: Tolerances) -> PodsProposal:
    """Return the replicas that bring the pods' average to the target (both in thousandths).

    Raises UnusableMetricError when no pod that counts has a sample.
    """

    def measure(sampled: Sequence[PodUsage]) -> _Usage:
        average = quotient(sum(pod.usage or 0 for pod in sampled), len(sampled))
        return _Usage(ratio_of(average, target), average)

    return _replicas(current, pods, tolerances, measure, lambda _: target)


def utilization_replicas(current: int, target: int, pods: Sequence[PodUsage], tolerances: Tolerances) -> PodsProposal:
    """Return the replicas that bring usage to the target, which is a percentage of the requests.

    Raises UnusableMetricError when no pod that counts has a sample, or a pod has no request.
    """

    def measure(sampled: Sequence[PodUsage]) -> _Usage:
        known = [pod for pod in sampled if pod.state is not PodState.SUPERFLUOUS]
        usage, requests = sum(pod.usage or 0 for pod in known), sum(pod.request or 0 for pod in known)
        if requests == 0:
            raise UnusableMetricError("no sample belongs to a pod with a request")
        utilization = quotient(usage * 100, requests)
        return _Usage(ratio_of(utilization, target), quotient(usage, len(known)), utilization)

    if any(pod.request is None for pod in pods if pod.state is not PodState.SUPERFLUOUS):
        raise UnusableMetricError("a pod has no request for the resource")
    return _replicas(
        current, pods, tolerances, measure, lambda pod: quotient((pod.request or 0) * max(100, target), 100)
    )


def _replicas(
    current: int,
    pods: Sequence[PodUsage],
    tolerances: Tolerances,
    measure: Callable[[Sequence[PodUsage]], _Usage],
    full_usage: Callable[[PodUsage], int],
) -> PodsProposal:
    sampled = [pod for pod in pods if pod.state in {PodState.READY, PodState.SUPERFLUOUS}]
    if all(pod.state is PodState.SUPERFLUOUS for pod in pods):
        raise UnusableMetricError("the scale target's selector finds no pods")
    if not sampled:
        raise UnusableMetricError("no sample came for any pod that counts")
    usage = measure(sampled)
    if not _needs_assumptions(pods, usage.ratio):
        ready = sum(pod.state is PodState.READY for pod in pods)
        within = tolerances.hold(usage.ratio)
        replicas = current if within else whole_replicas(usage.ratio * ready)
        pods_text = f"{ready} ready {'pod' if ready == 1 else 'pods'}"
        detail = f"ratio {usage.ratio:.4g}" + (" is within tolerance" if within else f" x {pods_text}")
        return PodsProposal(replicas, usage.average, usage.utilization, detail)
    assumed = _with_assumed_usage(pods, usage.ratio, full_usage)
    counted = [*sampled, *assumed]
    assumed_ratio = measure(counted).ratio
    replicas = _replicas_with_assumptions(current, usage.ratio, assumed_ratio, len(counted), tolerances)
    detail = (
        f"ratio {usage.ratio:.4g}, {assumed_ratio:.4g} with usage assumed for {len(assumed)} of {len(counted)} pods"
    )
    return PodsProposal(replicas, usage.average, usage.utilization, detail)


def _needs_assumptions(pods: Sequence[PodUsage], ratio: float) -> bool:
    return any(pod.state is PodState.MISSING or (pod.state is PodState.UNREADY and ratio > 1.0) for pod in pods)


def _with_assumed_usage(
    pods: Sequence[PodUsage], ratio: float, full_usage: Callable[[PodUsage], int]
) -> list[PodUsage]:
    """Return the pods without a usable sample, each with an assumed usage that makes a change smaller."""
    if ratio < 1.0:
        return [replace(pod, usage=full_usage(pod)) for pod in pods if pod.state is PodState.MISSING]
    if ratio > 1.0:
        return [replace(pod, usage=0) for pod in pods if pod.state in {PodState.MISSING, PodState.UNREADY}]
    return []


def _replicas_with_assumptions(
    current: int, ratio: float, assumed_ratio: float, counted: int, tolerances: Tolerances
) -> int:
    """Return the replicas by the assumed ratio; the current number if the assumptions would reverse the direction."""
    turned = (ratio < 1.0 < assumed_ratio) or (assumed_ratio < 1.0 < ratio)
    if turned or tolerances.hold(assumed_ratio):
        return current
    replicas = whole_replicas(assumed_ratio * counted)
    return max(current, replicas) if assumed_ratio > 1.0 else min(current, replicas)
