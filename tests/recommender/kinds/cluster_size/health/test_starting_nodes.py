"""The nodes that are starting, and the template of their group in the meantime."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import PodScheduling
from adapter.foundation.cluster.values.state import ClusterState, Observed
from recommender.kinds.cluster_size.calculate import unavailable_nodes
from recommender.kinds.cluster_size.health.starting_nodes import starting_nodes
from recommender.kinds.cluster_size.model.groups import NodeTemplate
from recommender.kinds.cluster_size.model.memory import Absence, ClusterSizeMemory
from recommender.kinds.cluster_size.model.pod_places import NodeState
from recommender.kinds.cluster_size.model.size_settings import LabelGroups, NodeGroupSources, TrustedDaemonSets
from recommender.kinds.cluster_size.model.taints import PassingTaints
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts
from tests.recommender.kinds.cluster_size.builders import READY, node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, settings, situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode

GPU = {"nvidia.com/gpu": "4"}
OWN = PassingTaints(startup=("example.com/warming",), status=("example.com/degraded",))


@pytest.mark.parametrize(
    ("stated", "awaited"),
    [
        pytest.param(node("n", extended=GPU), "", id="ready"),
        pytest.param(node("n", conditions={}), "it is not ready yet", id="no-condition"),
        pytest.param(
            node("n", conditions=READY | {"DiskPressure": "True"}, extended=GPU),
            "its condition DiskPressure",
            id="disk",
        ),
        pytest.param(node("n", conditions=READY | {"MemoryPressure": "True"}, extended=GPU), "", id="memory"),
        pytest.param(
            node("n", taints=["node.kubernetes.io/disk-pressure:NoSchedule"], extended=GPU),
            "start-up taint",
            id="taint",
        ),
        pytest.param(
            node("n", taints=["csi.example.com/agent-not-ready:NoExecute"], extended=GPU), "start-up", id="csi"
        ),
        pytest.param(node("n", taints=["example.com/warming-up=1:NoSchedule"], extended=GPU), "start-up", id="own"),
        pytest.param(node("n", taints=["example.com/degraded:NoSchedule"], extended=GPU), "", id="status"),
        pytest.param(
            node("n", taints=["status-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule"], extended=GPU),
            "",
            id="status-of-the-peer",
        ),
        pytest.param(node("n", taints=["dedicated=web:NoSchedule"], extended=GPU), "", id="of-the-group"),
        pytest.param(node("n"), "nvidia.com/gpu of the node cannot be allocated yet", id="gpus"),
        pytest.param(node("n", extended=GPU, allocatable={"nvidia.com/gpu": "0"}), "cannot be allocated", id="no-gpus"),
        pytest.param(node("n", extended={"nvidia.com/gpu": "1"}), "", id="a-broken-gpu"),
    ],
)
def test_a_young_node_that_cannot_hold_pods_yet_is_starting(stated: ClusterNode, awaited: str) -> None:
    new = replace(stated, created=NOW - 60)
    members = group("a", size=1, nodes=("n",), node_template=template(extended=GPU))
    found = starting_nodes(situation([members], nodes=[new]), settings(passing_taints=OWN))
    assert awaited in found.get("n", "")
    assert bool(awaited) is ("n" in found)


def test_a_young_node_outside_groups_or_of_a_group_without_a_template_is_judged_by_itself() -> None:
    nodes = [
        node(name, conditions=READY if name[0] == "r" else {}, created=NOW - 60) for name in ("r1", "n1", "r2", "n2")
    ]
    its = situation([replace(group("a", nodes=("r2", "n2")), template=None)], nodes=nodes)
    assert starting_nodes(its, settings()) == dict.fromkeys(("n1", "n2"), "it is not ready yet")


def test_a_node_whose_label_states_gpus_is_starting_until_it_has_them() -> None:
    labelled = node("n", labels={"cloud.google.com/gke-accelerator": "nvidia-l4"}, created=NOW - 60)
    its = situation([group("a", nodes=("n",), node_template=NodeTemplate(labelled))], nodes=[labelled])
    assert "its GPUs, which its labels state" in starting_nodes(its, settings())["n"]


def test_a_labelled_node_with_gpus_of_another_vendor_has_started() -> None:
    labelled = node(
        "n", labels={"cluster-api/accelerator": "gaudi"}, extended={"habana.ai/gaudi": "8"}, created=NOW - 60
    )
    its = situation([group("a", nodes=("n",), node_template=NodeTemplate(labelled))], nodes=[labelled])
    assert not starting_nodes(its, settings())


@pytest.mark.parametrize(
    ("others", "claims", "starting"),
    [
        pytest.param((), (), {"n"}, id="nothing is known"),
        pytest.param((), ("n",), set(), id="its own pod has devices"),
        pytest.param((("young", 60, {}),), ("young",), set(), id="a pod of another node has devices"),
        pytest.param((("old", 3600, {}),), (), set(), id="an old node has no such resource"),
        pytest.param((("young", 60, {}),), (), {"n", "young"}, id="another young node"),
        pytest.param((("old", 3600, {}), ("gpus", 3600, GPU)), (), {"n"}, id="a node whose driver has failed"),
        pytest.param((("gpus", 3600, GPU),), (), {"n"}, id="others have the resource"),
    ],
)
def test_gpus_that_are_allocated_by_claims_are_not_waited_for(
    others: tuple[tuple[str, float, dict[str, str]], ...], claims: tuple[str, ...], starting: set[str]
) -> None:
    """They never become an extended resource, so a new node would be late and its group would back off."""
    label = {"nvidia.com/gpu.present": "true"}
    nodes = [
        node(name, labels=label, extended=extended, created=NOW - age)
        for name, age, extended in (("n", 60, dict[str, str]()), *others)
    ]
    claimed = PodScheduling(resource_claims=("gpu",))
    pods = [pod(f"on-{name}", node=name, scheduling=claimed) for name in claims]
    members = group("a", nodes=[one.name for one in nodes], node_template=template(labels=label))
    assert starting_nodes(situation([members], nodes=nodes, pods=pods), settings()).keys() == starting


@pytest.mark.parametrize(
    ("age", "absence", "is_starting"),
    [(899, 0, True), (900, 0, False), (1000, 101, True), (1000, 100, False)],
)
def test_after_the_provision_time_without_absences_a_node_is_no_longer_starting(
    age: float,
    absence: float,
    is_starting: bool,  # noqa: FBT001 - a column of the table
) -> None:
    late = node("n", conditions={}, created=NOW - age)
    memory = ClusterSizeMemory(absences=(Absence(NOW - 500, NOW - 500 + absence),))
    its = situation([group("a", nodes=("n",))], nodes=[late], memory=memory)
    assert ("n" in starting_nodes(its, settings())) is is_starting


def test_a_node_without_its_gpus_is_not_used_as_the_template_of_its_group() -> None:
    bare = node("n", created=NOW - 60)
    whole = node("stated", extended=GPU)
    harness = DiscoveryFacts(NOW, {"n": bare}, (), {}, TrustedDaemonSets(), {})
    found = harness.template("a", ["n"], whole, "annotations")
    assert found is not None
    assert found.source == "annotations"
    there = replace(bare, allocatable=whole.allocatable)
    harness = DiscoveryFacts(NOW, {"n": there}, (), {}, TrustedDaemonSets(), {})
    found = harness.template("a", ["n"], whole, "annotations")
    assert found is not None
    assert found.source == "node n"


def test_temporary_taints_are_left_out_of_templates() -> None:
    taints = ["example.com/warming-up:NoSchedule", "example.com/degraded:NoSchedule", "dedicated=web:NoSchedule"]
    one = node("n", labels={"pool": "a"}, taints=[*taints, "ebs.csi.aws.com/agent-not-ready:NoExecute"])
    state = ClusterState(nodes=Observed((one,), NOW), pods=Observed((), NOW), workloads=Observed((), NOW))
    (found,) = node_groups(NodeGroupSources(by_label=LabelGroups("pool")), state, NOW, passing=OWN).groups
    assert found.template is not None
    assert [taint.key for taint in found.template.node.taints] == ["dedicated"]


@pytest.mark.parametrize(
    ("taints", "age", "state"),
    [
        (["node.cilium.io/agent-not-ready:NoExecute"], 60, NodeState.STARTING),
        (["node.cilium.io/agent-not-ready:NoExecute"], 3600, NodeState.TAINTED),
        (["example.com/warming-up=1:NoSchedule"], 3600, NodeState.TAINTED),
        (["node.kubernetes.io/disk-pressure:NoSchedule"], 3600, NodeState.TAINTED),
        (["node.cilium.io/agent-not-ready:PreferNoSchedule"], 3600, None),
        (["example.com/degraded:NoSchedule", "dedicated=web:NoSchedule"], 3600, None),
        ([], 3600, None),
    ],
)
def test_a_ready_node_that_keeps_a_startup_taint_is_reported_as_unavailable(
    taints: list[str], age: float, state: NodeState | None
) -> None:
    """Otherwise it would look idle, like a node that is merely not needed."""
    its = situation([group("a", nodes=("n",))], nodes=[node("n", taints=taints, created=NOW - age)])
    found = unavailable_nodes(its, settings(passing_taints=OWN))
    assert [one.state for one in found] == ([] if state is None else [state])
    if state is NodeState.TAINTED:
        key = taints[0].partition(":")[0].partition("=")[0]
        assert found[0].detail == f"it has the start-up taint {key}, and is older than maxNodeProvisionTime"


def test_cordoned_and_not_ready_are_reported_instead_of_a_startup_taint() -> None:
    kept = ["node.cilium.io/agent-not-ready:NoExecute"]
    nodes = [
        node("cordoned", taints=kept, created=NOW - 3600, unschedulable=True),
        node("down", taints=kept, created=NOW - 3600, conditions={}),
    ]
    its = situation([group("a", nodes=("cordoned", "down"))], nodes=nodes)
    assert [one.state for one in unavailable_nodes(its, settings())] == [NodeState.CORDONED, NodeState.NOT_READY]
