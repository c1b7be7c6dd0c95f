"""The decision of one recommendation at one moment: a pure function of settings, inputs, memory and time.

Order: calculation, constraints and brakes, the tolerance of the HPA that follows, then what it means for each target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.constraints import CONSTRAINTS, HOUR_SECONDS
from recommender.decisions.failures import failed_record
from recommender.decisions.memory import LastValue
from recommender.decisions.outcomes import outcomes_of
from recommender.decisions.record import Record, Status, Step
from recommender.decisions.situation import situation_of
from recommender.decisions.times import age_seconds, is_fresh, rfc3339
from recommender.decisions.tolerance import tolerated

if TYPE_CHECKING:
    from recommender.decisions.calculation import Calculate, Calculation
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.settings import RecommendationPolicy
    from recommender.decisions.situation import Situation

LARGEST_REPLICAS = 2**31 - 1
"""What a scale subresource can hold."""
LATEST_TIME = 253_402_300_799.0
"""The end of the year 9999, the last that RFC 3339 can state."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A record, and what the next decision must know."""

    record: Record
    memory: Memory


def decide(policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float) -> Decision:
    """Return the decision at `now`, in seconds since the Unix epoch. Never raises because of a calculation."""
    memory = _usable(memory, now)
    try:
        calculation = calculate(inputs, memory, now)
        _check(calculation, policy, now)
    except InputMissingError as error:
        return Decision(_without_inputs(policy, inputs, memory, now, str(error)), memory)
    except CalculationError as error:
        return Decision(failed_record(policy, now, str(error), inputs), memory)
    except Exception as error:  # noqa: BLE001 - one recommendation that fails must leave the others alone
        message = f"the calculation failed by a fault of the program: {type(error).__name__}: {error}"
        return Decision(failed_record(policy, now, message, inputs), memory)
    if calculation.replicas is None:
        return Decision(_sizes(policy, calculation, inputs, now), calculation.memory)
    return _constrained(policy, calculation, calculation.replicas, inputs, memory, now)


def _check(calculation: Calculation, policy: RecommendationPolicy, now: float) -> None:
    """Raise InputMissingError for inputs that are too old, and CalculationError for a value that cannot be a size."""
    age = age_seconds(calculation.confirmed, now)
    if age == float("inf"):
        raise InputMissingError("an input has a time in the future, so its age is unknown")
    if age > policy.stale_after_seconds:
        raise InputMissingError(f"an input is {age:.0f} s old, and {policy.stale_after_seconds:g} s are allowed")
    if calculation.replicas is not None and not 0 <= calculation.replicas <= LARGEST_REPLICAS:
        raise CalculationError(f"{calculation.replicas} is not a number of replicas: correct the parameters")


def _usable(memory: Memory, now: float) -> Memory:
    """Return the memory with the changes of the last hour; one from the future counts as made now.

    A last value that no decision can have left, such as one that somebody has edited by hand, is forgotten.
    """
    changes = tuple(min(time, now) for time in memory.changes if time > now - HOUR_SECONDS)
    last = memory.last if memory.last is None or _is_possible(memory.last) else None
    is_same = last is memory.last and changes == memory.changes
    return memory if is_same else replace(memory, last=last, changes=changes)


def _is_possible(last: LastValue) -> bool:
    times = (last.decided, last.confirmed)
    return 0 <= last.replicas <= LARGEST_REPLICAS and all(0 <= time <= LATEST_TIME for time in times)


def _without_inputs(policy: RecommendationPolicy, inputs: Inputs, memory: Memory, now: float, reason: str) -> Record:
    """Return the last value with its old time as long as it is recent enough, then no value."""
    last = memory.last
    if last is not None and is_fresh(last.confirmed, now, policy.stale_after_seconds):
        until = rfc3339(last.confirmed + policy.stale_after_seconds)
        targets = outcomes_of(policy, last.replicas, inputs, now, fresh=False)
        message = f"{reason}; {last.replicas} is kept until {until}"
        return Record(
            policy.name,
            policy.type,
            last.decided,
            Status.HELD,
            message,
            replicas=last.replicas,
            targets=targets,
            each=policy.each,
        )
    known = "" if last is None else f"; the last value was {last.replicas} at {rfc3339(last.decided)}"
    time = now if last is None else last.decided
    targets = outcomes_of(policy, None, inputs, now)
    return Record(policy.name, policy.type, time, Status.STALE, f"{reason}{known}", targets=targets, each=policy.each)


