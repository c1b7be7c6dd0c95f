"""Nodes that come late, incomplete or never, and an API server outage, over a whole sequence of decisions.

An oracle that knows the fate of each node requests the fewest that hold all pods; no sequence requests more than one
node beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.cluster.values.storage import Storage
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.model.taints import PassingTaints
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, size_memory, writes_of
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    CAPACITY,
    MAX,
    MIN,
    cluster,
    machines_of,
    scalable,
    state,
)
from tests.recommender.kinds.cluster_size.test_decide import WEB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, ClusterState
    from recommender.decisions.loop import Decision
    from recommender.outputs.pending_writes import PendingWrite

START: Final = 1_800_000_000.0
NEVER: Final = 10**9
GPU: Final = "nvidia.com/gpu"
PROVISION: Final = 600.0
POLICY = RecommendationPolicy("workers", "clusterSize", outputs=frozenset({Output.SCALE}), stale_after_seconds=60.0)
SETTINGS = ClusterSizeSettings(
    NodeGroupSources(cluster_api=ClusterApiGroups(("capi",))),
    max_node_provision_seconds=PROVISION,
    passing_taints=PassingTaints(startup=("example.com/warming",)),
)
SIZE = {
    MIN: "0",
    MAX: "50",
    f"{CAPACITY}cpu": "4",
    f"{CAPACITY}memory": "16Gi",
    f"{CAPACITY}gpu-type": GPU,
    f"{CAPACITY}gpu-count": "1",
}


@dataclass(frozen=True)
class Fate:
    """The fate of a node: seconds from the request until it registers, and from then until each part is there."""

    registered: int = 30
    ready: int = 10
    gpus: int = 20
    network: int = 0
    taint: tuple[str, int] = ("startup-taint.cluster-autoscaler.kubernetes.io/x", 0)
    condition: tuple[str, int] = ("NetworkUnavailable", 0)

    @property
    def is_useful(self) -> bool:
        parts = (self.ready, self.gpus, self.network, self.taint[1], self.condition[1])
        return self.registered < NEVER and max(parts) < NEVER

    def node(self, name: str, registered: float, now: float) -> ClusterNode:
        """Return the Node as the API server has it at a moment."""
        age = now - registered
        taints = [f"{self.taint[0]}:NoSchedule"] if age < self.taint[1] else []
        taints += ["node.cilium.io/agent-not-ready:NoExecute"] if age < self.network else []
        taints += ["node.kubernetes.io/not-ready:NoSchedule"] if age < self.ready else []
        conditions = {"Ready": "True" if age >= self.ready else "False"}
        conditions |= {self.condition[0]: "True"} if age < self.condition[1] else {}
        extended = {GPU: "1"} if age >= self.gpus else {}
        return node(name, taints=taints, conditions=conditions, extended=extended, created=registered)

    def holds_pods(self, registered: float, now: float) -> bool:
        its = self.node("any", registered, now)
        return its.ready and not its.taints and GPU in its.allocatable and self.condition[1] <= now - registered


@dataclass
class Cloud:
    """A group of GPU nodes behind Cluster API; each pod needs a node of its own."""

    fates: Sequence[Fate]
    arrivals: Sequence[int]
    """When each pod is created, in seconds after the start."""
    away: tuple[int, int] = (0, 0)
    """When the outage of the API server begins and ends, in seconds after the start."""
    leaves: Sequence[int] = ()
    """When each pod is deleted, in seconds after the start; pods without an entry stay."""
    requested: list[float] = field(default_factory=list)
    """When each node was requested, in the order of the fates."""
    cancelled: set[int] = field(default_factory=set)
    bound: dict[str, int] = field(default_factory=dict)
    """The node of each pod."""

    @property
    def size(self) -> int:
        return len(self.requested) - len(self.cancelled)

    def registered(self, now: float) -> dict[int, float]:
        """Return when each current node registered; nothing changes during an outage of the API server."""
        begins, ends = START + self.away[0], START + self.away[1]
        found: dict[int, float] = {}
        for number, asked in enumerate(self.requested):
            at = asked + self.fates[number].registered
            if asked < begins <= at:
                at += ends - begins
            if number not in self.cancelled and at <= now:
                found[number] = at
        return found

    def step(self, now: float) -> None:
        """Delete the pods that are due, and let the scheduler place the existing ones."""
        self.bound = {name: node for name, node in self.bound.items() if self._lives(name, now)}
        for name in self.pending(now):
            for number, at in self.registered(now).items():
                if number not in self.bound.values() and self.fates[number].holds_pods(at, now):
                    self.bound[name] = number
                    break

    def pending(self, now: float) -> list[str]:
        made = (f"job-{number}" for number, at in enumerate(self.arrivals) if START + at <= now)
        return [name for name in made if name not in self.bound and self._lives(name, now)]

    def _lives(self, name: str, now: float) -> bool:
        number = int(name.removeprefix("job-"))
        return number >= len(self.leaves) or now < START + self.leaves[number]

    def resize(self, size: int, now: float) -> None:
        while self.size < size:
            self.requested.append(now)
        gone = [number for number in range(len(self.requested)) if number not in self.cancelled]
        for number in sorted(set(gone) - self.registered(now).keys(), reverse=True):
            if self.size > size:
                self.cancelled.add(number)
        assert self.size == size, "only nodes that do not exist are given up"

    def state(self, now: float) -> ClusterState:
        names = {number: f"n{number}" for number in self.registered(now)}
        nodes = tuple(self.fates[number].node(names[number], at, now) for number, at in self.registered(now).items())
        group = scalable("a", self.size, annotations=SIZE, status={"readyReplicas": sum(one.ready for one in nodes)})
        machine_set, machines = machines_of("a", *names.values())
        found = state(cluster(), group, machine_set, *machines)
        pods = [self._pod(name, names[number]) for name, number in self.bound.items()]
        pods += [self._pod(name, "") for name in self.pending(now)]
        return replace(
            found,
            objects={
                kind: replace(fact, time=now) if isinstance(fact, Observed) else fact
                for kind, fact in found.objects.items()
            },
            nodes=Observed(nodes, now),
            pods=Observed(tuple(pods), now),
            workloads=Observed((WEB,), now),
            disruption_budgets=Observed((), now),
            namespace_labels=Observed({"shop": {}}, now),
            storage=Storage(Observed({}, now), Observed({}, now), Observed({}, now), Observed({}, now)),
        )

    def _pod(self, name: str, on: str) -> ClusterPod:
        created = START + self.arrivals[int(name.removeprefix("job-"))]
        return pod(name, "1", "1Gi", namespace="shop", node=on, controller="web", extended={GPU: "1"}, created=created)


def run(cloud: Cloud, seconds: int, step: int = 15) -> Decision | None:
    """Decide every `step` seconds; return the last decision."""
    memory, found, known = Memory(), None, None
    outcomes: Mapping[object, ScaleOutcome] = {}
    for elapsed in range(0, seconds, step):
        now = START + elapsed
        cloud.step(now)
        is_away = cloud.away[0] <= elapsed < cloud.away[1]
        known = known if is_away and known is not None else cloud.state(now)
        decision = decide_sizes(
            POLICY, SETTINGS, Inputs(known), memory, now, waits=True, writes_sizes=True, writes=outcomes
        )
        memory, outcomes = decision.memory, {}
        if decision.writes is None:
            assert is_away, decision.record.message
            continue
        found = decision
        for write in writes_of(decision).groups.writes:
            outcomes = {**outcomes, write.target: _written(cloud, write, now, is_away=is_away)}
        _no_useful_node_is_removed(cloud, decision, now)
    return found


def _written(cloud: Cloud, write: PendingWrite, now: float, *, is_away: bool) -> ScaleOutcome:
    if is_away:
        return ScaleOutcome(write, ScaleResult.ERROR, message="no route to host", is_of_the_server=True)
    cloud.resize(write.replicas, now)
    return ScaleOutcome(write, ScaleResult.OK)


def _no_useful_node_is_removed(cloud: Cloud, decision: Decision, now: float) -> None:
    answer = answer_of(decision.record)
    assert answer is not None
    ages = {f"n{number}": now - at for number, at in cloud.registered(now).items()}
    young = {
        name
        for name, age in ages.items()
        if age < PROVISION and not cloud.fates[int(name[1:])].holds_pods(now - age, now)
    }
    assert not young & {one.node for one in answer.removals}


def oracle(cloud: Cloud) -> int:
    """Return the fewest nodes, in the order in which they register, that hold the most pods that exist at once."""
    most = max(len(_pods_at(cloud, at)) for at in cloud.arrivals)
    useful = 0
    for count, fate in enumerate(cloud.fates):
        if useful == most:
            return count
        useful += fate.is_useful
    return len(cloud.fates)


def _pods_at(cloud: Cloud, elapsed: int) -> list[int]:
    """Return the pods that exist `elapsed` seconds after the start."""
    leaves = [*cloud.leaves, *[NEVER] * len(cloud.arrivals)]
    return [number for number, at in enumerate(cloud.arrivals) if at <= elapsed < leaves[number]]


LATE = st.sampled_from((0, 5, 40, 90, 240, 400))
SOMETIMES_NEVER = st.one_of(LATE, LATE, LATE, st.just(NEVER))
FATES = st.builds(
    Fate,
    registered=st.one_of(st.sampled_from((5, 60, 150)), st.sampled_from((5, 60, 150)), st.just(NEVER)),
    ready=LATE,
    gpus=SOMETIMES_NEVER,
    network=LATE,
    taint=st.tuples(
        st.sampled_from(
            (
                "startup-taint.cluster-autoscaler.kubernetes.io/x",
                "ignore-taint.cluster-autoscaler.kubernetes.io/x",
                "ebs.csi.aws.com/agent-not-ready",
                "karpenter.sh/unregistered",
                "node.kubernetes.io/network-unavailable",
                "node.kubernetes.io/not-ready",
                "example.com/warming",
                "example.com/warming-up",
            )
        ),
        SOMETIMES_NEVER,
    ),
    condition=st.tuples(st.sampled_from(("NetworkUnavailable", "DiskPressure")), LATE),
)


@given(
    fates=st.lists(FATES, min_size=3, max_size=8),
    pods=st.lists(
        st.tuples(st.sampled_from((0, 15, 100, 300, 700)), st.sampled_from((10, 60, 400, NEVER, NEVER, NEVER))),
        min_size=1,
        max_size=5,
    ),
    away=st.one_of(st.just((0, 0)), st.tuples(st.integers(10, 700), st.integers(5, 400))),
)
@settings(max_examples=50)
def test_no_sequence_requests_more_than_an_oracle_plus_one_node(
    fates: list[Fate], pods: list[tuple[int, int]], away: tuple[int, int]
) -> None:
    arrivals, leaves = [at for at, _ in pods], [at + lives for at, lives in pods]
    cloud = Cloud([*fates, *([Fate()] * 30)], arrivals, (away[0], away[0] + away[1]), leaves)
    run(cloud, 1500, step=20)
    assert len(cloud.requested) <= oracle(cloud) + 1


@pytest.mark.parametrize(
    "fate",
    [
        pytest.param(Fate(gpus=75), id="gpus-75-s-after-ready"),
        pytest.param(Fate(taint=("startup-taint.cluster-autoscaler.kubernetes.io/x", 45)), id="start-up-taint"),
        pytest.param(Fate(network=60), id="taint-of-the-network"),
        pytest.param(Fate(taint=("node.kubernetes.io/not-ready", 30)), id="not-ready-outlives-ready"),
        pytest.param(Fate(condition=("NetworkUnavailable", 50)), id="condition"),
        pytest.param(Fate(taint=("example.com/warming", 90)), id="of-the-configuration"),
    ],
)
def test_no_second_node_is_requested_while_one_starts_slowly(fate: Fate) -> None:
    cloud = Cloud([fate] * 9, [0])
    run(cloud, 400)
    assert len(cloud.requested) == 1
    assert cloud.bound == {"job-0": 0}


def test_a_node_whose_gpus_never_appear_is_replaced_after_the_provision_time_and_a_back_off() -> None:
    cloud = Cloud([Fate(gpus=NEVER), *[Fate()] * 9], [0])
    run(cloud, int(PROVISION) + 240)
    assert len(cloud.requested) == 1
    cloud = Cloud([Fate(gpus=NEVER), *[Fate()] * 9], [0])
    run(cloud, int(PROVISION) + 600)
    assert cloud.bound == {"job-0": 1}


@pytest.mark.parametrize("length", [5, 65, 300])
@pytest.mark.parametrize("begins", [0, 40, 500, 600])
def test_during_an_api_server_outage_nothing_backs_off_or_is_requested_twice(begins: int, length: int) -> None:
    cloud = Cloud([Fate(registered=550, ready=10, gpus=45)] * 9, [0, 15], (max(begins, 1), begins + length))
    last = run(cloud, 1400, step=20)
    assert len(cloud.requested) == 2
    assert len(cloud.bound) == 2
    assert last is not None
    assert size_memory(last).back_offs == {}


def test_a_size_that_could_not_be_written_is_written_once_the_server_is_back() -> None:
    cloud = Cloud([Fate()] * 9, [0], (15, 105))
    # The first decision waits until the pod is old enough; the second one cannot write.
    run(cloud, 400)
    assert [at - START for at in cloud.requested] in ([105.0], [0.0])
