"""The decision of one recommendation at one moment: a pure function of settings, inputs, memory and time.

The steps are, in this order: repair the memory, let the kind calculate a value, check that its inputs are fresh, apply
the brakes, apply `min` and `max`, and determine the outcome for each target. If there are several targets, each has a
decision of its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.service.runtime.logs import fields
from recommender.decisions.calculation import CalculationError, DecisionContext, InputMissingError
from recommender.decisions.constraints.brakes import HOUR_SECONDS, apply_brakes
from recommender.decisions.limits import within
from recommender.decisions.memory import LATEST_TIME, LastValue, Memory
from recommender.decisions.record import Record, Status, Step
from recommender.decisions.target_outcomes import absence_of, outcomes_of
from recommender.decisions.targets.doubted_first_lists import with_believed_owners, with_known_owners
from recommender.decisions.targets.owners import with_owned_targets
from recommender.decisions.targets.several_targets import own_inputs, own_memory, own_policy, whole_memory, whole_record
from recommender.decisions.targets.target_situation import is_absent, situation_of
from recommender.decisions.texts.record_texts import message_with_notes, some
from recommender.decisions.texts.times import check_age, is_fresh, rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.decisions.calculation import Calculate, Calculation, SettledValue
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.policy_settings import RecommendationPolicy

T = TypeVar("T")

_log = logging.getLogger(__name__)

LARGEST_REPLICAS = 2**31 - 1
"""The largest number that a scale subresource can hold."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A record, the memory for the next decision, and the writes."""

    record: Record
    memory: Memory
    writes: object = None
    """The writes other than the sizes of targets, which are in the record; the writers of the kind know their form."""
    decide_again: float | None = None
    """The time, in Unix seconds, from which another value is possible even if no input changes; None if
    that is not before the next poll."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions of a poll for one recommendation."""

    name: str
    decisions: tuple[Decision, ...]
    """One decision; with `forEach`, one for each target, and one more if there is a problem with all of them."""
    memory: Memory | None
    """The memory of the whole recommendation; None if it cannot be read."""


