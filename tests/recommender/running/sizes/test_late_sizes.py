"""Sizes that a cloud shows late, lost answers, and processes that are killed while they request nodes.

An oracle that knows the outcome of each call requests as many nodes as there are pods.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.cluster.values.storage import Storage
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError, ProviderInstance
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Brakes, Output, RecommendationPolicy
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, PluginGroups
from recommender.kinds.cluster_size.node_groups.plugin_host import ProviderUnreachableError
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError, PluginGroup, PluginReading
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.sizes.provider_group_writer import ProviderAttempt
from recommender.running.sizes.reported_writes import WriteResults
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.test_decide import WEB
from tests.recommender.outputs.scale_harness import resolve
from tests.recommender.running.sizes.provider_harness import NodeApi, ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.node_groups.protocol import WritableNodeGroup
    from recommender.outputs.pending_writes import PendingWrite

START: Final = 1_800_000_000.0
BOOT: Final = 90.0
FAILOVER: Final = 15.0
POLICY = RecommendationPolicy("nodes", "clusterSize", outputs=frozenset({Output.SCALE}), stale_after_seconds=60.0)
SETTINGS = ClusterSizeSettings(NodeGroupSources(plugin=PluginGroups("cloud", writes=True)))


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class LateCloud:
    """Two groups of a provider; each pod needs a node of its own, and each call ends as `ends` says."""

    pods: int
    lag: float
    """Seconds until a new size and its machines are shown."""
    ends: list[str]
    now: float = START
    made: dict[str, list[float]] = field(default_factory=lambda: {"a": [START - 999.0], "b": [START - 999.0]})
    """When each machine was made, by group."""
    unanswered: int = 0
    """The number of nodes that were made by calls without an answer."""
    is_down: bool = False
    """Whether the provider cannot be reached."""

    @property
    def extra(self) -> int:
        """Return the number of nodes that were made after the first two."""
        return sum(map(len, self.made.values())) - 2

    def reading(self) -> PluginReading:
        groups = tuple(self.look("", "", name) for name in self.made)
        return PluginReading("plugin/cloud", groups, {name: name[0] for name in self.nodes()})

    def look(self, _recommendation: str, _provider: str, name: str) -> PluginGroup:
        if self.is_down:
            raise ProviderUnreachableError("no answer")
        shown = [number for number, made in enumerate(self.made[name]) if made + self.lag <= self.now]
        machines = tuple(ProviderInstance(f"x:///{name}{number}") for number in shown)
        price = 1.0 if name == "a" else 2.0
        return PluginGroup(name, 0, 50, len(shown), machines, template=node("t"), price=price, has_writes=True)

    def change(
        self, _recommendation: str, _provider: str, name: str, change: Callable[[WritableNodeGroup], None]
    ) -> None:
        change(cast("WritableNodeGroup", _Call(self, name, self.ends.pop(0) if self.ends else "ok")))

    def nodes(self) -> list[str]:
        """Return the nodes that have registered."""
        return [f"{name}{k}" for name, made in self.made.items() for k, at in enumerate(made) if at + BOOT <= self.now]

    def state(self) -> ClusterState:
        nodes = [node(name, provider_id=f"x:///{name}", created=START - 900.0) for name in self.nodes()]
        free = [one.name for one in nodes if one.name not in {"a0", "b0"}]
        pods = [self._pod("a0", "a0"), self._pod("b0", "b0")]
        pods += [self._pod(f"job-{k}", free[k] if k < len(free) else "") for k in range(self.pods)]
        facts = Storage(Observed({}, self.now), Observed({}, self.now), Observed({}, self.now), Observed({}, self.now))
        return ClusterState(
            nodes=Observed(tuple(nodes), self.now),
            pods=Observed(tuple(pods), self.now),
            workloads=Observed((WEB,), self.now),
            disruption_budgets=Observed((), self.now),
            namespace_labels=Observed({"shop": {}}, self.now),
            storage=facts,
        )

    def _pod(self, name: str, on: str) -> ClusterPod:
        return pod(name, "4", "1Gi", namespace="shop", node=on, controller="web", created=START - 900.0)


@dataclass
class _Call:
    """A group in the moment before a change."""

    cloud: LateCloud
    name: str
    end: str

    def increase_size(self, delta: int) -> None:
        if self.end == "killed before":
            raise KilledError
        if self.end == "refused":
            raise PluginError("no quota")
        if self.end != "lost":
            self.cloud.made[self.name] += [self.cloud.now] * delta
            self.cloud.unanswered += delta if self.end == "unanswered" else 0
        if self.end == "killed after":
            raise KilledError
        if self.end != "ok":
            raise OutcomeUnknownError("no answer")

    def decrease_target_size(self, delta: int) -> None:
        """Remove machines that have no node yet."""
        made = self.cloud.made[self.name]
        young = sum(at + BOOT > self.cloud.now for at in made)
        del made[len(made) - min(-delta, young) :]


class Process:
    """A leading process, which decides every ten seconds, and whose memory is stored as `run` stores it."""

    def __init__(self, cloud: LateCloud, stored: str, limit: int | None = None) -> None:
        self.cloud = cloud
        self.policy = replace(POLICY, brakes=Brakes(max_changes_per_hour=limit))
        self.stored = stored
        self.memory = decode_memory("nodes", stored).memory
        self.began = cloud.now
        self.results = WriteResults()
        clock = Clock(lambda: cloud.now, lambda: cloud.now)
        self.writer = ScaleWriter(
            NodeApi(),
            resolve,
            Fence(3.0, lambda _: True),
            ScaleHooks(before_write=self.before, count=lambda _name, _result: None, on_result=self.results.note),
            attempt=ProviderAttempt(cloud, ProviderHarness().removals.begin, ClusterState, clock),
            limits=ScaleLimits(per_second=1000.0, burst=1000),
            effects=ScaleEffects(clock, lambda work: work()),
        )

    def before(self, write: PendingWrite) -> bool:
        self.results.note_sending(write)
        return True

    def decide(self, during: Callable[[], None] = lambda: None) -> None:
        """Make one decision; `during` runs while it is made."""
        seen, sent, now = self.results.of("nodes"), self.results.sent_of("nodes"), self.cloud.now
        decision = decide_sizes(
            self.policy,
            SETTINGS,
            Inputs(self.cloud.state()),
            self.memory,
            now,
            waits=True,
            writes_sizes=True,
            writes=seen,
            sent=sent.keys(),
            providers=(self.cloud.reading(),),
            began=self.began,
        )
        during()
        self.results.drop("nodes", seen, sent)
        self.memory, self.stored = decision.memory, encode_memory("nodes", decision.memory)
        self.writer.follow_writes("nodes", writes_of(decision).groups.writes)


def run(cloud: LateCloud, seconds: int = 400) -> None:
    process, decides_at, up_at = Process(cloud, encode_memory("nodes", Memory())), START, START
    while cloud.now < START + seconds:
        try:
            if cloud.now >= max(up_at, decides_at):
                decides_at = cloud.now + 10.0
                process.decide()
            if cloud.now >= up_at:
                process.writer.step()
        except KilledError:
            up_at = cloud.now + FAILOVER
            cloud.now, stored = up_at, process.stored
            process = Process(cloud, stored)
        cloud.now += 1.0


ENDS = ("ok", "refused", "lost", "unanswered", "killed before", "killed after")


@given(
    pods=st.integers(1, 5),
    lag=st.sampled_from((0.0, 10.0, 20.0, 45.0, 60.0)),
    ends=st.lists(st.sampled_from(ENDS), max_size=5),
)
@settings(max_examples=20)
def test_no_more_nodes_are_added_than_an_oracle_requests_plus_those_of_unanswered_calls(
    pods: int, lag: float, ends: list[str]
) -> None:
    cloud = LateCloud(pods, lag, list(ends))
    run(cloud)
    assert cloud.extra <= pods + 1 + (cloud.unanswered if lag else 0)


@pytest.mark.parametrize("lag", [0.0, 10.0, 20.0, 45.0, 60.0])
def test_a_kill_during_a_scale_up_requests_no_node_twice_however_late_the_size_is_shown(lag: float) -> None:
    cloud = LateCloud(3, lag, ["killed after", "killed after"])
    run(cloud, 300)
    assert cloud.extra == 3


@pytest.mark.parametrize("seed", [0, 5, 6, 9])
def test_a_kill_during_a_late_repetition_of_a_request_requests_no_node_twice(seed: int) -> None:
    random.seed(seed)  # of the waits before repetitions
    cloud = LateCloud(2, 45.0, ["refused", "refused", "killed before", "killed after"])
    run(cloud)
    assert cloud.extra == 2


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("lag", [0.0, 20.0, 60.0, 120.0, 200.0])
def test_a_write_that_ends_while_a_decision_is_made_requests_each_node_once(
    lag: float, more: int, limit: int | None
) -> None:
    cloud = LateCloud(2, lag, [])
    process = Process(cloud, encode_memory("nodes", Memory()), limit)
    process.decide()
    cloud.now += 10.0
    cloud.pods += more
    process.decide(during=process.writer.step)
    for _ in range(300):
        process.writer.step()
        cloud.now += 1.0
        if cloud.now % 10.0 == 0.0:
            process.decide()
    assert cloud.extra == cloud.pods


@pytest.mark.parametrize("more", [0, 1])
def test_a_provider_that_is_down_after_it_accepted_a_size_is_not_asked_twice(more: int) -> None:
    cloud = LateCloud(2, 120.0, [])
    process = Process(cloud, encode_memory("nodes", Memory()))
    process.decide()
    cloud.now += 10.0
    cloud.pods += more
    process.decide(during=process.writer.step)
    cloud.is_down = True
    process.writer.step()
    cloud.is_down = False
    for _ in range(300):
        process.writer.step()
        cloud.now += 1.0
        if cloud.now % 10.0 == 0.0:
            process.decide()
    assert cloud.extra == cloud.pods


def test_the_next_decision_after_an_unanswered_call_scales_up_another_group() -> None:
    cloud = LateCloud(3, 60.0, ["lost"])
    run(cloud, 20)
    assert len(cloud.made["b"]) == 4
