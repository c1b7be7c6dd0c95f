"""What one cluster size decision is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.cluster_size.model.memory import ClusterSizeMemory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.scheduling.storage import Storage
    from adapter.cluster.scheduling.workloads import DisruptionBudget, WorkloadFacts
    from adapter.cluster.state import ClusterNode, ClusterPod
    from recommender.cluster_size.model.groups import NodeGroups


@dataclass(frozen=True, slots=True)
class ClusterSituation:
    """All facts of one moment. Nothing in it is changed by a decision."""

    now: float
    """Seconds since the Unix epoch."""
    nodes: tuple[ClusterNode, ...]
    pods: tuple[ClusterPod, ...]
    """Bound and unbound, without those that have ended."""
    groups: NodeGroups
    workloads: tuple[WorkloadFacts, ...] = ()
    assumed_controllers: frozenset[str] = frozenset()
    """Kinds of controllers of which not one object is known although they may be: those of pods are taken to exist."""
    budgets: tuple[DisruptionBudget, ...] | None = ()
    """None: they are not known, so no pod may be moved."""
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    storage: Storage | None = None
    priorities: Mapping[int, tuple[str, ...]] | None = None
    """Of the priority expander; None: nothing is filtered."""
    priorities_problem: str = ""
    memory: ClusterSizeMemory = field(default_factory=ClusterSizeMemory)
    waits: bool = True
    """Whether timers are waited for, as `run` does; `recommend` decides once."""
    future_pods: tuple[ClusterPod, ...] = ()
    """Pods that do not exist yet: of forecasts, headroom and what-if questions. Never young, never expendable."""
    writes_sizes: bool = False
    """Whether this program writes sizes, so that requested nodes that are missing are on their way."""
