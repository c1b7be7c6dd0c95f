"""All decisions of one poll: each recommendation by itself, and each target of a recommendation with `forEach`.

What one of them raises becomes its own record and leaves the others alone.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from adapter.cluster.state import Unknown
from adapter.service.runtime.logs import fields
from recommender.cluster_size.future.forecasts import PredictedReplicas
from recommender.configuration.merging import identity_of
from recommender.decisions.failures import failed_record
from recommender.decisions.loop import Decision, decide
from recommender.decisions.memory import Memory
from recommender.decisions.settings import Output
from recommender.running.expansion import Expansion, ListedTargets, listed_targets
from recommender.running.memory.store import MemoryUnavailableError
from recommender.running.sizing.background import SizesAtOnce
from recommender.running.sizing.decide import SizeInputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.timing.clock import Clock
    from recommender.cluster_size.model.settings import ClusterSizeSettings
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import TargetReference
    from recommender.decisions.settings import RecommendationPolicy
    from recommender.running.memory.memories import Memories
    from recommender.running.plans import PollPlan
    from recommender.running.sizing.background import SizeDecisions

_log = logging.getLogger(__name__)

MEMORY_SECONDS: Final = 3.0
"""After which a poll begins to read no further memory; one read takes 5 s at most."""
_NOT_ASKED: Final = Unknown("its load has not been asked for yet")


class DecisionTelemetry(Protocol):
    """Measures decisions."""

    def decided(self, recommendation: str, seconds: float) -> None:
        """Record how long the decisions of a recommendation took."""
        ...


@dataclass(frozen=True, slots=True)
class Decided:
    """What a poll has decided for one recommendation."""

    name: str
    decisions: tuple[Decision, ...]
    """One; with `forEach` one for each target, and one more if something is wrong with all of them."""
    memory: Memory | None
    """Of the recommendation as a whole; None if it cannot be read."""


class PollDecisions:
    """Makes the decisions of a poll. For one thread."""

    def __init__(
        self, memories: Memories, telemetry: DecisionTelemetry, clock: Clock, sizes: SizeDecisions | None = None
    ) -> None:
        """`sizes` makes the decisions of cluster sizes; without it they are made at once, without waiting."""
        self._memories = memories
        self._sizes = sizes or SizesAtOnce()
        self._telemetry = telemetry
        self._clock = clock
        self._expansions: dict[str, Expansion] = {}

    def decided(self, plan: PollPlan, inputs: Inputs, now: float) -> list[Decided]:
        """Return the decisions in the order of the configuration."""
        policies = {each.policy.name: each.policy for each in plan.configuration.recommendations}
        memories = self._loaded(tuple(policies), plan)
        listed = {
            name: listed_targets(inputs.loads.get(name, _NOT_ASKED), memory.by_target, each.max_targets, now)
            for name, each in plan.for_each.items()
            if isinstance(memory := memories[name], Memory)
        }
        self._expansions = {name: self._expansion(plan, policies[name]) for name in listed}
        rivals = _rivals(policies, listed)
        found = {
            name: self._one(plan, policy, inputs, memories[name], now, listed.get(name), rivals.get(name, {}))
            for name, policy in policies.items()
            if name not in plan.sizes
        }
        # Sizes follow forecasts, so they are decided last.
        for name, settings in plan.sizes.items():
            size_inputs = SizeInputs(inputs, predictions_of(settings, found))
            found[name] = self._size(policies[name], settings, size_inputs, memories[name], now)
        return [found[name] for name in policies]

    def forget(self) -> None:
        """Drop what is under way: another process leads."""
        self._sizes.forget()

    def _loaded(self, names: tuple[str, ...], plan: PollPlan) -> dict[str, Memory | MemoryUnavailableError]:
        found: dict[str, Memory | MemoryUnavailableError] = {}
        shards = {name: each.most_shards for name, each in plan.for_each.items()}
        for name in self._memories.begin(names, MEMORY_SECONDS, shards):
            try:
                found[name] = self._memories.load(name)
            except MemoryUnavailableError as error:
                found[name] = error
        return found

    def _expansion(self, plan: PollPlan, policy: RecommendationPolicy) -> Expansion:
        each, before = plan.for_each[policy.name], self._expansions.get(policy.name)
        is_same = before is not None and before.policy is policy and before.each is each
        return before if before is not None and is_same else Expansion(policy, each)

    def _one(
        self,
        plan: PollPlan,
        policy: RecommendationPolicy,
        inputs: Inputs,
        memory: Memory | MemoryUnavailableError,
        now: float,
        listed: ListedTargets | None,
        rivals: Mapping[TargetReference, tuple[str, ...]],
    ) -> Decided:
        if isinstance(memory, MemoryUnavailableError):
            return Decided(policy.name, (Decision(failed_record(policy, now, str(memory)), Memory()),), None)
        started = self._clock.monotonic()
        try:
            if listed is not None:
                expanded = self._expansions[policy.name].decided(listed, inputs, memory, now, rivals)
                return Decided(policy.name, expanded.decisions, expanded.memory)
            policy = replace(policy, rivals={**policy.rivals, **rivals}) if rivals else policy
            decision = decide(policy, plan.calculate[policy.name], inputs, memory, now)
            return Decided(policy.name, (decision,), decision.memory)
        except Exception as error:  # noqa: BLE001 - the supervisor: one recommendation must not stop the others
            _log.exception("a decision failed by a fault of the program", extra=fields(recommendation=policy.name))
            message = f"the decision failed by a fault of the program: {type(error).__name__}: {error}"
            return Decided(policy.name, (Decision(failed_record(policy, now, message), memory),), memory)
        finally:
            self._telemetry.decided(policy.name, self._clock.monotonic() - started)

    def _size(
        self,
        policy: RecommendationPolicy,
        settings: ClusterSizeSettings,
        inputs: SizeInputs,
        memory: Memory | MemoryUnavailableError,
        now: float,
    ) -> Decided:
        """Return the decision of a cluster's size. What its own thread raises is part of it already.

        That thread measures the decision, too, since polls do not wait until it ends.
        """
        if isinstance(memory, MemoryUnavailableError):
            return Decided(policy.name, (Decision(failed_record(policy, now, str(memory)), Memory()),), None)
        try:
            decision = self._sizes.decided(policy, settings, inputs, memory, now)
            return Decided(policy.name, (decision,), decision.memory)
        except Exception as error:  # noqa: BLE001 - the supervisor: one recommendation must not stop the others
            _log.exception("a decision failed by a fault of the program", extra=fields(recommendation=policy.name))
            message = f"the decision failed by a fault of the program: {type(error).__name__}: {error}"
            return Decided(policy.name, (Decision(failed_record(policy, now, message), memory),), memory)


def predictions_of(settings: ClusterSizeSettings, decided: Mapping[str, Decided]) -> tuple[PredictedReplicas, ...]:
    """Return what the forecasts that a cluster size follows state for each of their targets."""
    found: list[PredictedReplicas] = []
    for forecast in settings.forecasts:
        one = decided.get(forecast.recommendation)
        for decision in one.decisions if one is not None else ():
            record = decision.record
            reason = "" if record.replicas is not None else record.message
            targets = [record.each] if record.each is not None else [outcome.target for outcome in record.targets]
            found += [PredictedReplicas(record.name, target, record.replicas, reason) for target in targets]
    return tuple(found)


def _rivals(
    policies: Mapping[str, RecommendationPolicy], listed: Mapping[str, ListedTargets]
) -> dict[str, dict[TargetReference, tuple[str, ...]]]:
    """Return, by recommendation and target, which others scale the same target.

    For targets that the configuration lists, `RecommendationPolicy.rivals` has them; here are those of `forEach`.
    """
    scaling = [policy for policy in policies.values() if Output.SCALE in policy.outputs]
    if not any(policy.name in listed for policy in scaling):
        return {}
    claims: dict[tuple[str, str, str, str], list[tuple[str, TargetReference]]] = {}
    for policy in scaling:
        for target in _targets(policy, listed):
            claims.setdefault(identity_of(target), []).append((policy.name, target))
    found: dict[str, dict[TargetReference, tuple[str, ...]]] = {}
    for claimed in claims.values():
        names = tuple(dict.fromkeys(name for name, _ in claimed))
        for name, target in claimed if len(names) > 1 else ():
            found.setdefault(name, {})[target] = tuple(other for other in names if other != name)
    return found


def _targets(policy: RecommendationPolicy, listed: Mapping[str, ListedTargets]) -> Iterable[TargetReference]:
    return listed[policy.name].reasons if policy.name in listed else policy.targets
