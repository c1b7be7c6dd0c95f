"""Metrics with one value for the whole workload: Object and External.

For a target of type Value, the ratio is multiplied by the number of ready pods; for a target of type AverageValue, the
total is divided by the target, whatever the number of pods. The formulas are those of `replica_calculator.go`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from adapter.foundation.hpa.arithmetic import Tolerances, ratio_of, whole_replicas
from adapter.foundation.objects.integers import INT64_MAX


@dataclass(frozen=True, slots=True)
class AverageProposal:
    """The replicas that a target of type AverageValue asks for, and the average that the HPA's status reports."""

    replicas: int
    average_milli: int


def value_replicas(current: int, ready: int, usage: int, target: int, tolerances: Tolerances) -> int:
    """Return the replicas for a target of type Value (usage and target in thousandths).

    At 0 replicas, no tolerance applies and there is no pod to multiply by, so the ratio itself is the result.
    """
    ratio = ratio_of(usage, target)
    if current == 0:
        return whole_replicas(ratio)
    return current if tolerances.hold(ratio) else whole_replicas(ratio * ready)


def average_value_replicas(status_replicas: int, usage: int, target: int, tolerances: Tolerances) -> AverageProposal:
    """Return the replicas for a target of type AverageValue (usage in total, target for each pod, in thousandths)."""
    within = status_replicas != 0 and tolerances.hold(float(usage) / (float(target) * float(status_replicas)))
    replicas = status_replicas if within else whole_replicas(ratio_of(usage, target))
    return AverageProposal(replicas, _per_pod(usage, status_replicas))


def total_for_value(series: Iterable[int]) -> int:
    """Return the sum of an External metric's series for a target of type Value, capped at the end of int64."""
    total = 0
    for milli in series:
        if milli > 0 and total > INT64_MAX - milli:
            return INT64_MAX
        total += milli
    return total


def total_for_average_value(series: Iterable[int]) -> int:
    """Return the sum for a target of type AverageValue, capped at the end of int64.

    The controller treats a sum below zero as an overflow, so a negative value asks for the maximum. This known fault is
    reproduced.
    """
    total = 0
    for milli in series:
        total += milli
        if not 0 <= total <= INT64_MAX:
            return INT64_MAX
    return total


def _per_pod(usage: int, replicas: int) -> int:
    if float(usage) >= float(INT64_MAX):
        return INT64_MAX
    return math.ceil(float(usage) / float(replicas)) if replicas else 0
