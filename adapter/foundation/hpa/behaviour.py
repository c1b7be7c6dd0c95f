"""Limits the replicas that the metrics ask for: look-back windows, rates, minimum and maximum.

As in the controller (`horizontal.go`), there are two sets of rules: one for HPAs with a `behavior`, and older ones for
HPAs without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.foundation.hpa.arithmetic import whole_replicas
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, change_since, with_recommendation
from adapter.foundation.hpa.rules import Behaviour, PolicyType, ScalingPolicy, ScalingRules, SelectPolicy, Windows

_SCALE_UP_FACTOR: Final = 2
_SCALE_UP_MINIMUM: Final = 4


class LimitReason(StrEnum):
    """Reasons of the condition ScalingLimited."""

    TOO_FEW_REPLICAS = "TooFewReplicas"
    TOO_MANY_REPLICAS = "TooManyReplicas"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
    DESIRED_WITHIN_RANGE = "DesiredWithinRange"


@dataclass(frozen=True, slots=True)
class Limited:
    """A number of replicas within the limits, and the limit that applies, if any."""

    replicas: int
    reason: LimitReason


@dataclass(frozen=True, slots=True)
class Stabilized:
    """The stabilised number of replicas, and the history with the new recommendation."""

    replicas: int
    history: HpaHistory


def stabilize_by_default(desired: int, history: HpaHistory, window_seconds: float, now: float) -> Stabilized:
    """Return the largest recommendation in the window: without a `behavior`, only scaling down is delayed."""
    start = now - window_seconds
    recent = (past.replicas for past in history.recommendations if past.at >= start)
    remembered = with_recommendation(history, PastRecommendation(desired, now), obsolete_before=start)
    return Stabilized(max([desired, *recent]), remembered)


def stabilize(current: int, desired: int, windows: Windows, history: HpaHistory, now: float) -> Stabilized:
    """Return the number nearest to the current one that the recommendations in both windows allow.

    The history keeps the desired number, not the stabilised one.
    """
    up_start, down_start = now - windows.up, now - windows.down
    lowest = min([desired, *(past.replicas for past in history.recommendations if past.at > up_start)])
    highest = max([desired, *(past.replicas for past in history.recommendations if past.at > down_start)])
    obsolete_before = min(up_start, down_start)
    remembered = with_recommendation(history, PastRecommendation(desired, now), obsolete_before=obsolete_before)
    return Stabilized(min(max(current, lowest), highest), remembered)


def limit_by_default(current: int, desired: int, minimum: int, maximum: int) -> Limited:
    """Limit the desired number to minimum, maximum, and the larger of 4 and twice the current number."""
    rate = max(_SCALE_UP_FACTOR * current, _SCALE_UP_MINIMUM)
    if desired < minimum:
        return Limited(minimum, LimitReason.TOO_FEW_REPLICAS)
    if desired <= min(rate, maximum):
        return Limited(desired, LimitReason.DESIRED_WITHIN_RANGE)
    if maximum > rate:
        return Limited(rate, LimitReason.SCALE_UP_LIMIT)
    return Limited(maximum, LimitReason.TOO_MANY_REPLICAS)


def limit_rate(current: int, desired: int, behaviour: Behaviour, history: HpaHistory, now: float) -> int:
    """Return the number that the policies allow in the desired direction, or the current number if they allow none."""
    if desired > current:
        return max(current, _limit(current, behaviour.scale_up, history, now, up=True))
    return min(current, _limit(current, behaviour.scale_down, history, now, up=False))


def limit(current: int, desired: int, minimum: int, maximum: int, rate: int) -> Limited:
    """Limit the desired number to minimum, maximum, and `rate`, the result of `limit_rate`."""
    if desired > current and desired > min(maximum, rate):
        if maximum > rate:
            return Limited(rate, LimitReason.SCALE_UP_LIMIT)
        return Limited(maximum, LimitReason.TOO_MANY_REPLICAS)
    if desired < current and desired < max(minimum, rate):
        if minimum < rate:
            return Limited(rate, LimitReason.SCALE_DOWN_LIMIT)
        return Limited(minimum, LimitReason.TOO_FEW_REPLICAS)
    return Limited(desired, LimitReason.DESIRED_WITHIN_RANGE)


def _limit(current: int, rules: ScalingRules, history: HpaHistory, now: float, *, up: bool) -> int:
    if rules.select is SelectPolicy.DISABLED or not rules.policies:
        return current
    allowed = [_allowed_by(policy, current, history, now, up=up) for policy in rules.policies]
    least = (rules.select is SelectPolicy.MIN) == up
    return min(allowed) if least else max(allowed)


def _allowed_by(policy: ScalingPolicy, current: int, history: HpaHistory, now: float, *, up: bool) -> int:
    """Return the number that one policy allows, given the number at the start of its period."""
    start = now - policy.period_seconds
    at_start = current - change_since(history.ups, start) + change_since(history.downs, start)
    if policy.type is PolicyType.PODS:
        return at_start + policy.value if up else at_start - policy.value
    if up:
        return whole_replicas(at_start * (1 + policy.value / 100))
    return int(at_start * (1 - policy.value / 100))
