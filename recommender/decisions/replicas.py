"""One number of replicas as a value that the brakes act on. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from recommender.decisions.calculation import DecisionContext, SettledValue
from recommender.decisions.constraints.brakes import MAX_CHANGES, MAX_STEP, ROLLOUT, ChangeStop, step_limit
from recommender.decisions.constraints.tolerance import tolerance_step
from recommender.decisions.limits import within
from recommender.decisions.record import Step
from recommender.decisions.texts.record_texts import some

if TYPE_CHECKING:
    from recommender.decisions.policy_settings import MaxStep
    from recommender.decisions.targets.target_situation import Situation


@dataclass(frozen=True, slots=True)
class Replicas:
    """A number on its way through the brakes, with a step for each brake that changed it."""

    replicas: int | None
    """The number; None if it must not change but the former number is unknown."""
    steps: tuple[Step, ...] = ()
    holds: tuple[str, ...] = ()
    """Clauses that state what keeps the value and until when."""

    def kept_text(self, situation: Situation) -> str:
        """Return a clause such as `3 is kept`."""
        return f"{situation.kept_value} is kept"

    def above_rollouts(self, situation: Situation) -> Replicas:
        """Keep the value from falling below the size of a target while that target is being rolled out."""
        under_way = [target for target in situation.targets if target.state.rollout]
        largest = max(under_way, key=lambda target: target.state.replicas, default=None)
        if largest is None or self.replicas is None or self.replicas >= largest.state.replicas:
            return self
        detail = f"not below {largest.state.replicas} until the rollout of {largest.reference} is complete"
        return self._with_step(ROLLOUT, largest.state.replicas, detail, detail)

    def within_step(self, step: MaxStep, situation: Situation) -> Replicas:
        """Limit the difference from the current size, or from the last value if no current size is known."""
        current, value = situation.current, self.replicas
        base = current.state.replicas if current else situation.last_replicas
        if base is None or value is None or abs(value - base) <= (limit := step_limit(step, base)):
            return self
        limited = base + limit if value > base else base - limit
        where = f"the current size of {current.reference}" if current else "the last value"
        return self._with_step(MAX_STEP, limited, f"{base} {'+' if value > base else '-'} {limit}, from {where}")

    def would_change(self, situation: Situation) -> bool:
        """Return whether there is a last value from which this value differs."""
        return situation.last_replicas is not None and self.replicas != situation.last_replicas

    def stopped(self, stop: ChangeStop, situation: Situation) -> Replicas:
        """Keep the last value, or the current size if there is no last value, in the directions that are stopped."""
        held, value = situation.kept_value, self.replicas
        if value is None:
            return self
        if held is None:
            hold = f"{stop.sentence}: neither a last value nor the current size is known"
            return replace(self, replicas=None, holds=(*self.holds, hold))
        kept = min(value, held) if stop.up else value
        kept = max(kept, held) if stop.down else kept
        if stop.name == MAX_CHANGES:
            return self._with_step(stop.name, kept, stop.sentence, f"{stop.sentence}, until {stop.until}")
        if kept == value:
            holds = (*self.holds, f"{stop.sentence}: {held} is kept") if stop.up and stop.down else self.holds
            return replace(self, holds=holds)
        hold = f"{stop.sentence}: {held} is kept, and not changed to {value}"
        return self._with_step(stop.name, kept, stop.sentence, hold)

    def settled(self, context: DecisionContext) -> SettledValue:
        """Return the value within its bounds, whatever the brakes did, and name an HPA that will ignore the value."""
        calculation, situation = context.calculation, context.situation
        policy, value = context.policy, self.replicas
        steps, holds = self.steps, self.holds
        binding = steps[-1].step if steps else calculation.binding
        if value is not None:
            value, bounds = within(policy.limits if calculation.limits is None else calculation.limits, value)
            if holds:
                # Otherwise, a reader would wonder why the size is not the held one.
                holds += tuple(f"{step.step}: {step.detail}" for step in bounds)
            steps += bounds
            binding = steps[-1].step if steps else calculation.binding
            ignored = tolerance_step(policy, situation, context.inputs, value)
            if ignored is not None:
                steps, binding = (*steps, ignored), ignored.step
        steps = (*calculation.steps, *steps)
        reasons = tuple(filter(None, (calculation.hold, *holds, calculation.note, policy.note)))
        if not reasons:
            reasons = tuple(f"{step.step}: {step.detail}" for step in steps if step.step == binding)[-1:]
        return SettledValue(
            replicas=value,
            is_remembered=value is not None,
            has_changed=situation.last_replicas not in {None, value},
            is_held=bool(holds or calculation.hold),
            own=calculation.own,
            inputs=calculation.inputs,
            steps=steps,
            binding=binding,
            reasons=reasons,
            notes=some(context.inputs.cluster.problems),
            details=calculation.details,
        )

    def _with_step(self, name: str, value: int, detail: str, hold: str = "") -> Replicas:
        holds = (*self.holds, hold) if hold else self.holds
        steps = self.steps if value == self.replicas else (*self.steps, Step(name, value, detail))
        return Replicas(value, steps, holds)


NO_VALUE: Final = Replicas(None)
"""The value of recommendations that only size containers."""