def _sizes(policy: RecommendationPolicy, calculation: Calculation, inputs: Inputs, now: float) -> Record:
    """Return the record of a recommendation that only sizes containers."""
    return Record(
        policy.name,
        policy.type,
        now,
        Status.OK,
        _message((calculation.note, policy.note, *_omitted(inputs)), calculation.steps, calculation.binding),
        resources=calculation.resources,
        inputs=calculation.inputs,
        steps=calculation.steps,
        binding=calculation.binding,
        targets=outcomes_of(policy, None, inputs, now),
        each=policy.each,
    )


@dataclass(frozen=True, slots=True)
class _Limited:
    """A value after the constraints, with the steps of those that changed it."""

    value: int | None
    steps: tuple[Step, ...]
    holds: tuple[str, ...]


def _limited(policy: RecommendationPolicy, situation: Situation, value: int) -> _Limited:
    steps: list[Step] = []
    holds: list[str] = []
    for name, constraint in CONSTRAINTS:
        constrained = constraint(policy.brakes, situation, value)
        if constrained.hold:
            holds.append(constrained.hold)
        if constrained.value is None:
            return _Limited(None, tuple(steps), tuple(holds))
        if constrained.value != value:
            steps.append(Step(name, constrained.value, constrained.detail))
        value = constrained.value
    return _Limited(value, tuple(steps), tuple(holds))


def _constrained(
    policy: RecommendationPolicy, calculation: Calculation, raw: int, inputs: Inputs, memory: Memory, now: float
) -> Decision:
    situation = situation_of(policy, inputs, memory, now)
    limited = _limited(policy, situation, raw)
    steps = (*calculation.steps, *limited.steps)
    binding = limited.steps[-1].step if limited.steps else calculation.binding
    ignored = None if limited.value is None else tolerated(policy, situation, inputs, limited.value)
    if ignored is not None:
        steps, binding = (*steps, ignored), ignored.step
    record = Record(
        policy.name,
        policy.type,
        now,
        Status.HELD if limited.holds or calculation.hold else Status.OK,
        _message((calculation.hold, *limited.holds, calculation.note, policy.note, *_omitted(inputs)), steps, binding),
        replicas=limited.value,
        resources=calculation.resources,
        inputs=calculation.inputs,
        steps=steps,
        binding=binding,
        targets=outcomes_of(policy, limited.value, inputs, now),
        prediction=calculation.prediction,
        each=policy.each,
    )
    return Decision(record, _remembered(calculation, limited.value, memory, now))


def _omitted(inputs: Inputs) -> tuple[str, ...]:
    """Return the first object that is not part of the inputs, and how many others there are."""
    problems = inputs.cluster.problems
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return (f"{problems[0]}{more}",) if problems else ()


def _message(notes: tuple[str, ...], steps: tuple[Step, ...], binding: str | None) -> str:
    """Return what keeps the value and what the user should know; else the step that determines the value."""
    notes = tuple(note for note in notes if note)
    if notes:
        return "; ".join(notes)
    return next((f"{step.step}: {step.detail}" for step in reversed(steps) if step.step == binding), "")


def _remembered(calculation: Calculation, value: int | None, memory: Memory, now: float) -> Memory:
    """Return the memory for the next decision."""
    if value is None:
        return replace(calculation.memory, last=memory.last, changes=memory.changes)
    changed = memory.last is not None and memory.last.replicas != value
    changes = (*memory.changes, now) if changed else memory.changes
    last = LastValue(value, decided=now, confirmed=min(calculation.confirmed, now))
    return replace(calculation.memory, last=last, changes=changes)
