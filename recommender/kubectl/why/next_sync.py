"""Predicts what the HPA controller does next, to the extent that this can be known from outside (pure).

The controller keeps its last recommendations and changes in memory and does not expose them. So the arithmetic runs
twice: with a memory that holds nothing back, and with a memory in which the current size was recommended a moment ago.
If both result in the same number, that number is certain; otherwise the size lies between them, and the answer says for
how long this may last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.hpa.behaviour import LimitReason
from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, ScaleEvent
from adapter.foundation.hpa.rules import ScalingRules, SelectPolicy
from adapter.foundation.reports.counts import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.hpa.decision import HpaDecision
    from adapter.foundation.hpa.proposals import HpaWorkload, Observation
    from adapter.foundation.hpa.spec import HPASpec

AMBIGUOUS_SELECTOR: Final = "AmbiguousSelector"
"""The reason of the condition ScalingActive if several HPAs select the same pods."""
_LONG_AGO: Final = -1e12
"""A time that lies before every window, on any clock."""


@dataclass(frozen=True, slots=True)
class NextSync:
    """The decision of the next sync."""

    spec: HPASpec
    free: HpaDecision
    """The decision if nothing from the last minutes holds the size back."""
    held: HpaDecision
    """The decision if the current size was recommended a moment ago."""
    wait_seconds: float
    """Seconds until nothing holds the size back, unless the current size is recommended again; 0 if the size is
    certain."""
    ambiguous: str = ""
    """The controller's message that several HPAs select the pods, so that it follows no metric; empty otherwise."""

    @property
    def is_certain(self) -> bool:
        """Whether the size does not depend on the controller's own memory."""
        return bool(self.ambiguous) or self.free.desired == self.held.desired

    @property
    def replicas(self) -> int:
        """The size that the metrics lead to, or the current one if they are not followed."""
        return self.free.current if self.ambiguous else self.free.desired

    @property
    def reason(self) -> str:
        """The reason of this size, in a word of the HPA's conditions."""
        return AMBIGUOUS_SELECTOR if self.ambiguous else self.free.reason.value

    @property
    def sentence(self) -> str:
        """The next change, in one sentence."""
        current, desired = self.free.current, self.free.desired
        stays = f"It stays at {count_of(current, 'replica')}"
        if self.ambiguous:
            return f"{stays}: {self.ambiguous} ({AMBIGUOUS_SELECTOR})"
        if desired == current:
            return f"{stays}: {_why_unchanged(self.spec, self.free)}"
        if self.is_certain:
            wanted = count_of(desired, "replica")
            return f"The next sync scales from {current} to {wanted}{_limit_of(self.spec, self.free)}"
        return (
            f"{stays} for now: the metrics ask for {desired}, but the stabilization window or "
            f"a policy may hold that back for up to {self.wait_seconds:g} s"
        )


def next_sync(
    spec: HPASpec,
    workload: HpaWorkload,
    observations: Sequence[Observation],
    last_scaled: float | None,
    now: float,
    *,
    scaled_to_zero: bool | None = None,
    ambiguous: str = "",
) -> NextSync:
    """Return the decision of the next sync at `now`.

    `last_scaled` is `status.lastScaleTime` in seconds on the same clock; if that change is recent, policies count it.
    `scaled_to_zero` is what `evaluate` takes, and `ambiguous` is the controller's message that several HPAs select the
    pods.
    """
    unheld = HpaHistory((PastRecommendation(workload.spec_replicas, _LONG_AGO),))
    free = evaluate(spec, workload, observations, unheld, now=now, scaled_to_zero=scaled_to_zero)
    rising = free.desired > workload.spec_replicas
    window = spec.windows.up if rising else spec.windows.down
    period = _period(spec, rising=rising)
    is_recent = last_scaled is not None and now - last_scaled <= period
    changes = (_largest_change(spec, workload, last_scaled, rising=rising),) if is_recent and last_scaled else ()
    ups, downs = (changes, ()) if rising else ((), changes)
    recent = HpaHistory((PastRecommendation(workload.spec_replicas, now),), ups, downs)
    held = evaluate(spec, workload, observations, recent, now=now, scaled_to_zero=scaled_to_zero)
    # Outside of its range, a size is corrected before the controller looks at the selector.
    ambiguous = ambiguous if free.proposals else ""
    waits = 0.0 if ambiguous or free.desired == held.desired else max(window, period if changes else 0.0)
    return NextSync(spec, free, held, waits, ambiguous)


def _largest_change(spec: HPASpec, workload: HpaWorkload, at: float, *, rising: bool) -> ScaleEvent:
    """Return the largest change that may have led to the current size, since the actual change is not exposed."""
    current = workload.spec_replicas
    return ScaleEvent(current if rising else spec.max_replicas - current, at)


def _period(spec: HPASpec, *, rising: bool) -> float:
    """Return the longest period of the policies for a direction; 0 without `behavior`."""
    if spec.behaviour is None:
        return 0.0
    return float((spec.behaviour.scale_up if rising else spec.behaviour.scale_down).longest_period_seconds)


def _why_unchanged(spec: HPASpec, decision: HpaDecision) -> str:
    """Return why the size does not change, from the steps of the decision."""
    steps = {step.step: step for step in decision.steps}
    if "largest" not in steps:
        return _why_nothing_is_done(decision)
    wanted = steps["largest"].value
    if wanted == decision.current:
        return "the metrics ask for this size"
    return f"the metrics ask for {wanted}, and {_limit(spec, decision)}"


def _why_nothing_is_done(decision: HpaDecision) -> str:
    """Return why the metrics are not followed: some of them have failed, or autoscaling is off."""
    wanted = [each.replicas for each in decision.proposals if each.replicas is not None]
    if not wanted:
        return decision.message
    return f"the others ask for {max(wanted)}, but nothing is made smaller while {decision.message}"


def _limit_of(spec: HPASpec, decision: HpaDecision) -> str:
    steps = {step.step: step for step in decision.steps}
    largest = steps.get("largest")
    if largest is None:
        return f": {decision.message}"
    if largest.value == decision.desired:
        return ""
    return f"; the metrics ask for {largest.value}, and {_limit(spec, decision)}"


def _limit(spec: HPASpec, decision: HpaDecision) -> str:
    """Return what keeps the size from being the one that the metrics ask for, in the words of the HPA's spec."""
    behaviour = spec.behaviour
    match decision.reason:
        case LimitReason.TOO_MANY_REPLICAS:
            words = f"maxReplicas is {spec.max_replicas}"
        case LimitReason.TOO_FEW_REPLICAS:
            words = f"minReplicas is {spec.min_replicas}"
        case LimitReason.SCALE_UP_LIMIT if behaviour is not None:
            words = _policies_text("scaleUp", behaviour.scale_up)
        case LimitReason.SCALE_UP_LIMIT:
            words = "without behavior one sync doubles the size at most, or makes it 4"
        case LimitReason.SCALE_DOWN_LIMIT if behaviour is not None:
            words = _policies_text("scaleDown", behaviour.scale_down)
        case _:
            return f"the limit is {decision.reason}"
    return f"{words} ({decision.reason})"


def _policies_text(key: str, rules: ScalingRules) -> str:
    if rules.select is SelectPolicy.DISABLED:
        return f"behavior.{key} has selectPolicy Disabled"
    return f"the policies of behavior.{key} allow no more now"
