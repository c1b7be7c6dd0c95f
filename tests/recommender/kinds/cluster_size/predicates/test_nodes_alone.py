"""Filters that check a node's labels and taints, its ports and its resources."""

from __future__ import annotations

import pytest

from adapter.foundation.cluster.values.constraints import HostPort, NodeSelectorTerm, PodScheduling, Toleration
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod, Taint
from adapter.foundation.objects.requirements import Operator, Requirement
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

UNMATCHED = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"


def refusals(one: ClusterNode, pending: ClusterPod, *placed: ClusterPod) -> tuple[Refusal, ...]:
    snapshot = Snapshot([one], placed)
    judge = PodFilter(snapshot, snapshot.shape(pending))
    info = snapshot.nodes[one.name]
    found = judge.refusals(info)
    assert judge.fits(info) == (not found)
    return found


def term(key: str, operator: Operator, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(labels=(Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("effect", "tolerations", "is_refused"),
    [
        ("NoSchedule", (), True),
        ("NoExecute", (), True),
        ("PreferNoSchedule", (), False),
        ("NoSchedule", (Toleration("team", "Equal", "a"),), False),
        ("NoSchedule", (Toleration("team", "Equal", "b"),), True),
        ("NoSchedule", (Toleration("team", "Exists", "", "NoExecute"),), True),
        ("NoSchedule", (Toleration("team", "Exists", "", "NoSchedule"),), False),
        ("NoExecute", (Toleration("", "Exists"),), False),
        ("NoSchedule", (Toleration("", "Equal", "a"),), False),
        ("NoSchedule", (Toleration("other", "Exists"),), True),
    ],
)
def test_taints_refuse_pods_without_a_toleration(
    effect: str, tolerations: tuple[Toleration, ...], *, is_refused: bool
) -> None:
    tainted = node("n", taints=(Taint("team", "a", effect),))
    found = refusals(tainted, pod("p", scheduling=PodScheduling(tolerations=tolerations)))
    assert found == ((Refusal("TaintToleration", TAINTED, f"team=a:{effect}"),) if is_refused else ())


def test_numeric_tolerations_are_off_by_default() -> None:
    tainted = node("n", taints=(Taint("sla", "900", "NoSchedule"),))
    tolerations = (Toleration("sla", "Gt", "800"), Toleration("sla", "Lt", "950"))
    assert refusals(tainted, pod("p", scheduling=PodScheduling(tolerations=tolerations)))


def test_a_cordoned_node_takes_pods_that_tolerate_its_taint() -> None:
    cordoned = node("n", unschedulable=True)
    assert refusals(cordoned, pod("p")) == (Refusal("NodeUnschedulable", "node(s) were unschedulable"),)
    agent = PodScheduling(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),))
    assert refusals(cordoned, pod("p", scheduling=agent)) == ()


@pytest.mark.parametrize(
    ("scheduling", "matches"),
    [
        (PodScheduling(node_selector=(("disk", "ssd"), ("zone", "a"))), True),
        (PodScheduling(node_selector=(("disk", "ssd"), ("zone", "b"))), False),
        (PodScheduling(node_selector=(("absent", ""),)), False),
        (PodScheduling(node_terms=()), False),
        (PodScheduling(node_terms=(NodeSelectorTerm(),)), False),
        (PodScheduling(node_terms=(NodeSelectorTerm(), term("zone", Operator.IN, "a", "b"))), True),
        (PodScheduling(node_terms=(term("zone", Operator.IN, "b"), term("disk", Operator.EXISTS))), True),
        (PodScheduling(node_selector=(("zone", "b"),), node_terms=(term("disk", Operator.EXISTS),)), False),
        (PodScheduling(node_terms=(term("absent", Operator.NOT_IN, "x"),)), True),
        (PodScheduling(node_terms=(term("cores", Operator.GREATER_THAN, "15"),)), True),
        (PodScheduling(node_terms=(term("cores", Operator.LESS_THAN, "16"),)), False),
        (PodScheduling(node_terms=(NodeSelectorTerm(name_not_in=("n",)),)), False),
        (PodScheduling(node_terms=(NodeSelectorTerm(name_not_in=("m",)),)), True),
        (PodScheduling(node_terms=(NodeSelectorTerm(name_in=("n",)),)), True),
    ],
)
def test_node_selector_and_one_affinity_term_must_match(scheduling: PodScheduling, *, matches: bool) -> None:
    labelled = node("n", labels={"disk": "ssd", "zone": "a", "cores": "16"})
    found = refusals(labelled, pod("p", scheduling=scheduling))
    assert found == (() if matches else (Refusal("NodeAffinity", UNMATCHED),))


def test_nodes_not_named_by_the_terms_are_refused_before_all_filters() -> None:
    terms = (NodeSelectorTerm(name_in=("a",)), NodeSelectorTerm(name_in=("b",)))
    named = pod("p", scheduling=PodScheduling(node_terms=terms))
    others = Refusal("NodeAffinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]")
    assert refusals(node("c", unschedulable=True), named) == (others,)
    assert refusals(node("b"), named) == ()
    open_to_all = pod("p", scheduling=PodScheduling(node_terms=(*terms, term("zone", Operator.EXISTS))))
    assert refusals(node("c"), open_to_all) == (Refusal("NodeAffinity", UNMATCHED),)


