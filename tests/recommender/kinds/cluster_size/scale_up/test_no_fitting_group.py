"""One sentence states what pods lack; other pods are listed with their place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling, SpreadConstraint
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, RequestedNodes
from recommender.kinds.cluster_size.model.pod_places import PlaceKind, PodOrigin
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.predicates.test_volumes import claim, storage, volume
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeTemplate

PLAIN = template()
LARGE = template("8", "32Gi")
DARK = template("8", "32Gi", taints=["dedicated=batch:NoSchedule"])
FAST = template(labels={"disk": "nvme"})
GPUS = template("16", "64Gi", extended={"nvidia.com/gpu": "2"})
WITH_AGENT = template(pods=[pod("agent", "500m", "1Gi", controller=controller("agent", "DaemonSet"))])
CROWDED = template(max_pods=1, pods=[pod("agent", controller=controller("agent", "DaemonSet"))])
OVERFULL = template("1", pods=[pod("agent", "2", controller=controller("agent", "DaemonSet"))])
NVME = PodScheduling(node_selector=(("disk", "nvme"),))


def requiring(*terms: NodeSelectorTerm) -> PodScheduling:
    return PodScheduling(node_terms=terms)


def term(key: str, operator: Operator, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("waiting", "groups", "missing"),
    [
        pytest.param(
            pod("p", scheduling=NVME),
            {"a": PLAIN, "b": PLAIN, "c": PLAIN},
            "needs disk=nvme; no group has it",
            id="label",
        ),
        pytest.param(
            pod("p", "8", "32Gi", extended={"nvidia.com/gpu": "8"}),
            {"a": PLAIN, "gpu": GPUS},
            "needs 8 nvidia.com/gpu; the most on a new node is 2 (gpu)",
            id="the resource that all lack",
        ),
        pytest.param(
            pod("p", extended={"example.com/fpga": "1"}),
            {"a": PLAIN},
            "needs 1 example.com/fpga; no group has it",
            id="a resource that no group has",
        ),
        pytest.param(
            pod("p", "3750m"),
            {"a": WITH_AGENT},
            "needs 3750m cpu; the most on a new node is 3500m (a)",
            id="resources left by DaemonSets",
        ),
        pytest.param(
            pod("p"),
            {"a": CROWDED, "b": DARK},
            "a would do but for room for one more pod; b would do but for a toleration of dedicated=batch:NoSchedule",
            id="the number of pods",
        ),
        pytest.param(
            pod("p", "2"),
            {"a": OVERFULL, "b": DARK},
            "a would do but for 2 cpu (a new node has 0); "
            "b would do but for a toleration of dedicated=batch:NoSchedule",
            id="DaemonSets that take more than there is",
        ),
        pytest.param(
            pod("p", memory="20Gi"),
            {"a": PLAIN, "b": PLAIN},
            "needs 20Gi memory; the most on a new node is 16Gi (a, b)",
            id="units",
        ),
        pytest.param(
            pod("p", "6"),
            {"a": PLAIN, "b": DARK},
            "a would do but for 6 cpu (a new node has 4); "
            "b would do but for a toleration of dedicated=batch:NoSchedule",
            id="each group lacks another resource",
        ),
        pytest.param(
            pod("p"),
            {"a": DARK, "b": DARK},
            "needs a toleration of dedicated=batch:NoSchedule; every group has this taint",
            id="the pod lacks the toleration, not the group",
        ),
        pytest.param(
            pod("p", scheduling=PodScheduling(spread=(SpreadConstraint("rack", 1, parse_selector("app=x")),))),
            {"a": PLAIN, "b": PLAIN, "c": DARK},
            "a, b refuse it: node(s) didn't match pod topology spread constraints (missing required label) (rack); "
            "c would do but for a toleration of dedicated=batch:NoSchedule",
            id="a refusal of the scheduler is a separate clause",
        ),
        pytest.param(
            pod("p", "6", scheduling=NVME),
            {"fast": FAST, "large": LARGE, "other": LARGE},
            "fast would do but for 6 cpu (a new node has 4); large, other would do but for disk=nvme",
            id="equal groups once",
        ),
        pytest.param(
            pod("p", scheduling=requiring(term("zone", Operator.IN, "z1"))),
            {"a": PLAIN},
            "needs zone=z1; no group has it",
            id="affinity of one value",
        ),
        pytest.param(
            pod("p", scheduling=requiring(term("zone", Operator.IN, "z1", "z2"), term("disk", Operator.EXISTS))),
            {"a": PLAIN},
            "needs zone in (z1,z2) or the label disk; no group has it",
            id="one of several terms",
        ),
        pytest.param(
            pod("p", scheduling=PodScheduling(spread=(SpreadConstraint("rack", 1, parse_selector("app=x")),))),
            {"a": PLAIN},
            "every group refuses it: "
            "node(s) didn't match pod topology spread constraints (missing required label) (rack)",
            id="another filter",
        ),
    ],
)
def test_one_sentence_states_what_is_missing(
    waiting: ClusterPod, groups: dict[str, NodeTemplate], missing: str
) -> None:
    named = [group(name, node_template=its) for name, its in groups.items()]
    [left] = decided(situation(named, pods=[waiting])).unschedulable
    assert left.missing == missing


def test_a_limit_is_reported_if_a_group_could_hold_the_pod() -> None:
    full = replace(group("a", size=1, nodes=("n0",)), max_size=1)
    its = situation([full, group("b", node_template=DARK)], nodes=[node("n0", "1")], pods=[pod("p", "3")])
    [left] = decided(its).unschedulable
    assert left.missing == "a would do, but its maximum of 1 node is reached"


def test_the_zone_of_a_volume_is_reported_before_a_missing_toleration() -> None:
    known = storage([claim(volume="v")], [volume("v", "z1")])
    waiting = pod("p", namespace="shop", scheduling=PodScheduling(claims=("data",)))
    groups = [group("a", node_template=PLAIN), group("b", node_template=DARK)]
    [left] = decided(situation(groups, pods=[waiting], storage=known)).unschedulable
    assert left.missing == (
        "every group refuses it: node(s) didn't match PersistentVolume's node affinity "
        "(volume v: topology.kubernetes.io/zone in (z1))"
    )


def test_without_groups_the_pod_is_reported_as_not_judged() -> None:
    [left] = decided(situation([], pods=[pod("p")])).unschedulable
    assert left.missing == "no node group can be judged"


def test_each_pod_is_reported_with_its_place() -> None:
    starting = node("n1", conditions={"Ready": "False"}, created=NOW - 5)
    nodes = [node("n0", "2"), starting]
    vip = pod("vip", "4")
    assert vip.facts is not None
    its = situation(
        [group("a", size=2, nodes=("n0", "n1"))],
        nodes=nodes,
        pods=[
            pod("busy", "1", node="n0"),
            pod("fits", "1", controller="web"),
            pod("soon", "3"),
            pod("more", "4"),
            replace(vip, facts=replace(vip.facts, nominated_node="n0")),
        ],
    )
    its = replace(its, displaced_pods={("default", "fits"): "gone"})
    found = {place.pod.name: place for place in decided(its).places}
    assert {name: (place.kind, place.node, place.group) for name, place in found.items()} == {
        "vip": (PlaceKind.NOMINATED, "n0", "a"),
        "soon": (PlaceKind.UPCOMING, "n1", "a"),
        "more": (PlaceKind.NEW, "", "a"),
        "fits": (PlaceKind.UPCOMING, "n1", "a"),
    }
    assert (found["fits"].origin, found["fits"].source, found["fits"].pod.owner) == (PodOrigin.MOVED, "gone", "web")


def test_a_pod_on_a_minimum_size_node_or_a_requested_one_is_reported_with_its_group() -> None:
    requested = ClusterSizeMemory(requested={"b": RequestedNodes(1, NOW - 5)})
    groups = [
        group("a", min_size=1, node_template=template(labels={"pool": "a"})),
        group("b", size=1, node_template=template(labels={"pool": "b"})),
    ]
    waiting = [pod(name, scheduling=PodScheduling(node_selector=(("pool", name),))) for name in "ab"]
    its = situation(groups, pods=waiting, memory=requested, writes_sizes=True)
    found = {place.pod.name: place for place in decided(its).places}
    assert {name: (place.kind, place.node, place.group) for name, place in found.items()} == {
        "a": (PlaceKind.NEW, "", "a"),
        "b": (PlaceKind.UPCOMING, "", "b"),
    }
