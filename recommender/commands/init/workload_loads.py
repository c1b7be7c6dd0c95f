"""Finds the load of each workload, and of its average pod, in the series of exporters."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.exporters.held_series import ASKING_AGAIN, samples_of
from adapter.foundation.exporters.known_metrics import RATE_WINDOW, KnownMetric, MetricSubject, SeriesType
from adapter.foundation.exporters.pod_names import LikelyWorkload, pod_pattern, workload_of
from adapter.foundation.exporters.recognition import RecognisedMetric, UnusedMetric
from adapter.foundation.objects.names import ObjectName
from adapter.foundation.promql.quoting import go_quoted
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.sources.prometheus.queries.budget import Prometheus

HISTORY: Final = "14d"
"""The default of a recommendation's `history`."""
_STEP: Final = "10m"
_STEPS_OF_A_DAY: Final = 144
_BUSY_QUANTILE: Final = 0.95
_ANY_QUANTILE: Final = 1.0
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class WorkloadLoad:
    """The load of a workload."""

    workload: LikelyWorkload
    known: KnownMetric
    query: str
    """PromQL with one value: the total load of the workload's pods."""
    per_pod_query: str
    """PromQL with one value: the average load of the workload's pods."""
    now: float
    pods: int


@dataclass(frozen=True, slots=True)
class CarriedLoad:
    """The load that the average pod of a workload carries."""

    load: float
    reason: str
    """What the load is and which period it is from, as a phrase without a full stop."""


def loads_of_workloads(
    client: Prometheus, metrics: Sequence[RecognisedMetric]
) -> tuple[list[WorkloadLoad], list[UnusedMetric]]:
    """Return the load of each workload, by its first metric that measures load, and the metrics without an answer.

    A failed query affects only its own metric. Raises PrometheusError if Prometheus is down or refuses the credentials.
    """
    found: dict[LikelyWorkload, WorkloadLoad] = {}
    unused: list[UnusedMetric] = []
    for metric in metrics:
        if metric.known.subject is not MetricSubject.POD or not metric.known.scales:
            continue
        try:
            by_workload = _values_by_workload(client, metric)
        except (PrometheusUnreachableError, AuthenticationRefusedError):
            raise
        except PrometheusError as error:
            unused.append(UnusedMetric(metric.known, f"its query has no answer: {error}", ASKING_AGAIN))
            continue
        for workload, values in by_workload.items():
            found.setdefault(workload, _load(metric, workload, values))
    by_name = sorted(found.values(), key=lambda each: (each.workload.namespace, each.workload.name, each.workload.kind))
    return by_name, unused


def carried_load(client: Prometheus, load: WorkloadLoad) -> CarriedLoad | None:
    """Return the load of the average pod in the busy hours of the history; None if it is unknown or zero.

    A load that Prometheus cannot calculate is unknown. Raises PrometheusError if Prometheus is down or refuses the
    credentials.
    """
    try:
        return _carried_load(client, load)
    except (PrometheusUnreachableError, AuthenticationRefusedError):
        raise
    except PrometheusError:
        return None


def _carried_load(client: Prometheus, load: WorkloadLoad) -> CarriedLoad | None:
    """Return the result of `carried_load`, but also raise an error if a query fails."""
    window = f"({load.per_pod_query})[{HISTORY}:{_STEP}]"
    steps = _one_value(client, f"count_over_time({window})") or 0.0
    is_long = steps >= _STEPS_OF_A_DAY
    quantile = _BUSY_QUANTILE if is_long else _ANY_QUANTILE
    carried = _one_value(client, f"quantile_over_time({quantile:g}, {window})")
    if not is_long:
        # The steps of a short history may all lie before its first sample.
        current = _one_value(client, load.per_pod_query)
        carried = max((value for value in (carried, current) if value is not None), default=None)
    if carried is None or carried <= 0:
        return None
    rounded = float(f"{carried:.{_DIGITS}g}")
    if is_long:
        days = steps / _STEPS_OF_A_DAY
        reason = f"the load of an average pod in busy hours: 95% of the last {days:.3g} days had no more"
        return CarriedLoad(rounded, reason)
    return CarriedLoad(rounded, "the most that an average pod carried so far, with less than a day known")


def _values_by_workload(client: Prometheus, metric: RecognisedMetric) -> Mapping[LikelyWorkload, list[float]]:
    namespace, pod = metric.namespace_label or "", metric.object_label or ""
    by_workload: defaultdict[LikelyWorkload, list[float]] = defaultdict(list)
    series = _value(metric.known, [f'{namespace}!=""', f'{pod}!=""'])
    for sample in samples_of(client, f"sum by ({namespace}, {pod}) ({series})"):
        workload = workload_of(ObjectName(sample.labels.get(namespace, ""), sample.labels.get(pod, "")))
        if workload is not None and math.isfinite(sample.value) and sample.value >= 0:
            by_workload[workload].append(sample.value)
    return by_workload


def _load(metric: RecognisedMetric, workload: LikelyWorkload, values: Sequence[float]) -> WorkloadLoad:
    pod = metric.object_label or ""
    matchers = [
        f"{metric.namespace_label}={go_quoted(workload.namespace)}",
        f"{pod}=~{go_quoted(pod_pattern(workload))}",
    ]
    value = _value(metric.known, matchers)
    total = f"sum({value})"
    per_pod = f"{total} / count(group by ({pod}) ({value}))"
    return WorkloadLoad(workload, metric.known, total, per_pod, sum(values), len(values))


def _value(known: KnownMetric, matchers: Sequence[str]) -> str:
    series = f"{known.series}{{{','.join(filter(None, [known.matchers, *matchers]))}}}"
    return f"rate({series}[{RATE_WINDOW}])" if known.type is SeriesType.COUNTER else series


def _one_value(client: Prometheus, query: str) -> float | None:
    values = [sample.value for sample in samples_of(client, query)]
    return values[0] if len(values) == 1 and math.isfinite(values[0]) else None
