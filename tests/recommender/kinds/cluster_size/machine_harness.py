"""A cloud with machines that fail, decisions about it, and the real writer that asks its provider."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterSizeSettings,
    NodeGroupSources,
    PluginGroups,
    ScaleDownSettings,
)
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, ProviderInstance
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.sizes.provider_group_writer import ProviderAttempt
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.test_provider_sizes import facts
from tests.recommender.running.sizes.provider_harness import HostedGroups, NodeApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.decisions.loop import Decision
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.model.answer import FailedMachine
    from recommender.kinds.cluster_size.node_groups.protocol import ProviderNode
    from recommender.outputs.pending_writes import NodeRemoval
    from recommender.outputs.scale_results import ScaleResult
    from recommender.outputs.write_attempt import ScaleOutcome, SendingTerms

START: Final = 1_800_000_000.0
STEP: Final = 30.0
PROVISION: Final = 900.0
PLUGIN: Final = PluginGroups("cloud", writes=True, delete_nodes=True)
POLICY: Final = RecommendationPolicy("workers", "clusterSize", outputs=frozenset({Output.SCALE}))
DOWN: Final = ScaleDownSettings(unneeded_seconds=1e6, unready_enabled=False)
"""No node is removed, so every deletion is one of a failed machine."""


@dataclass(frozen=True)
class Deletion:
    """A call that deletes machines."""

    at: float
    group: str
    nodes: tuple[ProviderNode, ...]
    left: int
    """The size of the group afterwards."""

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(each.provider_id for each in self.nodes)


@dataclass
class CloudOfPlugin:
    """A provider of the plugin protocol; tests change the groups."""

    groups: list[PluginMachines]
    owner: Callable[[ProviderNode], str | None] | None = None
    """Replaces how the group of a node is found."""
    on_refresh: Callable[[], object] = lambda: None

    def refresh(self) -> None:
        self.on_refresh()

    def node_groups(self) -> Sequence[PluginMachines]:
        return self.groups

    def node_group_for_node(self, node: ProviderNode) -> PluginMachines | None:
        if self.owner is not None:
            name = self.owner(node)
            return next((each for each in self.groups if each.name == name), None)
        return next((each for each in self.groups if node.provider_id in each.machines), None)

    def close(self) -> None:
        return


@dataclass
class PluginMachines:
    """A group with machines, and why some of them cannot be created."""

    name: str = "a"
    machines: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    target: int = 0
    minimum: int = 0
    late_seconds: float = 0.0
    zero_or_max: bool = False
    provision_seconds: float | None = None
    clock: Callable[[], float] = lambda: START
    deletions: list[Deletion] = field(default_factory=list)
    on_delete: Callable[[], object] = lambda: None
    stays: bool = False
    """Whether machines stay listed after their deletion was requested."""
    number: int | None = None
    """How often machines were listed, if their ids change with each call."""

    def id(self) -> str:
        return self.name

    def min_size(self) -> int:
        return self.minimum

    def max_size(self) -> int:
        return 100

    def target_size(self) -> int:
        return self.target

    def nodes(self) -> Sequence[ProviderInstance]:
        if self.number is not None:
            self.number += 1
        changing = "" if self.number is None else f"?{self.number}"
        return [
            ProviderInstance(f"{each}{changing}" if "lost" in each else each)
            if each not in self.errors
            else ProviderInstance(each, InstanceState.CREATING, self.errors[each])
            for each in self.machines
        ]

    def template(self) -> Mapping[str, object]:
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        return {"metadata": {"labels": {}}, "status": {"capacity": amounts, "allocatable": amounts}}

    def price(self) -> None:
        return None

    def options(self) -> GroupOptions:
        return GroupOptions(max_node_provision_seconds=self.provision_seconds, zero_or_max=self.zero_or_max)

    def age_seconds(self) -> float:
        return self.late_seconds

    def increase_size(self, delta: int) -> None:
        raise AssertionError(f"no pod needs {delta} nodes")

    def decrease_target_size(self, delta: int) -> None:
        raise AssertionError(f"{-delta} machines exist")

    def delete_nodes(self, nodes: Sequence[ProviderNode]) -> None:
        self.deletions.append(Deletion(self.clock(), self.name, tuple(nodes), self.target - len(nodes)))
        self.on_delete()
        self.target -= len(nodes)
        if not self.stays:
            self.machines = [each for each in self.machines if each not in {one.provider_id for one in nodes}]


@dataclass
class MachineHarness:
    """A leading process, and the cluster that it knows."""

    host: PluginHost
    sources: NodeGroupSources
    nodes: list[ClusterNode]
    down: ScaleDownSettings = DOWN
    policy: RecommendationPolicy = POLICY
    now: float = START
    memory: Memory = field(default_factory=Memory)
    outcomes: dict[TargetReference, ScaleOutcome] = field(default_factory=dict)
    results: list[ScaleResult] = field(default_factory=list)
    before_send: Callable[[], object] = lambda: None
    last: Decision | None = None
    left_out: tuple[str, ...] = ()
    """Why objects of the cluster are left out."""

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start another process, which has the stored part of the memory."""
        self.began = self.now
        self.memory = decode_memory("workers", encode_memory("workers", self.memory)).memory
        self.outcomes = {}
        clock = Clock(lambda: self.now, lambda: self.now)
        self.writer = ScaleWriter(
            NodeApi(),
            lambda group, kind: find_resource(BUILT_IN, group, kind),
            Fence(3.0, lambda _: True),
            ScaleHooks(
                before_write=lambda _: True, count=lambda _, result: self.results.append(result), on_result=self._note
            ),
            attempt=ProviderAttempt(HostedGroups(self.host), self.begin, self.seen, clock),
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(clock, lambda work: work()),
        )

    def begin(self, found: ScaleOutcome, _removal: NodeRemoval, _terms: SendingTerms) -> ScaleOutcome:
        raise AssertionError(f"no node is removed: {found}")

    def seen(self) -> ClusterState:
        return ClusterState(nodes=Observed(tuple(self.nodes), self.now))

    def decide(self, *, pending: int = 0, writes: bool = True) -> Decision:
        """Make one decision about so many pods that need a node each, as `run` or, without writes, as `recommend`."""
        settings = ClusterSizeSettings(self.sources, scale_down=self.down, max_node_provision_seconds=PROVISION)
        cluster = facts(tuple(self.nodes), pending=pending, now=self.now, loads=0)
        inputs = Inputs(replace(cluster, problems=self.left_out))
        decision = decide_sizes(
            self.policy, settings, inputs, self.memory, self.now, waits=writes, writes_sizes=writes, began=self.began,
            writes=self.outcomes, providers=(self.host.read(self.nodes),),
        )  # fmt: skip
        self.memory, self.outcomes, self.last = decision.memory, {}, decision
        return decision

    def step(self) -> None:
        """Make one decision, and carry it out."""
        decision = self.decide()
        self.before_send()
        self.writer.follow_writes("workers", writes_of(decision).groups.writes)
        self.writer.step()
        self.now += STEP

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / STEP)):
            self.step()

    @property
    def failed(self) -> tuple[FailedMachine, ...]:
        answer = answer_of(None if self.last is None else self.last.record)
        return () if answer is None else answer.failed_machines

    @property
    def notes(self) -> str:
        answer = answer_of(None if self.last is None else self.last.record)
        return "" if answer is None else "\n".join(answer.notes)

    def _note(self, outcome: ScaleOutcome) -> None:
        self.outcomes[outcome.write.target] = outcome


