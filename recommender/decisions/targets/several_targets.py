"""One recommendation with several targets: the inputs of each decision, and their common record.

Each target is decided as if it were the only one, with its own size, brakes, pause, owner and memory. No decision sees
the state of another target, and so none can set the size of another target.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from recommender.decisions.memory import KindMemory, LastValue, Memory
from recommender.decisions.record import Record, Status, TargetOutcome, TargetReference
from recommender.decisions.summary import WORST_FIRST
from recommender.decisions.targets.doubted_first_lists import shared_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.policy_settings import RecommendationPolicy

_JOINT: Final = "; "


def own_policy(policy: RecommendationPolicy, target: TargetReference) -> RecommendationPolicy:
    """Return the policy with only this target."""
    return replace(policy, targets=(target,))


def own_inputs(inputs: Inputs, target: TargetReference) -> Inputs:
    """Return the inputs without the facts about other targets."""
    found = inputs.targets.get(target)
    return replace(inputs, targets={} if found is None else {target: found})


def own_memory(memory: Memory, policy: RecommendationPolicy, target: TargetReference) -> Memory:
    """Return the memory of a target.

    A memory that does not list targets belongs to this target only if it is the single target now. Otherwise, a target
    without a memory of its own gets only what all targets share: part of the memory of the kind, and the facts about
    the cluster.
    """
    known = memory.by_target.get(target)
    if known is not None:
        return known
    is_alone = len(policy.targets) == 1 and not memory.by_target
    return memory if is_alone else Memory(own=_own_shared(memory), known=shared_facts(memory.known))


def _own_shared(memory: Memory) -> KindMemory | None:
    return None if memory.own is None else memory.own.shared


def whole_memory(by_target: Mapping[TargetReference, Memory]) -> Memory:
    """Return the memory of the recommendation.

    Its last value is the largest value of the targets, with the earliest time at which one of them was confirmed.
    """
    lasts = [each.last for each in by_target.values() if each.last is not None]
    own = next((found for each in by_target.values() if (found := _own_shared(each)) is not None), None)
    known = shared_facts({what: number for each in by_target.values() for what, number in each.known.items()})
    if not lasts:
        return Memory(own=own, known=known, by_target=by_target)
    last = LastValue(
        max(each.replicas or 0 for each in lasts),
        decided=max(each.decided for each in lasts),
        confirmed=min(each.confirmed for each in lasts),
    )
    return Memory(last, own=own, known=known, by_target=by_target)


def whole_record(records: Sequence[Record]) -> Record:
    """Return the record of a recommendation, made from the records of its targets, each of which has one outcome.

    Value, steps and forecast come from the target with the largest size. If the reason for another target differs, it
    is part of the outcome of that target.
    """
    valued = [record for record in records if record.replicas is not None]
    if not valued:
        worst = min(records, key=lambda record: WORST_FIRST.index(record.status))
        return replace(worst, targets=_outcomes(records, worst), message=_message(worst, records))
    largest = max(valued, key=lambda record: record.replicas or 0)
    return replace(
        largest,
        time=min(record.time for record in valued),
        status=min((record.status for record in valued), key=WORST_FIRST.index),
        message=_message(largest, records),
        targets=_outcomes(records, largest),
    )


def _outcomes(records: Iterable[Record], shown: Record) -> tuple[TargetOutcome, ...]:
    found: list[TargetOutcome] = []
    for record in records:
        differs = record.message != shown.message
        found += [
            replace(each, message=_join_texts((each.message, record.message)) if differs else each.message)
            for each in record.targets
        ]
    return tuple(found)


def _message(shown: Record, records: Iterable[Record]) -> str:
    """Return the message of the record that is shown, followed by those of targets that are held or have no value."""
    held = [record.message for record in records if record.status is not Status.OK]
    return _join_texts((shown.message, *held))


def _join_texts(parts: Iterable[str]) -> str:
    return _JOINT.join(dict.fromkeys(part for part in parts if part))
