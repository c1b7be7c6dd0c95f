"""Turns one metric and its observation into the number of replicas that it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never

from adapter.foundation.hpa.arithmetic import ratio_of
from adapter.foundation.hpa.pods import usages
from adapter.foundation.hpa.replicas import UnusableMetricError, average_replicas, utilization_replicas
from adapter.foundation.hpa.spec import (
    AverageUtilization,
    AverageValue,
    ExternalMetric,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
)
from adapter.foundation.hpa.totals import (
    average_value_replicas,
    total_for_average_value,
    total_for_value,
    value_replicas,
)
from adapter.foundation.objects.quantities import milli_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.hpa.pods import Pod, PodSample
    from adapter.foundation.hpa.spec import HPASpec, MetricSpec, Value


@dataclass(frozen=True, slots=True)
class PodSamples:
    """The answer for a Pods or Resource metric: samples by pod name."""

    by_pod: Mapping[str, PodSample]


@dataclass(frozen=True, slots=True)
class Totals:
    """The answer for an Object or External metric: the value of each series in thousandths, in the answer's order."""

    series_milli: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The metric was not available."""

    message: str


Observation: TypeAlias = PodSamples | Totals | Unavailable


@dataclass(frozen=True, slots=True)
class HpaWorkload:
    """The scale target: its desired size, its current size, and its pods."""

    spec_replicas: int
    status_replicas: int
    pods: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """The number of replicas that one metric asks for."""

    metric: MetricSpec
    replicas: int | None
    """None when the metric could not be used."""
    detail: str
    """The calculation in one line, or why there is none."""


def propose(spec: HPASpec, metric: MetricSpec, observation: Observation, workload: HpaWorkload, now: float) -> Proposal:
    """Return what the metric asks for; the proposal of a metric that cannot be used has no number.

    Raises TypeError when the observation is of the wrong kind for the metric.
    """
    if isinstance(observation, Unavailable):
        return Proposal(metric, None, observation.message)
    try:
        match metric:
            case PodsMetric() | ResourceMetric():
                return _from_pods(spec, metric, _expect(observation, PodSamples, metric), workload, now)
            case ObjectMetric() | ExternalMetric():
                return _from_totals(spec, metric, _expect(observation, Totals, metric), workload)
            case _:
                assert_never(metric)
    except UnusableMetricError as error:
        return Proposal(metric, None, str(error))


_O = TypeVar("_O", PodSamples, Totals)


def _expect(observation: PodSamples | Totals, kind: type[_O], metric: MetricSpec) -> _O:
    if not isinstance(observation, kind):
        raise TypeError(
            f"{type(metric).__name__} {metric.name!r} takes {kind.__name__}, not {type(observation).__name__}"
        )
    return observation


def _from_pods(
    spec: HPASpec, metric: PodsMetric | ResourceMetric, observation: PodSamples, workload: HpaWorkload, now: float
) -> Proposal:
    resource = metric if isinstance(metric, ResourceMetric) else None
    pods = usages(workload.pods, observation.by_pod, now, spec.settings, resource)
    current = workload.spec_replicas
    if isinstance(metric.target, AverageUtilization):
        found = utilization_replicas(current, metric.target.percent, pods, spec.tolerances)
        share = f", {found.utilization_percent}% of the requests"
    else:
        found, share = average_replicas(current, metric.target.milli, pods, spec.tolerances), ""
    return Proposal(metric, found.replicas, f"{found.detail}; average {milli_quantity(found.average_milli)}{share}")


def _from_totals(
    spec: HPASpec, metric: ObjectMetric | ExternalMetric, observation: Totals, workload: HpaWorkload
) -> Proposal:
    series, target = observation.series_milli, metric.target
    if not series:
        raise UnusableMetricError("no series came")
    if isinstance(metric, ObjectMetric) and len(series) != 1:
        raise UnusableMetricError(f"{len(series)} values came for one object")
    if isinstance(target, AverageValue):
        total = total_for_average_value(series) if isinstance(metric, ExternalMetric) else series[0]
        found = average_value_replicas(workload.status_replicas, total, target.milli, spec.tolerances)
        quotient = f"ceil({milli_quantity(total)} / {milli_quantity(target.milli)})"
        detail = f"{quotient}, unless within tolerance of the size {workload.status_replicas}"
        return Proposal(metric, found.replicas, f"{detail}; average {milli_quantity(found.average_milli)}")
    total = total_for_value(series)
    shown = f"{milli_quantity(total)} / {milli_quantity(target.milli)}"
    ready = _ready(workload, total, target, spec)
    replicas = value_replicas(workload.spec_replicas, ready, total, target.milli, spec.tolerances)
    return Proposal(
        metric, replicas, f"{shown} x {ready} ready {'pod' if ready == 1 else 'pods'}, unless within tolerance"
    )


def _ready(workload: HpaWorkload, total: int, target: Value, spec: HPASpec) -> int:
    """Return the number of pods that serve. Raises UnusableMetricError if pods are needed and none exists."""
    needed = workload.spec_replicas != 0 and not spec.tolerances.hold(ratio_of(total, target.milli))
    if needed and not workload.pods:
        raise UnusableMetricError("there are no pods to multiply by")
    return sum(pod.serves for pod in workload.pods)