def harness_of(*groups: PluginMachines, settings: PluginGroups = PLUGIN) -> MachineHarness:
    """Return a harness in which each machine is a node whose id contains neither `lost` nor is one with an error."""
    cloud = CloudOfPlugin(list(groups))
    host = PluginHost(settings, seconds=30.0, load=lambda _: cloud)
    joined = [each for group in groups for each in group.machines if "lost" not in each and each not in group.errors]
    nodes = [node(f"node-{number}", provider_id=each, created=1.0) for number, each in enumerate(joined)]
    harness = MachineHarness(host, NodeGroupSources(plugin=settings), nodes)
    for group in groups:
        group.clock = lambda: harness.now
    return harness


def group_of(
    *machines: str, minimum: int = 0, name: str = "a", errors: Mapping[str, str] | None = None
) -> PluginMachines:
    return PluginMachines(name, list(machines), dict(errors or {}), len(machines), minimum)


SHORT = {"x:///new": "OutOfResources: no more of these in zone-a"}


def with_error(**more: object) -> PluginMachines:
    found = group_of("x:///1", "x:///2", "x:///new", errors=SHORT)
    for name, value in more.items():
        setattr(found, name, value)
    return found


def with_lost(**more: object) -> PluginMachines:
    found = group_of("x:///1", "x:///2", "x:///lost")
    for name, value in more.items():
        setattr(found, name, value)
    return found
