"""Turns one recommendation with `forEach` into a decision for each of its targets.

Each series of the load stands for one target. A target whose series has ended is held and then stale, as with any
missing input. After an hour it is no longer listed, and after a day its memory is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import agreeing
from recommender.decisions.calculation import Calculate, Calculation, InputMissingError
from recommender.decisions.loop import Decided, Decision, decide
from recommender.decisions.memory import Memory
from recommender.decisions.record import Record, Status, TargetReference
from recommender.decisions.targets.fair_order import in_fair_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.policy_settings import RecommendationPolicy

LISTED_SECONDS: Final = 3600.0
"""How long a target without a series is still listed after its last confirmed value."""
REMEMBERED_SECONDS: Final = 86_400.0
_NOTHING: Final = Memory()

Rivals: TypeAlias = "Mapping[TargetReference, tuple[str, ...]]"


@dataclass(frozen=True, slots=True)
class EachTarget:
    """The settings for deciding a recommendation with `forEach`."""

    calculate: Callable[[TargetReference | None], Calculate]
    """Returns the calculation of one target."""
    max_targets: int = 10_000
    shards: int = 32
    """The number of ConfigMaps among which the memories of the targets are divided."""


@dataclass(frozen=True, slots=True)
class ListedTargets:
    """The targets of one poll."""

    reasons: Mapping[TargetReference, str]
    """The listed targets in order, each with the reason if its series has ended; empty if it has one, or if nothing is
    known about any series."""
    remembered: Mapping[TargetReference, Memory]
    """The memories of targets that are not listed but may come back."""
    problem: str = ""
    """The problem of the recommendation as a whole; empty if there is none."""
    is_error: bool = False
    """Whether somebody must change the configuration because of the problem."""


def listed_targets(
    loads: Mapping[TargetReference | None, object] | Mapping[TargetReference, object] | Unknown,
    by_target: Mapping[TargetReference, Memory],
    max_targets: int,
    now: float,
) -> ListedTargets:
    """Return which targets are decided at `now`, in Unix seconds.

    `loads` maps each target to its load or usage, or to `Unknown`; it is `Unknown` itself if nothing is known about
    any target. `by_target` holds the memories of earlier polls.
    """
    if isinstance(loads, Unknown):
        # While nothing is known about any target, the most recently confirmed one shows when the outage began.
        began = max((_confirmed_at(memory, now) for memory in by_target.values()), default=-math.inf)
        unknown = {
            target: ""
            for target, memory in _sort_targets(by_target)
            if began - _confirmed_at(memory, now) < LISTED_SECONDS
        }
        hidden = {target: memory for target, memory in by_target.items() if target not in unknown}
        problem = "" if unknown else loads.reason
        return ListedTargets(unknown, hidden, problem, is_error=loads.is_refused)
    series = _by_preference(loads, by_target)
    found = dict.fromkeys(series[:max_targets], "")
    ended = {target: memory for target, memory in _sort_targets(by_target) if target not in found}
    room = max(0, max_targets - len(found))
    since = {target: now - _confirmed_at(memory, now) for target, memory in ended.items()}
    newest = in_fair_order(sorted(ended, key=since.__getitem__))
    listed = [target for target in newest if since[target] < LISTED_SECONDS][:room]
    missing = dict.fromkeys(listed, "the query of its load has no series for it any more")
    kept = [target for target in newest if target not in missing and since[target] < REMEMBERED_SECONDS]
    remembered = {target: ended[target] for target in kept[:max_targets]}
    reasons = dict(sorted((found | missing).items(), key=lambda item: _place(item[0])))
    if len(series) > max_targets:
        number = len(series) - max_targets
        are = agreeing(number, "is", "are")
        left_out = f"{number} of {len(series)} targets {are} left out: forEach.max is {max_targets}"
        return ListedTargets(reasons, remembered, left_out, is_error=True)
    return ListedTargets(reasons, remembered, "" if reasons else "the query of the load has no series")


def _by_preference(
    loads: Mapping[TargetReference | None, object] | Mapping[TargetReference, object],
    by_target: Mapping[TargetReference, Memory],
) -> list[TargetReference]:
    """Return the targets in the order in which they are taken if there are too many of them.

    Those with a load come first, then those that are remembered: a new series does not displace a remembered target.
    The namespaces take turns, so that new series of one do not keep out those of another.
    """
    series = sorted((target for target in loads if target is not None), key=_place)
    groups = group_values(((isinstance(loads[target], Unknown), target not in by_target), target) for target in series)
    return [target for _, group in sorted(groups.items()) for target in in_fair_order(group)]


def _confirmed_at(memory: Memory, now: float) -> float:
    """Return when the last value was confirmed, at most `now`; minus infinity without a value.

    A time that is far in the future can only come from a wrong clock, and also counts as minus infinity. If a clock is
    set back by less than an hour, all targets are in the future by the same time, and none is forgotten because of it.
    """
    if memory.last is None or memory.last.confirmed > now + LISTED_SECONDS:
        return -math.inf
    return min(memory.last.confirmed, now)


def _place(target: TargetReference) -> tuple[str, str]:
    return target.namespace, target.name


def _sort_targets(by_target: Mapping[TargetReference, Memory]) -> list[tuple[TargetReference, Memory]]:
    return sorted(by_target.items(), key=lambda item: _place(item[0]))


@dataclass(slots=True)
class Expansion:
    """Decides the targets of one recommendation. Not thread-safe.

    The policy and the calculation of each target are kept from poll to poll.
    """

    policy: RecommendationPolicy
    each: EachTarget
    _parts: dict[TargetReference, tuple[RecommendationPolicy, Calculate]] = field(default_factory=dict)

    def decide(self, listed: ListedTargets, inputs: Inputs, memory: Memory, now: float, rivals: Rivals) -> Decided:
        """Return a decision for each target.

        A decision that fails becomes a record with an error, and does not affect the others.
        """
        self._parts = {target: self._parts.get(target) or self._part(target) for target in listed.reasons}
        decisions = tuple(
            self._decide_target(
                target,
                _failing_calculation(reason) if reason else None,
                inputs,
                memory.by_target.get(target, _NOTHING),
                now,
                rivals,
            )
            for target, reason in listed.reasons.items()
        )
        by_target = {
            target: decision.memory
            for target, decision in zip(listed.reasons, decisions, strict=True)
            if decision.memory != _NOTHING
        }
        whole = replace(memory, by_target={**listed.remembered, **by_target})
        if listed.problem:
            status = Status.ERROR if listed.is_error else Status.STALE
            problem = Record(self.policy.name, self.policy.type, now, status, listed.problem)
            decisions = (Decision(problem, _NOTHING), *decisions)
        return Decided(self.policy.name, decisions, whole)

    def _part(self, target: TargetReference) -> tuple[RecommendationPolicy, Calculate]:
        return replace(self.policy, targets=(target,), each=target), self.each.calculate(target)

    def _decide_target(
        self,
        target: TargetReference,
        missing: Calculate | None,
        inputs: Inputs,
        memory: Memory,
        now: float,
        rivals: Rivals,
    ) -> Decision:
        policy, calculate = self._parts[target]
        others = rivals.get(target)
        if others:
            policy = replace(policy, rivals={target: others})
        decision = decide(policy, missing or calculate, inputs, memory, now)
        if decision.memory.changes and policy.brakes.max_changes_per_hour is None:
            # Nothing reads the times of changes without that brake, and for thousands of targets they would be the
            # largest part to store.
            return replace(decision, memory=replace(decision.memory, changes=()))
        return decision


def _failing_calculation(reason: str) -> Calculate:
    def calculate(_inputs: Inputs, _memory: Memory, _now: float) -> Calculation:
        raise InputMissingError(reason)

    return calculate
