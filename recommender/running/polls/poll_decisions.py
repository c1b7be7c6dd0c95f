"""All decisions of one poll: each recommendation by itself, and each target of a recommendation with `forEach`.

An error in one decision becomes its record, and does not affect the other decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.objects.grouping import group_values
from recommender.configuration.configured_targets import identity_of
from recommender.decisions.expansion import Expansion, ListedTargets, listed_targets
from recommender.decisions.inputs import Inputs
from recommender.decisions.loop import Decided, decide, failed_decision, supervise
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.targets.scaled_objects import with_scaled_objects
from recommender.decisions.targets.vertical_autoscalers import known_autoscalers
from recommender.kinds.table import kind_of
from recommender.running.memory.store_protocol import MemoryUnavailableError
from recommender.running.sizes.background_decisions import ImmediateSizing, SlowDecisions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.time.clock import Clock
    from recommender.decisions.record import TargetReference
    from recommender.kinds.kind import Recommendation
    from recommender.running.inputs.poll_plan import PollPlan
    from recommender.running.memory.memories import Memories

MEMORY_SECONDS: Final = 3.0
"""Time after which a poll begins no further reads of memories; one read takes at most 5 s."""
_NOT_ASKED: Final = Unknown("its load has not been queried yet")


@dataclass(slots=True)
class PollDecisions:
    """Makes the decisions of a poll. Not thread-safe."""

    memories: Memories
    clock: Clock
    slow: SlowDecisions = field(default_factory=ImmediateSizing)
    """Makes the decisions of slow kinds, by default at once in the caller's thread."""
    measure: Callable[[str, float], None] = lambda _name, _seconds: None
    """Called with the seconds that the decisions of each recommendation whose kind is not slow took."""
    _expansions: dict[str, Expansion] = field(default_factory=dict)

    def decide(self, plan: PollPlan, inputs: Inputs, now: float) -> list[Decided]:
        """Return the decisions in the order of the configuration."""
        inputs = with_scaled_objects(replace(inputs, vertical_autoscalers=known_autoscalers(inputs.cluster)))
        policies = {each.policy.name: each.policy for each in plan.configuration.recommendations}
        memories = self._load_memories(tuple(policies), plan)
        listed = {
            name: listed_targets(_known_targets(inputs, name), memory.by_target, each.max_targets, now)
            for name, each in plan.for_each.items()
            if isinstance(memory := memories[name], Memory)
        }
        self._expansions = {name: self._expansion(plan, policies[name]) for name in listed}
        rivals = _rivals(policies, listed)
        _add_group_sizers(rivals, plan, listed, inputs.cluster)
        found: dict[str, Decided] = {}
        self.slow.keep(plan.slow)
        # Slow decisions may depend on the others of this poll, so they are made last.
        for each in sorted(plan.configuration.recommendations, key=lambda each: each.policy.name in plan.slow):
            name, policy = each.policy.name, each.policy
            memory = memories[name]
            if isinstance(memory, MemoryUnavailableError):
                failed = failed_decision(policy, Memory(), now, Inputs(), str(memory))
                found[name] = Decided(name, (failed,), None)
                continue
            own = inputs.of_backend(plan.backends.get(name, ""))
            if name in plan.slow:
                decided = {one: tuple(each.record for each in done.decisions) for one, done in found.items()}
                work = partial(self._late, plan, each, replace(own, decided=decided), memory, now)
            else:
                others = rivals.get(name, {})
                work = partial(self._one, plan, policy, own, memory, now, listed.get(name), others)
            found[name] = supervise(policy, work, partial(_decision_after_fault, policy, memory, now))
        return [found[name] for name in policies]

    def forget(self) -> None:
        """Drop everything that is under way: another process leads."""
        self.slow.forget()

    def _load_memories(self, names: tuple[str, ...], plan: PollPlan) -> dict[str, Memory | MemoryUnavailableError]:
        found: dict[str, Memory | MemoryUnavailableError] = {}
        shards = {name: each.shards for name, each in plan.for_each.items()}
        for name in self.memories.begin(names, MEMORY_SECONDS, shards):
            try:
                found[name] = self.memories.load(name)
            except MemoryUnavailableError as error:
                found[name] = error
        return found

    def _expansion(self, plan: PollPlan, policy: RecommendationPolicy) -> Expansion:
        each, before = plan.for_each[policy.name], self._expansions.get(policy.name)
        is_same = before is not None and before.policy is policy and before.each is each
        return before if before is not None and is_same else Expansion(policy, each)

    def _late(
        self, plan: PollPlan, recommendation: Recommendation, inputs: Inputs, memory: Memory, now: float
    ) -> Decided:
        """Return the latest decision of a slow kind. Its own thread measures how long it takes."""
        name = recommendation.policy.name
        decision = self.slow.decide(recommendation, plan.calculations[name](None), inputs, memory, now)
        return Decided(name, (decision,), decision.memory)

    def _one(
        self,
        plan: PollPlan,
        policy: RecommendationPolicy,
        inputs: Inputs,
        memory: Memory,
        now: float,
        listed: ListedTargets | None,
        rivals: Mapping[TargetReference, tuple[str, ...]],
    ) -> Decided:
        """Return the decision of one recommendation, or those of its targets."""
        started = self.clock.monotonic()
        try:
            if listed is not None:
                return self._expansions[policy.name].decide(listed, inputs, memory, now, rivals)
            policy = replace(policy, rivals={**policy.rivals, **rivals}) if rivals else policy
            decision = decide(policy, plan.calculations[policy.name](None), inputs, memory, now)
            return Decided(policy.name, (decision,), decision.memory)
        finally:
            self.measure(policy.name, self.clock.monotonic() - started)


