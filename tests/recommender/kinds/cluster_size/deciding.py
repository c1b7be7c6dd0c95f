"""One decision of cluster sizes, made by the loop that decides all kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recommender.decisions.loop import decide
from recommender.kinds.cluster_size.decide import Sizing
from recommender.kinds.cluster_size.model.memory import restore_memory
from recommender.kinds.cluster_size.model.size_facts import SizeFacts
from recommender.kinds.cluster_size.outcome import SizeWrites

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.loop import Decision
    from recommender.decisions.memory import Memory
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings


def decide_sizes(
    policy: RecommendationPolicy,
    settings: ClusterSizeSettings,
    inputs: Inputs,
    memory: Memory,
    now: float,
    **facts: Any,  # noqa: ANN401 - the fields of a dataclass
) -> Decision:
    inputs = replace(inputs, own={policy.name: SizeFacts(**facts)})
    return decide(policy, Sizing(policy, settings).calculate, inputs, memory, now)


def writes_of(decision: Decision) -> SizeWrites:
    assert isinstance(decision.writes, SizeWrites)
    return decision.writes


def size_memory(decision: Decision) -> ClusterSizeMemory:
    return restore_memory(decision.memory.own)
