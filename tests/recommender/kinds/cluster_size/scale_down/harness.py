"""Small clusters for tests of scale-down, with their decisions and the inputs of these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import structs

from adapter.foundation.cluster.values.workloads import WorkloadFacts
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, ScaleDownAnswer, ScaleUp
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup, NodeGroups, NodeTemplate
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    NodeGroupSources,
    ScaleDownSettings,
    SizeLimits,
)
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_down.decide import scale_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.foundation.cluster.values.workloads import DisruptionBudget

NOW = 1_700_000_000.0
NOTHING = ScaleUp(increases={})


def workloads_of(pods: Iterable[ClusterPod], replicas: int = 3) -> tuple[WorkloadFacts, ...]:
    """Return the controllers of pods, as if each existed."""
    owners = {
        (one.controller.kind, one.namespace, one.controller.name): one.controller for one in pods if one.controller
    }
    return tuple(
        WorkloadFacts(kind, namespace, name, owner.uid, replicas, None)
        for (kind, namespace, name), owner in owners.items()
    )


def group(
    name: str,
    nodes: Iterable[str],
    *,
    least: int = 0,
    most: int = 100,
    size: int | None = None,
    price: float | None = None,
    options: GroupOptions | None = None,
    deleting: Iterable[str] = (),
    problem: str = "",
    template: NodeTemplate | None = None,
) -> NodeGroup:
    names = tuple(nodes)
    return NodeGroup(
        name=name,
        min_size=least,
        max_size=most,
        target_size=len(names) if size is None else size,
        nodes=names,
        template=template,
        price=price,
        options=options or GroupOptions(),
        deleting=tuple(deleting),
        problem=problem,
    )


@dataclass(frozen=True)
class Harness:
    """A cluster and its configuration; without groups, all nodes belong to the group `g`."""

    nodes: tuple[ClusterNode, ...]
    pods: tuple[ClusterPod, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    workloads: tuple[WorkloadFacts, ...] | None = None
    budgets: tuple[DisruptionBudget, ...] | None = ()
    settings: ScaleDownSettings = field(default_factory=ScaleDownSettings)
    limits: SizeLimits = field(default_factory=SizeLimits)
    memory: ClusterSizeMemory = field(default_factory=ClusterSizeMemory)
    last_decided: float | None = None
    waits: bool = False
    writes_sizes: bool = False
    now: float = NOW

    def situation(self) -> ClusterSituation:
        groups = self.groups or (group("g", [one.name for one in self.nodes]),)
        return ClusterSituation(
            now=self.now,
            nodes=self.nodes,
            pods=self.pods,
            groups=NodeGroups(groups, {name: one.name for one in groups for name in one.nodes}),
            workloads=workloads_of(self.pods) if self.workloads is None else self.workloads,
            budgets=self.budgets,
            memory=self.memory,
            last_decided=self.last_decided,
            waits=self.waits,
            writes_sizes=self.writes_sizes,
        )

    def sizes(self) -> ClusterSizeSettings:
        return ClusterSizeSettings(NodeGroupSources(), limits=self.limits, scale_down=self.settings)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.nodes, self.pods)

    def decide(self, scaled: ScaleUp = NOTHING, snapshot: Snapshot | None = None) -> ScaleDownAnswer:
        return scale_down(self.situation(), self.sizes(), snapshot or self.snapshot(), scaled)

    def after(self, seconds: float, decision: ScaleDownAnswer) -> Harness:
        """Return the same cluster later, with the memory that the decision has left."""
        memory = structs.replace(
            self.memory,
            unneeded_since=dict(decision.unneeded_since),
            unremovable_until=dict(decision.unremovable_until),
        )
        return replace(self, now=self.now + seconds, memory=memory, last_decided=self.now)


def kept(decision: ScaleDownAnswer | ClusterSizeAnswer) -> Mapping[str, str]:
    """Return, for each node that stays, the identifier of the reason."""
    return {one.node: one.reason.partition(":")[0] for one in decision.kept}


def due(decision: ScaleDownAnswer) -> list[str]:
    return [one.node for one in decision.removals if one.is_due]


def waits(decision: ScaleDownAnswer) -> Mapping[str, str]:
    """Return, for each node that may be removed later, the identifiers of what it waits for."""
    return {
        one.node: " ".join(part.partition(":")[0] for part in one.reason.split("; "))
        for one in decision.removals
        if not one.is_due
    }
