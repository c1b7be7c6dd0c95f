"""Makes the single decision of each poll."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Unknown
from recommender.decisions.inputs import Inputs
from recommender.decisions.loop import Decided, Decision, decide, failed_decision, supervise
from recommender.kinds.proportional.last_parameters import why_former
from recommender.kinds.proportional.memory import restore_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.time.clock import Clock
    from recommender.commands.proportional.poll_state import PollState
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.memory import Memory
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import TargetOutcome
    from recommender.kinds.proportional.parameters import ParametersConfigMap
    from recommender.running.inputs.poll_plan import PollPlan
    from recommender.running.memory.memories import Memories


@dataclass(slots=True)
class OneDecision:
    """Decides on the only recommendation. Not thread-safe."""

    memories: Memories
    config_map: ParametersConfigMap
    state: PollState
    """Records whether former parameters are in use, and whether a list of nodes is under way."""
    measure: Callable[[str, float], None]
    """Called with the seconds that each decision took."""
    clock: Clock

    def decide(self, plan: PollPlan, inputs: Inputs, now: float) -> list[Decided]:
        """Return the decision; if deciding fails, its record has the error."""
        [policy] = [each.policy for each in plan.configuration.recommendations]
        memory = self.memories.load(policy.name)
        started = self.clock.monotonic()
        decision = supervise(
            policy,
            partial(self._decision, policy, plan.calculations[policy.name](None), inputs, memory, now),
            partial(failed_decision, policy, memory, now, Inputs()),
        )
        self.measure(policy.name, self.clock.monotonic() - started)
        in_use = restore_memory(decision.memory.own).parameters
        self.state.uses_former_parameters(why_former(self.config_map, inputs, in_use))
        return [Decided(policy.name, (decision,), decision.memory)]

    def _decision(
        self, policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
    ) -> Decision:
        """Return the decision; if the first list of nodes is empty, no target shrinks until a second list confirms it.

        Nothing is kept across restarts, so the only evidence of the past is the current size of the targets: if it is
        larger than the size that follows from the list, there were nodes.
        """
        nodes = inputs.cluster.nodes
        self.state.awaits_nodes(is_awaited=isinstance(nodes, Unknown) and nodes.is_awaited)
        decision = decide(policy, calculate, inputs, memory, now)
        larger = next((each for each in decision.record.targets if _would_shrink(each)), None)
        if isinstance(nodes, Unknown) or not nodes.began_empty or larger is None:
            return decision
        reason = f"the first list since the start was empty, and {larger.target} has {larger.current_replicas} replicas"
        doubtful = Unknown(f"{reason}: a second list has to agree", is_awaited=True)
        self.state.awaits_nodes(is_awaited=True)
        return decide(policy, calculate, replace(inputs, cluster=replace(inputs.cluster, nodes=doubtful)), memory, now)

    def forget(self) -> None:
        """Do nothing: nothing is under way between polls."""


def _would_shrink(outcome: TargetOutcome) -> bool:
    current, recommended = outcome.current_replicas, outcome.recommended_replicas
    return current is not None and recommended is not None and recommended < current