def test_conflicting_terms_refuse_every_node() -> None:
    snapshot = Snapshot([node("n")], [])
    conflicting = PodScheduling(node_terms=(NodeSelectorTerm(name_in=()),))
    judge = PodFilter(snapshot, snapshot.shape(pod("p", scheduling=conflicting)))
    assert judge.problem == Refusal("NodeAffinity", "pod affinity terms conflict")
    assert PodFilter(snapshot, snapshot.shape(pod("q"))).problem is None


@pytest.mark.parametrize(
    ("used", "wanted", "is_free"),
    [
        (HostPort("TCP", "0.0.0.0", 80), HostPort("TCP", "0.0.0.0", 80), False),
        (HostPort("TCP", "0.0.0.0", 80), HostPort("TCP", "127.0.0.1", 80), False),
        (HostPort("TCP", "127.0.0.1", 80), HostPort("TCP", "0.0.0.0", 80), False),
        (HostPort("TCP", "127.0.0.1", 80), HostPort("TCP", "127.0.0.2", 80), True),
        (HostPort("TCP", "0.0.0.0", 80), HostPort("UDP", "0.0.0.0", 80), True),
        (HostPort("TCP", "0.0.0.0", 80), HostPort("TCP", "0.0.0.0", 81), True),
    ],
)
def test_host_ports_conflict_by_protocol_number_and_address(used: HostPort, wanted: HostPort, *, is_free: bool) -> None:
    holder = pod("holder", node="n", scheduling=PodScheduling(host_ports=(used,)))
    found = refusals(node("n"), pod("p", scheduling=PodScheduling(host_ports=(wanted,))), holder)
    words = "node(s) didn't have free ports for the requested pod ports"
    assert found == (() if is_free else (Refusal("NodePorts", words),))


def test_missing_resources_are_listed_in_the_scheduler_s_order() -> None:
    small = node("n", allocatable={"cpu": "1", "memory": "1Ki", "pods": "1", "nvidia.com/gpu": "1"})
    holder = pod("holder", node="n", requests={"cpu": 600, "nvidia.com/gpu": 1})
    asked = {"nvidia.com/gpu": 1, "memory": 1024, "cpu": 500}
    found = refusals(small, pod("p", requests=asked), holder)
    assert [(one.reason, one.detail) for one in found] == [
        ("Too many pods", "1 of 1"),
        ("Insufficient cpu", "500m requested, 400m of 1 left"),
        ("Insufficient nvidia.com/gpu", "1 requested, 0 of 1 left"),
    ]


@pytest.mark.parametrize(
    ("allocatable", "asked", "reasons"),
    [
        ({"cpu": "1", "pods": "1"}, {"cpu": 1000}, []),
        ({"cpu": "1", "pods": "1"}, {"cpu": 1001}, ["Insufficient cpu"]),
        ({"cpu": "1", "pods": "1"}, {}, []),
        ({"cpu": "1"}, {}, ["Too many pods"]),
        ({"pods": "1"}, {"ephemeral-storage": 1}, ["Insufficient ephemeral-storage"]),
        ({"pods": "1"}, {"example.com/x": 1}, ["Insufficient example.com/x"]),
        ({"pods": "1"}, {"example.com/x": 0}, []),
        ({"pods": "1"}, {"not-counted": 1}, []),
    ],
)
def test_requests_must_fit_into_allocatable_resources(
    allocatable: dict[str, str], asked: dict[str, int], reasons: list[str]
) -> None:
    found = refusals(node("n", allocatable=allocatable), pod("p", requests=asked))
    assert [one.reason for one in found] == reasons


@pytest.mark.parametrize(
    ("scheduling", "at_most", "room"),
    [
        (PodScheduling(), 100, 5),
        (PodScheduling(), 3, 3),
        (PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),)), 100, 1),
        (PodScheduling(node_selector=(("zone", "b"),)), 100, 0),
    ],
)
def test_room_is_how_many_pods_fit_one_after_another(scheduling: PodScheduling, at_most: int, room: int) -> None:
    snapshot = Snapshot([node("n")], [pod("holder", node="n", requests={"cpu": 100})])
    judge = PodFilter(snapshot, snapshot.shape(pod("p", requests={"cpu": 700, "memory": 1}, scheduling=scheduling)))
    info = snapshot.nodes["n"]
    assert judge.room(info, at_most) == room
    assert (info.requested, info.pod_count) == ({"cpu": 100}, 1)


def test_the_first_node_that_fits_is_found() -> None:
    snapshot = Snapshot([node("a", unschedulable=True), node("b"), node("c")], [])
    found = PodFilter(snapshot, snapshot.shape(pod("p"))).first_fit(snapshot.nodes.values())
    assert found is snapshot.nodes["b"]
    assert PodFilter(snapshot, snapshot.shape(pod("p", requests={"cpu": 5000}))).first_fit([found]) is None
