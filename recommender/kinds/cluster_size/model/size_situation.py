"""The inputs of one cluster size decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, known_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.foundation.cluster.values.storage import Storage
    from adapter.foundation.cluster.values.workloads import DisruptionBudget, WorkloadFacts
    from recommender.kinds.cluster_size.model.groups import NodeGroups


@dataclass(frozen=True, slots=True)
class UnlistedPods:
    """Pods of a node of which only the number and the requests matter: none of them moves, and no pod refers to one."""

    requested: Mapping[str, int]
    """What they request together: CPU in millicores, memory and storage in bytes, others as counts."""
    count: int


@dataclass(frozen=True, slots=True)
class ClusterSituation:
    """All facts of one moment. Nothing in it is changed by a decision."""

    now: float
    """Seconds since the Unix epoch."""
    nodes: tuple[ClusterNode, ...]
    pods: tuple[ClusterPod, ...]
    """The bound and unbound pods, without those that have ended."""
    groups: NodeGroups
    workloads: tuple[WorkloadFacts, ...] = ()
    assumed_controllers: frozenset[str] = frozenset()
    """Kinds of controllers of which no object is known although some may exist: a pod's controller of such a kind is
    assumed to exist."""
    budgets: tuple[DisruptionBudget, ...] | None = ()
    """The budgets; None if they are not known, so no pod may be moved."""
    namespace_labels: Mapping[str, Mapping[str, str]] | None = None
    """The labels by namespace; None if unknown, so terms that select namespaces by labels are judged against the
    pod."""
    storage: Storage | None = None
    priorities: Mapping[int, tuple[str, ...]] | None = None
    """The priorities of the priority expander; None if nothing is filtered."""
    priorities_problem: str = ""
    memory: ClusterSizeMemory = field(default_factory=ClusterSizeMemory)
    waits: bool = True
    """Whether the decision waits for timers, as `run` does; `recommend` decides once."""
    future_pods: tuple[ClusterPod, ...] = ()
    """Pods of forecasts, headroom and what-if questions, which do not exist yet. They are never young or expendable."""
    assumed_pods: frozenset[tuple[str, str]] = frozenset()
    """Namespace and name of the pods that a what-if question adds."""
    displaced_pods: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The nodes that a what-if question removes, by namespace and name of their pods."""
    writes_sizes: bool = False
    """Whether this program writes sizes, so that requested nodes that are missing are on their way."""
    began: float | None = None
    """When this process began to decide, in Unix seconds; None if nothing is written."""
    last_decided: float | None = None
    """When sizes were decided last, in Unix seconds; None for never."""
    confirmed: float | None = None
    """The time of the facts, in Unix seconds; None for now."""
    explains: bool = True
    """Whether the answer has bounds, advice, places of pods, moves and reasons, none of which changes a size: a replay
    of weeks does without them."""
    candidates: frozenset[str] | None = None
    """The nodes that may be removed at all; the answer says why they stay, and does not mention other nodes. None for
    every node."""
    unlisted_pods: Mapping[str, UnlistedPods] = field(default_factory=dict)
    """Bound pods that are not among `pods`, by node. A node with such pods must not be among the candidates."""
    other_nodes: int = 0
    """How many nodes of the cluster are not among `nodes`, because no pod of the situation can move to or from them."""

    def known_seconds_since(self, time: float) -> float:
        """Return for how long the cluster has been watched since a time, up to the time of the facts.

        While the API server does not answer, it is unknown whether a node has arrived, so that time does not count.
        """
        end = self.now if self.confirmed is None else min(self.confirmed, self.now)
        return known_seconds(self.memory.absences, time, end)
