"""A cloud behind a plugin that lies, decisions about it, and the real writer that changes its sizes.

Each pod needs a node of its own. The group `honest` does what it says; `liar` does not, and is the cheaper one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.cluster.values.storage import Storage
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    NodeGroupSources,
    PluginGroups,
    ScaleDownSettings,
)
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderInstance
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.running.sizes.provider_group_writer import ProviderAttempt
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.test_decide import WEB
from tests.recommender.running.sizes.provider_harness import HostedGroups, NodeApi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.decisions.loop import Decision
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.node_groups.protocol import ProviderNode
    from recommender.outputs.pending_writes import NodeRemoval
    from recommender.outputs.scale_results import ScaleResult
    from recommender.outputs.write_attempt import ScaleOutcome, SendingTerms

START: Final = 1_800_000_000.0
STEP: Final = 20.0
MAX: Final = 8
_SHOWN_LATE: Final = 60.0
_SETTINGS: Final = PluginGroups("lies", writes=True)

Call: TypeAlias = Literal["done", "nothing", "more", "fewer", "refused", "refused-but-done", "unknown", "late-but-done"]
"""The outcome of a call that requests nodes."""
Shown: TypeAlias = Literal["honest", "frozen", "late", "jumping", "too-much", "absurd"]
"""How the size that a group shows relates to its real size."""
Machines: TypeAlias = Literal["honest", "none", "of-the-other-group", "unknown", "deleting"]
"""The machines that a group lists."""
Owner: TypeAlias = Literal["honest", "no-group", "the-other-group"]
"""The group that a node is said to belong to."""


@dataclass(frozen=True)
class Lies:
    """How a group lies; the default is an honest group."""

    calls: tuple[Call, ...] = ()
    """The outcomes of the first calls; all later calls are done."""
    shown: Shown = "honest"
    machines: Machines = "honest"
    owner: Owner = "honest"
    come: bool = True
    """Whether requested machines ever become nodes."""


@dataclass
class Machine:
    """A machine of the cloud."""

    name: str
    made: float
    comes: bool


@dataclass(frozen=True)
class Asked:
    """A call that requested nodes."""

    at: float
    group: str
    delta: int
    call: Call
    shown: int
    """The size that the group showed before the call."""


@dataclass
class LyingGroup:
    """A group as the plugin presents it."""

    cloud: LyingCloud
    name: str
    lies: Lies
    machines: list[Machine] = field(default_factory=list)
    shown_size: int = 0

    def id(self) -> str:
        return self.name

    def min_size(self) -> int:
        return 0

    def max_size(self) -> int:
        return MAX

    def target_size(self) -> int:
        now, size = self.cloud.now, len(self.machines)
        shown = {
            "honest": size,
            "frozen": 1,
            "late": sum(each.made <= now - _SHOWN_LATE for each in self.machines),
            "jumping": size if int(now / STEP) % 2 else max(0, size - 2),
            "too-much": size + 1,
            "absurd": 2**31 if int(now / STEP) % 5 == 0 else size,
        }
        self.shown_size = shown[self.lies.shown]
        return self.shown_size

    def nodes(self) -> Sequence[ProviderInstance]:
        own = [ProviderInstance(each.name) for each in self.machines]
        others = {
            "honest": own,
            "none": [],
            "of-the-other-group": [
                ProviderInstance(each.name)
                for group in self.cloud.groups.values()
                if group is not self
                for each in group.machines
            ],
            "unknown": [*own, ProviderInstance("x:///of-nobody", InstanceState.CREATING)],
            "deleting": [replace(each, state=InstanceState.DELETING) for each in own],
        }
        return others[self.lies.machines]

    def template(self) -> Mapping[str, object]:
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        return {"metadata": {"labels": {}}, "status": {"capacity": amounts, "allocatable": amounts}}

    def price(self) -> float | None:
        return 0.1 if self.name == "liar" else 0.9

    def options(self) -> None:
        return None

    def increase_size(self, delta: int) -> None:
        number = sum(each.group == self.name for each in self.cloud.asked)
        call = self.lies.calls[number] if number < len(self.lies.calls) else "done"
        self.cloud.asked.append(Asked(self.cloud.now, self.name, delta, call, self.shown_size))
        done = {"nothing": 0, "more": delta + 1, "fewer": delta - 1, "refused": 0, "unknown": 0}.get(call, delta)
        delay = 90.0 if call == "late-but-done" else 0.0
        self.machines += [self.cloud.machine(self, self.cloud.now + delay) for _ in range(done)]
        if call.startswith("refused"):
            raise ValueError("out of stock")
        if call in {"unknown", "late-but-done"}:
            raise OutcomeUnknownError("no answer")

    def decrease_target_size(self, delta: int) -> None:
        waiting = [each for each in self.machines if not self.cloud.is_node(each)]
        if len(waiting) < -delta:
            raise ValueError("attempt to delete existing nodes")
        gone = [each.name for each in waiting[delta:]]
        self.machines = [each for each in self.machines if each.name not in gone]

    def delete_nodes(self, nodes: Sequence[ProviderNode]) -> None:
        raise AssertionError(f"nothing deletes nodes: {nodes}")


@dataclass
class LyingCloud:
    """A cluster with both groups, on a clock of its own."""

    lies: Lies
    arrivals: Sequence[int]
    """When each pod is created, in seconds after the start."""
    boot: float = 60.0
    """How long a machine takes to become a node."""
    now: float = START
    memory: Memory = field(default_factory=Memory)
    asked: list[Asked] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    """The node of each pod."""
    outcomes: dict[TargetReference, ScaleOutcome] = field(default_factory=dict)
    results: list[ScaleResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = count()
        self.groups = {"liar": LyingGroup(self, "liar", self.lies), "honest": LyingGroup(self, "honest", Lies())}
        self.groups["liar"].machines.append(Machine("x:///first", START - 900.0, comes=True))
        self.policy = RecommendationPolicy("workers", "clusterSize", outputs=frozenset({Output.SCALE}))
        self.settings = ClusterSizeSettings(
            NodeGroupSources(plugin=_SETTINGS), expanders=("price",), scale_down=ScaleDownSettings(enabled=False)
        )
        self.host = PluginHost(_SETTINGS, seconds=30.0, load=lambda _: self, clock=lambda: self.now)
        clock = Clock(lambda: self.now, lambda: self.now)
        self.writer = ScaleWriter(
            NodeApi(),
            lambda group, kind: find_resource(BUILT_IN, group, kind),
            Fence(3.0, lambda _: True),
            ScaleHooks(
                before_write=lambda _: True, count=lambda _, result: self.results.append(result), on_result=self._note
            ),
            attempt=ProviderAttempt(HostedGroups(self.host), self.begin, ClusterState, clock),
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(clock, lambda work: work()),
        )

    # What a plugin must have.

    def refresh(self) -> None:
        return

    def node_groups(self) -> Sequence[LyingGroup]:
        return tuple(self.groups.values())

    def node_group_for_node(self, node: ProviderNode) -> LyingGroup | None:
        liar, honest = self.groups["liar"], self.groups["honest"]
        if any(each.name == node.provider_id for each in honest.machines):
            return honest
        return {"honest": liar, "no-group": None, "the-other-group": honest}[self.lies.owner]

    def close(self) -> None:
        return

    # What the cloud and the cluster do.

    def machine(self, group: LyingGroup, made: float) -> Machine:
        return Machine(f"x:///{group.name}-{next(self._numbers)}", made, group.lies.come)

    def is_node(self, machine: Machine) -> bool:
        return machine.comes and machine.made + self.boot <= self.now

    def nodes(self) -> list[ClusterNode]:
        machines = [each for group in self.groups.values() for each in group.machines if self.is_node(each)]
        return [node(each.name[5:], provider_id=each.name, created=each.made + self.boot) for each in machines]

    def begin(self, found: ScaleOutcome, _removal: NodeRemoval, _terms: SendingTerms) -> ScaleOutcome:
        raise AssertionError(f"no node is removed: {found}")

    def step(self) -> Decision:
        """Let the scheduler place pods, make one decision, and carry it out."""
        pods = [f"job-{number}" for number, at in enumerate(self.arrivals) if START + at <= self.now]
        for name in pods:
            free = [each.name for each in self.nodes() if each.name not in self.bound.values()]
            if name not in self.bound and free:
                self.bound[name] = free[0]
        inputs = Inputs(self._state(pods))
        nodes = inputs.cluster.nodes
        assert isinstance(nodes, Observed)
        facts = {
            "waits": True,
            "writes_sizes": True,
            "writes": self.outcomes,
            "providers": (self.host.read(nodes.value),),
            "began": START - 900.0,
        }
        decision = decide_sizes(self.policy, self.settings, inputs, self.memory, self.now, **facts)
        self.memory, self.outcomes = decision.memory, {}
        self.writer.follow_writes("workers", writes_of(decision).groups.writes)
        self.writer.step()
        self.now += STEP
        return decision

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / STEP)):
            self.step()

    def _note(self, outcome: ScaleOutcome) -> None:
        self.outcomes[outcome.write.target] = outcome

    def _state(self, names: Sequence[str]) -> ClusterState:
        now = self.now
        pods = [
            pod(
                name, "4", "1Gi", namespace="shop", node=self.bound.get(name, ""), controller="web",
                created=START + self.arrivals[int(name[4:])],
            )
            for name in names
        ]  # fmt: skip
        return ClusterState(
            nodes=Observed(tuple(self.nodes()), now),
            pods=Observed(tuple(pods), now),
            workloads=Observed((WEB,), now),
            disruption_budgets=Observed((), now),
            namespace_labels=Observed({"shop": {}}, now),
            storage=Storage(Observed({}, now), Observed({}, now), Observed({}, now), Observed({}, now)),
        )