def _known_targets(
    inputs: Inputs, name: str
) -> Mapping[TargetReference | None, object] | Mapping[TargetReference, object] | Unknown:
    """Return the known loads or usage of a recommendation's targets."""
    return inputs.usage[name] if name in inputs.usage else inputs.loads.get(name, _NOT_ASKED)


def _decision_after_fault(policy: RecommendationPolicy, memory: Memory, now: float, message: str) -> Decided:
    return Decided(policy.name, (failed_decision(policy, memory, now, Inputs(), message),), memory)


def _rivals(
    policies: Mapping[str, RecommendationPolicy], listed: Mapping[str, ListedTargets]
) -> dict[str, dict[TargetReference, tuple[str, ...]]]:
    """Return, by recommendation and target, which other recommendations keep it from writing to the target.

    Rivals that scale targets listed in the configuration are in `RecommendationPolicy.rivals`. This function adds the
    rivals for targets of `forEach`, and the rivals that resize.
    """
    found: dict[str, dict[TargetReference, tuple[str, ...]]] = {}
    for output in (Output.SCALE, Output.RESIZE):
        writing = [policy for policy in policies.values() if output in policy.outputs]
        if output is Output.RESIZE or any(policy.name in listed for policy in writing):
            _add_rivals(found, writing, listed)
    return found


def _add_rivals(
    found: dict[str, dict[TargetReference, tuple[str, ...]]],
    writing: list[RecommendationPolicy],
    listed: Mapping[str, ListedTargets],
) -> None:
    policies = {policy.name: policy for policy in writing}
    claims = group_values(
        (identity_of(target), (policy.name, target)) for policy in writing for target in _targets(policy, listed)
    )
    for claimed in claims.values():
        names = tuple(dict.fromkeys(name for name, _ in claimed))
        for name, target in claimed if len(names) > 1 else ():
            others = tuple(other for other in names if other != name and _is_rival(other, policies, names, name))
            if others:
                rivals = found.setdefault(name, {})
                rivals[target] = tuple(dict.fromkeys((*rivals.get(target, ()), *others)))


def _add_group_sizers(
    found: dict[str, dict[TargetReference, tuple[str, ...]]],
    plan: PollPlan,
    listed: Mapping[str, ListedTargets],
    cluster: ClusterState,
) -> None:
    """Add, as a rival for each target that is a node group, the recommendation that writes its size."""
    writing = [each for each in plan.configuration.recommendations if Output.SCALE in each.policy.outputs]
    sizers = [each for each in writing if not kind_of(each.policy.type).has_targets]
    for policy in (each.policy for each in writing if sizers):
        for target in _targets(policy, listed):
            for each in sizers:
                if kind_of(each.policy.type).sizes(each.subject, target, cluster):
                    rivals = found.setdefault(policy.name, {})
                    rivals[target] = (*rivals.get(target, ()), each.policy.name)


def _is_rival(other: str, policies: Mapping[str, RecommendationPolicy], in_order: tuple[str, ...], name: str) -> bool:
    """Return whether `other` keeps `name` from a target: the file has priority, then the older object."""
    if not policies[name].namespace:
        return not policies[other].namespace
    return in_order.index(other) < in_order.index(name)


def _targets(policy: RecommendationPolicy, listed: Mapping[str, ListedTargets]) -> Iterable[TargetReference]:
    # An entry that lists its targets counts whether their usage is already known or not.
    found = listed[policy.name].reasons if policy.name in listed else ()
    return dict.fromkeys((*policy.targets, *found))
