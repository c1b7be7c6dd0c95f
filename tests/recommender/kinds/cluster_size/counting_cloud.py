"""A provider's group whose writes end in every way, with decisions about it, and a count of what really changed.

Each pod needs a node of its own, and each node that no pod needs is removed at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.cluster.values.storage import Storage
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Brakes, Output, RecommendationPolicy
from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    ExternalGrpcGroups,
    NodeGroupSources,
    ScaleDownSettings,
)
from recommender.kinds.cluster_size.model.taints import TO_BE_DELETED_TAINT
from recommender.kinds.cluster_size.node_groups.other_autoscalers import KARPENTER_LABEL
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, ProviderInstance
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.sizes.reported_writes import WriteResults
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.test_decide import WEB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.decisions.loop import Decision
    from recommender.outputs.pending_writes import PendingWrite

START: Final = 1_800_000_000.0
STEP: Final = 20.0

End: TypeAlias = Literal["done", "unsent", "refused", "failed", "unreachable", "conflict", "unknown", "lost", "late"]
"""How a write ends; the last three have an effect, but nothing is known of it, or only that something failed."""
Drain: TypeAlias = Literal["goes on", "ends", "fails"]
"""What becomes of the nodes that are being drained."""
_RESULTS: Final = {
    "done": ScaleResult.OK,
    "refused": ScaleResult.REFUSED,
    "failed": ScaleResult.ERROR,
    "unreachable": ScaleResult.ERROR,
    "conflict": ScaleResult.CONFLICT,
    "unknown": ScaleResult.ERROR,
    "late": ScaleResult.ERROR,
}


@dataclass(frozen=True)
class Turn:
    """What happens in one step."""

    pods: int
    """How many pods there are from now on."""
    end: End = "done"
    drain: Drain = "goes on"
    foreign: int = 0
    """By how many nodes somebody else changes the size, if a decision has seen the present one."""
    restarts: bool = False
    problem: str = ""
    """Why the size cannot be written."""
    sends_late: bool = False
    """Whether the writes of the last decision are sent while this one is made."""


@dataclass
class CountingCloud:
    """The group and the decisions about it."""

    limit: int
    now: float = START
    memory: Memory = field(default_factory=Memory)
    growths: int = 0
    """How many writes made the group larger."""
    removals: int = 0
    """How many writes removed nodes, however many each."""
    foreign: int = 0
    """How many changes others made."""
    has_karpenter: bool = False
    """Whether Karpenter manages the group."""

    def __post_init__(self) -> None:
        self._numbers = count()
        self._began = START - 900.0
        self._nodes: dict[str, float] = {}
        """When each machine was made; it becomes a node one step after a decision has seen it."""
        self._make(3, START - 900.0)
        self._draining: dict[str, int] = {}
        """The write that removes each node."""
        self._removed: set[int] = set()
        self._failed: dict[str, float] = {}
        self._bound: dict[str, str] = {}
        self._late: list[PendingWrite] = []
        self._outcomes: list[ScaleOutcome] = []
        self._results = WriteResults()
        self._last_writes: tuple[PendingWrite, ...] = ()
        self._writes = 0
        self._shown = 3
        """The size at the last decision."""
        brakes = Brakes(max_changes_per_hour=self.limit)
        self._policy = RecommendationPolicy("w", "clusterSize", outputs=frozenset({Output.SCALE}), brakes=brakes)
        down = ScaleDownSettings(
            unneeded_seconds=0.0, delay_after_add_seconds=0.0, delay_after_failure_seconds=STEP, max_drain_parallelism=9
        )
        sources = NodeGroupSources(external_grpc=ExternalGrpcGroups("localhost:1", delete_nodes=True))
        self._settings = ClusterSizeSettings(sources, scale_down=down)

    def step(self, turn: Turn) -> Decision:
        """Let the cluster and others change, decide, and carry out the writes."""
        late, self._late = self._late, []
        for write in late:
            self._carry_out(write)
        self._follow(turn.drain)
        if len(self._nodes) == self._shown:
            self._resize(turn.foreign)
        self._bind(turn.pods)
        if turn.restarts:
            self._began, self._outcomes, self._results = self.now, [], WriteResults()
            self.memory = decode_memory("w", encode_memory("w", self.memory)).memory
        sent = self._results.sent_of("w")
        decision = self._decision(turn, sent)
        for write in self._last_writes if turn.sends_late else ():
            self._send(write)
        self.memory, self._outcomes = decision.memory, []
        self._results.drop("w", {}, sent)
        self._last_writes = tuple(writes_of(decision).groups.writes)
        for write in self._last_writes:
            if self.now >= write.waits_until:
                self._end(write, turn.end)
        self.now += STEP
        return decision

    def _decision(self, turn: Turn, sent: Mapping[tuple[str, int], object]) -> Decision:
        machines = tuple(ProviderInstance(f"x:///{name}", InstanceState.RUNNING) for name in self._nodes)
        joined = self._joined()
        template = node("n", provider_id="x:///n", created=1.0)
        self._shown = size = len(self._nodes)
        group = PluginGroup("a", 0, 12, size, machines, template=template, problem=turn.problem, has_writes=True)
        facts = {
            "waits": True,
            "writes_sizes": True,
            "sent": sent.keys(),
            "writes": {each.write.target: each for each in self._outcomes},
            "providers": (PluginReading("externalGRPC", (group,), dict.fromkeys(joined, "a")),),
            "began": self._began,
        }
        return decide_sizes(
            self._policy, self._settings, Inputs(self._state(turn.pods)), self.memory, self.now, **facts
        )

    def _end(self, write: PendingWrite, end: End) -> None:
        if end in {"done", "unknown", "lost"}:
            self._send(write)
        elif end not in {"unsent", "refused", "unreachable"}:
            self._results.note_sending(write)
        if end == "late":
            self._late.append(write)
        if (result := _RESULTS.get(end)) is not None:
            away = end == "unreachable"
            self._outcomes.append(ScaleOutcome(write, result, message="no", is_of_the_server=away))

    def _send(self, write: PendingWrite) -> None:
        self._results.note_sending(write)
        self._carry_out(write)

    def _carry_out(self, write: PendingWrite) -> None:
        if write.known_size != len(self._nodes):
            return
        self._writes += 1
        self._draining |= {each.node: self._writes for each in write.node_removals if each.node not in self._draining}
        delta = 0 if write.node_removals else write.replicas - len(self._nodes)
        self.growths += delta > 0
        self._make(delta, self.now)

    def _make(self, number: int, now: float) -> None:
        self._nodes |= {f"n{next(self._numbers)}": now for _ in range(number)}

    def _joined(self) -> list[str]:
        return [name for name, made in self._nodes.items() if made < self.now - STEP]

    def _follow(self, drain: Drain) -> None:
        if drain == "ends" and self._draining:
            name = next(iter(self._draining))
            self._removed.add(self._draining[name])
            self._remove(name)
        elif drain == "fails":
            self._failed |= dict.fromkeys(self._draining, self.now)
            self._draining.clear()
        self.removals = len(self._removed)

    def _resize(self, delta: int) -> None:
        self.foreign += delta != 0
        self._make(delta, self.now)
        for name in list(self._nodes)[:-delta] if delta < 0 else ():
            self._remove(name)

    def _remove(self, name: str) -> None:
        self._draining.pop(name, None)
        del self._nodes[name]

    def _bind(self, pods: int) -> None:
        names = [f"web-{number}" for number in range(pods)]
        self._bound = {name: at for name, at in self._bound.items() if name in names and at in self._nodes}
        for name in names:
            free = [at for at in self._joined() if at not in self._draining and at not in self._bound.values()]
            if name not in self._bound and free:
                self._bound[name] = free[0]

    def _node(self, name: str) -> ClusterNode:
        taints = (f"{TO_BE_DELETED_TAINT}=1:NoSchedule",) if name in self._draining else ()
        failed = {FAILED_REMOVAL: str(int(self._failed[name]))} if name in self._failed else {}
        found = node(name, provider_id=f"x:///{name}", created=1.0, taints=taints, annotations=failed)
        labels = {**found.labels, KARPENTER_LABEL: "web"} if self.has_karpenter else found.labels
        return replace(found, labels=labels, unschedulable=bool(taints))

    def _state(self, pods: int) -> ClusterState:
        now = self.now
        present = tuple(
            pod(f"web-{each}", "4", "1Gi", namespace="shop", node=self._bound.get(f"web-{each}", ""), controller="web",
                created=2.0)
            for each in range(pods)
        )  # fmt: skip
        return ClusterState(
            nodes=Observed(tuple(map(self._node, self._joined())), now),
            pods=Observed(present, now),
            workloads=Observed((WEB,), now),
            disruption_budgets=Observed((), now),
            namespace_labels=Observed({"shop": {}}, now),
            storage=Storage(Observed({}, now), Observed({}, now), Observed({}, now), Observed({}, now)),
        )