def supervise(policy: RecommendationPolicy, work: Callable[[], T], failed: Callable[[str], T]) -> T:
    """Return the result of `work`; if it raises an exception, log it and return `failed(message)` instead."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the supervisor: one recommendation or target must not stop the others
        about = {"recommendation": policy.name} | ({"target": str(policy.each)} if policy.each else {})
        _log.exception("a decision failed: internal error", extra=fields(**about))
        return failed(f"the decision failed with an internal error ({type(error).__name__}: {error})")


def failed_decision(policy: RecommendationPolicy, memory: Memory, now: float, inputs: Inputs, message: str) -> Decision:
    """Return a decision without a value, which leaves the memory as it is."""
    targets = outcomes_of(policy, None, inputs, now)
    record = Record(policy.name, policy.type, now, Status.ERROR, message, targets=targets, each=policy.each)
    return Decision(record, memory)


def decide(policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float) -> Decision:
    """Return the decision at `now`, in Unix seconds."""
    decision = _whole(policy, calculate, inputs, memory, now)
    absences = [absence_of(target) for target in policy.targets if is_absent(target, policy, inputs, now)]
    if not absences:
        return decision
    message = message_with_notes((decision.record.message,), some(absences))
    return replace(decision, record=replace(decision.record, message=message))


def _whole(policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float) -> Decision:
    """Return the joint decision for all targets, without the notes about targets that do not exist."""
    if not policy.targets:
        return _one(policy, calculate, inputs, memory, now)
    decisions = {
        target: _one(
            own_policy(policy, target),
            calculate,
            own_inputs(inputs, target),
            own_memory(memory, policy, target),
            now,
        )
        for target in policy.targets
    }
    if len(decisions) == 1:
        return next(iter(decisions.values()))
    by_target = {target: decision.memory for target, decision in decisions.items()}
    again = [each.decide_again for each in decisions.values() if each.decide_again is not None]
    record = whole_record([each.record for each in decisions.values()])
    return Decision(record, whole_memory(by_target), decide_again=min(again, default=None))


def _one(policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float) -> Decision:
    """Return the decision of a recommendation with at most one target. An exception becomes a failed decision."""
    return supervise(
        policy,
        partial(_decide_one, policy, calculate, inputs, memory, now),
        partial(failed_decision, policy, memory, now, inputs),
    )


def _decide_one(
    policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
) -> Decision:
    inputs = with_believed_owners(policy, inputs, memory.known)
    decision = _new_decision(policy, calculate, inputs, memory, now)
    known = with_known_owners(policy, inputs, decision.memory.known)
    if known is decision.memory.known:
        return decision
    return replace(decision, memory=replace(decision.memory, known=known))


def _new_decision(
    policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
) -> Decision:
    # Without a value, this is also the next memory: a clock that is wrong for a moment must not lift a brake for good.
    # All facts are too old while it is ahead.
    before = _without_impossible_value(memory)
    memory = _without_wrong_times(before, now)
    try:
        calculation = calculate(with_owned_targets(policy, inputs, now), memory, now)
        _check(calculation, policy, now)
    except InputMissingError as error:
        return Decision(_without_inputs(policy, inputs, memory, now, error), before)
    except CalculationError as error:
        return failed_decision(policy, before, now, inputs, str(error))
    if calculation.begins_at is not None and memory.last is not None:
        memory = replace(memory, last=replace(memory.last, replicas=calculation.begins_at))
    situation = situation_of(policy, inputs, memory, now)
    if calculation.changes is not None:
        situation = replace(situation, changes=calculation.changes)
    value = apply_brakes(calculation.value, policy.brakes, situation)
    settled = value.settled(DecisionContext(policy, calculation, inputs, memory, situation))
    record = Record(
        policy.name,
        policy.type,
        now,
        Status.HELD if settled.is_held else Status.OK,
        message_with_notes(settled.reasons, settled.notes),
        replicas=settled.replicas,
        inputs=settled.inputs,
        steps=settled.steps,
        binding=settled.binding,
        targets=outcomes_of(policy, settled.replicas, inputs, now) if settled.outcomes is None else settled.outcomes,
        details=settled.details,
        each=policy.each,
    )
    if not record.has_value:
        record = replace(record, binding=None)
    return Decision(record, _next_memory(calculation, settled, memory, now), settled.writes, settled.decide_again)


def _check(calculation: Calculation, policy: RecommendationPolicy, now: float) -> None:
    """Raise InputMissingError for inputs that are too old, and CalculationError for a value that cannot be a size."""
    problem = check_age("an input is", calculation.confirmed, now, policy.stale_after_seconds)
    if problem:
        raise InputMissingError(problem, calculation.limits)
    if calculation.replicas is not None and not 0 <= calculation.replicas <= LARGEST_REPLICAS:
        raise CalculationError(
            f"{calculation.replicas} is not a number of replicas: correct the parameters, or the query"
        )


def _without_impossible_value(memory: Memory) -> Memory:
    """Return the memory; a last value that no decision can have produced, as after an edit by hand, is forgotten."""
    return memory if memory.last is None or _is_possible(memory.last) else replace(memory, last=None)


def _without_wrong_times(memory: Memory, now: float) -> Memory:
    """Return the memory with only the changes of the last hour; changes in the future count as made `now`."""
    changes = tuple(min(time, now) for time in memory.changes if time > now - HOUR_SECONDS)
    own = None if memory.own is None else memory.own.repaired(now)
    is_same = own is memory.own and changes == memory.changes
    return memory if is_same else replace(memory, changes=changes, own=own)


def _is_possible(last: LastValue) -> bool:
    times = (last.decided, last.confirmed)
    return 0 <= (last.replicas or 0) <= LARGEST_REPLICAS and all(0 <= time <= LATEST_TIME for time in times)


def _without_inputs(
    policy: RecommendationPolicy, inputs: Inputs, memory: Memory, now: float, error: InputMissingError
) -> Record:
    """Return a record of the last value, within its bounds and with its old time, if the value is recent enough.

    Otherwise, return a record without a value.
    """
    last, kept, reason = memory.last, error.kept, str(error)
    if last is None or (last.replicas is None and kept is None):
        message, time = reason, now
    elif is_fresh(last.confirmed, now, policy.stale_after_seconds):
        return _held_record(policy, inputs, last, now, error)
    else:
        was = kept.decided if kept is not None else f"the last value was {last.replicas}"
        message, time = f"{reason}; {was} at {rfc3339(last.decided)}", last.decided
    status = Status.ERROR if error.is_refused else Status.STALE
    targets = outcomes_of(policy, None, inputs, now)
    return Record(policy.name, policy.type, time, status, message, targets=targets, each=policy.each)


def _held_record(
    policy: RecommendationPolicy, inputs: Inputs, last: LastValue, now: float, error: InputMissingError
) -> Record:
    """Return the record of a last value that is kept while inputs are missing."""
    kept, replicas = error.kept, last.replicas
    steps: tuple[Step, ...] = ()
    if replicas is not None:
        replicas, steps = within(policy.limits if error.limits is None else error.limits, replicas)
    sentence, ending = (kept.sentence, kept.ending) if kept is not None else (f"{replicas} is kept", "")
    until = rfc3339(last.confirmed + policy.stale_after_seconds)
    return Record(
        policy.name,
        policy.type,
        last.decided,
        Status.HELD,
        f"{error}; {sentence} until {until}{ending}",
        replicas=replicas,
        steps=steps,
        binding=steps[-1].step if steps else None,
        targets=outcomes_of(policy, replicas, inputs, now, fresh=False),
        details=None if kept is None else kept.details,
        each=policy.each,
    )


def _next_memory(calculation: Calculation, settled: SettledValue, memory: Memory, now: float) -> Memory:
    """Return the memory for the next decision."""
    known = memory.known if calculation.known is None else calculation.known
    if not settled.is_remembered:
        return replace(memory, own=settled.own, known=known)
    changes = memory.changes if settled.changes is None else settled.changes
    changes = (*changes, now) if settled.has_changed else changes
    last = LastValue(settled.replicas, decided=now, confirmed=min(calculation.confirmed, now))
    return replace(memory, last=last, changes=changes, own=settled.own, known=known)
