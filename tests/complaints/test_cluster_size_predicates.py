"""Requests of users of cluster autoscalers that the scheduler's filters on a snapshot meet."""

from __future__ import annotations

from dataclasses import replace

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NodeSelectorTerm,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
)
from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.cluster.values.storage import Storage, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

ZONE = "topology.kubernetes.io/zone"
WEB = parse_selector("app=web")


def storage(claim: VolumeClaim, *volumes: Volume) -> Storage:
    late = StorageClassFacts("late", "csi.example.com", binds_at_first_consumer=True)
    return Storage(
        claims=Observed({(claim.namespace, claim.name): claim}, 0),
        volumes=Observed({one.name: one for one in volumes}, 0),
        classes=Observed({"late": late}, 0),
        csi_nodes=Observed({}, 0),
    )


def test_a_volume_of_a_zone_without_nodes_is_the_reason_that_is_given__autoscaler_4739() -> None:
    terms = (NodeSelectorTerm((Requirement(ZONE, Operator.IN, ("c",)),)),)
    bound = VolumeClaim("shop", "data", "v", "late", is_bound=True)
    known = storage(bound, Volume("v", {}, terms, "late", 1))
    snapshot = Snapshot([node("a", labels={ZONE: "a"})], [], known)
    judge = PodFilter(snapshot, snapshot.shape(pod("db-0", scheduling=PodScheduling(claims=("data",)))))
    found = {zone: judge.refusals(snapshot.add_node(node(f"new-{zone}", labels={ZONE: zone}))) for zone in ("b", "c")}
    assert {zone: [one.reason for one in why] for zone, why in found.items()} == {
        "b": ["node(s) didn't match PersistentVolume's node affinity"],
        "c": [],
    }


def test_free_storage_of_a_driver_does_not_rule_out_a_new_node__autoscaler_9700() -> None:
    unbound = VolumeClaim("shop", "data", "", "late", is_bound=False, request_bytes=1 << 40)
    snapshot = Snapshot([], [], storage(unbound))
    judge = PodFilter(snapshot, snapshot.shape(pod("db-0", scheduling=PodScheduling(claims=("data",)))))
    assert judge.fits(snapshot.add_node(node("new")))


def test_pods_that_avoid_each_other_fill_the_nodes_there_are_first__autoscaler_4099() -> None:
    apart = PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, WEB, frozenset({"shop"})),))
    snapshot = Snapshot([node(f"n{index}") for index in range(3)], [])
    web = pod("web", labels={"app": "web"}, scheduling=apart)
    judge = PodFilter(snapshot, snapshot.shape(web))
    places = []
    for index in range(4):
        info = judge.first_fit(snapshot.nodes.values()) or snapshot.add_node(node("new"))
        snapshot.place(replace(web, name=f"web-{index}"), info.node.name)
        places.append(info.node.name)
    assert places == ["n0", "n1", "n2", "new"]


def test_a_removed_node_is_not_a_topology_domain_any_more__autoscaler_9287() -> None:
    spread = PodScheduling(spread=(SpreadConstraint(ZONE, 1, WEB),))
    pods = [
        pod(f"web-{index}", node=place, labels={"app": "web"}, scheduling=spread)
        for index, place in enumerate(("a1", "b1", "c1"))
    ]
    snapshot = Snapshot([node(name, labels={ZONE: name[0]}) for name in ("a1", "b1", "c1")], pods)
    judge = PodFilter(snapshot, snapshot.shape(pods[0]))
    assert [one.name for one in snapshot.remove_node("c1")] == ["web-2"]
    assert [info.node.name for info in snapshot.nodes.values() if judge.fits(info)] == ["a1", "b1"]


def test_the_scheduler_counts_a_node_that_can_hold_nothing_as_a_domain__autoscaler_9111() -> None:
    spread = PodScheduling(spread=(SpreadConstraint(ZONE, 1, WEB),))
    nodes = [
        node("a1", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b"}, unschedulable=True),
    ]
    web = pod("web-0", node="a1", labels={"app": "web"}, scheduling=spread)
    snapshot = Snapshot(nodes, [web])
    judge = PodFilter(snapshot, snapshot.shape(web))
    assert {name: judge.refusals(info)[0].reason for name, info in snapshot.nodes.items()} == {
        "a1": "node(s) didn't match pod topology spread constraints",
        "b1": "node(s) were unschedulable",
    }
