"""The calculation of a cluster size recommendation: from the facts of a cluster to sizes of node groups. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recommender.decisions.calculation import Calculation, InputMissingError, KeptValue
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.counted_changes import begun_changes, with_changes, with_settled_changes
from recommender.kinds.cluster_size.future.predicted_pods import future_pods
from recommender.kinds.cluster_size.future.predictions import predictions_of
from recommender.kinds.cluster_size.group_owners import with_group_owners
from recommender.kinds.cluster_size.group_sizes import GroupSizes, SizeContext
from recommender.kinds.cluster_size.health.failed_removals import with_failed_removals
from recommender.kinds.cluster_size.health.times_without_facts import with_absence
from recommender.kinds.cluster_size.known_cluster import believed_cluster, known_cluster, known_of, situation_of
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize
from recommender.kinds.cluster_size.model.memory import restore_memory
from recommender.kinds.cluster_size.model.size_facts import SizeFacts
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.requested_sizes import believed_sizes, settled_writes
from recommender.kinds.cluster_size.what_if.apply import node_names, without_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterState
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings


@dataclass(frozen=True, slots=True)
class Sizing:
    """Calculates the sizes of one recommendation."""

    policy: RecommendationPolicy
    settings: ClusterSizeSettings
    growths: Mapping[str, float | None] = field(default_factory=dict)
    """The `maxGrowth` of each forecast that the recommendation follows."""

    def calculate(self, inputs: Inputs, memory: Memory, now: float) -> Calculation:
        """Return the sizes; raises InputMissingError."""
        policy, settings, before = self.policy, self.settings, restore_memory(memory.own)
        facts = inputs.own.get(policy.name)
        facts = facts if isinstance(facts, SizeFacts) else SizeFacts()
        try:
            cluster = believed_cluster(inputs.cluster, memory.known)
            known = known_cluster(cluster, policy.stale_after_seconds, now)
        except InputMissingError as error:
            raise InputMissingError(str(error), kept=_kept_value(before, facts.last, str(error))) from error
        groups = self._groups(inputs, known.cluster, facts, now)
        before = with_absence(before, memory.last, known.confirmed, policy.stale_after_seconds)
        valid = policy.stale_after_seconds
        asked = before
        before = settled_writes(before, groups, facts.writes, now, valid, known.confirmed, facts.began)
        before = with_failed_removals(before, known.cluster, now)
        before, changes = with_settled_changes(asked, before, groups, memory.changes, facts.sent)
        begun = with_changes(changes, begun_changes(before, groups))
        groups = believed_sizes(groups, before, now) if facts.writes_sizes else groups
        groups = with_group_owners(groups, policy.owners, before if facts.has_lease else None, now)
        situation = situation_of(known, groups, settings, inputs, before, now)
        future = future_pods(settings, predictions_of(settings, inputs, self.growths), situation, known.cluster)
        situation = replace(
            situation,
            waits=facts.waits,
            writes_sizes=facts.writes_sizes,
            began=facts.began,
            future_pods=(*situation.future_pods, *future.pods),
            last_decided=None if memory.last is None else memory.last.decided,
        )
        answer = decide_size(situation, settings)
        answer = replace(answer, steps=(*future.steps, *answer.steps))
        context = SizeContext(known, situation, settings, future, before, changes)
        known_facts = known_of(cluster, memory.known)
        return Calculation(GroupSizes(answer, context), known.confirmed, known=known_facts, changes=begun)

    def _groups(self, inputs: Inputs, cluster: ClusterState, facts: SizeFacts, now: float) -> NodeGroups:
        """Return the node groups, without the nodes that a what-if question removes."""
        stated, passing = self.settings.node_groups, self.settings.passing_taints
        before = inputs.cluster_with_removed_nodes
        if before is None:
            return node_groups(stated, cluster, now, facts.providers, passing)
        found = node_groups(
            stated, replace(cluster, nodes=before.nodes, pods=before.pods), now, facts.providers, passing
        )
        return without_nodes(found, node_names(before) - node_names(cluster))


def _kept_value(memory: ClusterSizeMemory, last: ClusterSizeAnswer | None, reason: str) -> KeptValue:
    """Return the last sizes, without any removal of a node."""
    known = {group.name: group for group in last.groups} if last is not None else {}
    groups = tuple(_held_group(name, size, known.get(name), reason) for name, size in sorted(memory.sizes.items()))
    return KeptValue(
        ClusterSizeAnswer(groups, hold=reason, is_held=True),
        "the last sizes are kept",
        ", and no node is removed",
        "the last sizes were decided",
    )


def _held_group(name: str, size: int, known: GroupSize | None, reason: str) -> GroupSize:
    text = f"the last size is kept: {reason}"
    if known is None:
        return GroupSize(name, None, size, size, None, None, text)
    return replace(known, recommended=size, after_removals=size, reason=text)
