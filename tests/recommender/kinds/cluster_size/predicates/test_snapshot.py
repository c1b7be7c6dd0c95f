"""The snapshot is a working copy of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import HostPort, PodScheduling
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo


def state(snapshot: Snapshot) -> list[tuple[str, dict[str, int], list[tuple[str, str]], int]]:
    return [(info.node.name, dict(info.requested), list(info.pods), info.pod_count) for info in snapshot.nodes.values()]


def taken(info: NodeInfo) -> list[tuple[str, int]]:
    return [key for key, addresses in info.ports.items() if addresses]


def test_bound_pods_that_have_not_ended_take_their_requests() -> None:
    pods = [
        pod("a", node="n1", requests={"cpu": 500, "memory": 1}),
        pod("b", node="n1", requests={"cpu": 250, "odd": 3}),
        pod("done", node="n1", requests={"cpu": 1}, phase="Succeeded"),
        pod("pending", requests={"cpu": 1}),
        pod("lost", node="gone", requests={"cpu": 1}),
        pod("a", node="n2", requests={"cpu": 7}),
    ]
    snapshot = Snapshot([node("n1"), node("n2"), node("n1", allocatable={})], pods)
    assert state(snapshot) == [
        ("n1", {"cpu": 750, "memory": 1}, [("shop", "a"), ("shop", "b")], 2),
        ("n2", {}, [], 0),
    ]
    assert snapshot.nodes["n1"].allocatable == {"cpu": 4000, "memory": 8 << 30, "pods": 110}


def test_pods_with_equal_scheduling_properties_share_one_shape() -> None:
    snapshot = Snapshot([], [])
    ports = PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),))
    same = PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),))
    web = snapshot.shape(pod("a", labels={"app": "web"}, requests={"cpu": 100, "memory": 0}, scheduling=ports))
    assert snapshot.shape(pod("b", labels={"app": "web"}, requests={"cpu": 100}, scheduling=same)) is web
    assert dict(web.requests) == {"cpu": 100}
    others = [
        pod("c", labels={"app": "db"}, requests={"cpu": 100}, scheduling=ports),
        pod("d", labels={"app": "web"}, requests={"cpu": 200}, scheduling=ports),
        pod("e", labels={"app": "web"}, requests={"cpu": 100}),
        pod("f", labels={"app": "web"}, requests={"cpu": 100}, scheduling=ports, namespace="other"),
        pod("g", labels={"app": "web"}, requests={"cpu": 100}, scheduling=ports, priority=1),
    ]
    assert len({id(shape) for shape in [web, *map(snapshot.shape, others)]}) == 6


def test_resources_are_listed_in_the_scheduler_s_order() -> None:
    asked = {"nvidia.com/gpu": 1, "memory": 1, "a.example/b": 1, "cpu": 1, "hugepages-2Mi": 1, "ephemeral-storage": 1}
    shape = Snapshot([], []).shape(pod("a", requests=asked | {"storage": 1, "requests.example.com/c": 1}))
    assert list(shape.requests) == [
        *("cpu", "memory", "ephemeral-storage"),
        *("a.example/b", "hugepages-2Mi", "nvidia.com/gpu"),
    ]


def test_reverting_to_a_checkpoint_restores_nodes_pods_and_their_order() -> None:
    port = PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),))
    pods = [pod(name, node="n1", requests={"cpu": 100}, scheduling=port) for name in ("a", "b", "c")]
    snapshot = Snapshot([node("n1"), node("n2"), node("n3")], pods)
    before = state(snapshot)
    mark = snapshot.checkpoint()
    snapshot.evict(pods[0])
    snapshot.place(pods[0], "n2")
    inner, within = snapshot.checkpoint(), state(snapshot)
    assert [one.name for one in snapshot.remove_node("n1")] == ["b", "c"]
    snapshot.add_node(node("n1"), [pod("agent", requests={"cpu": 5})])
    assert list(snapshot.nodes) == ["n2", "n3", "n1"]
    assert len(snapshot.nodes) == len(list(snapshot.nodes.values())) == 3
    snapshot.place(pods[2], "n1")
    snapshot.revert(inner)
    assert state(snapshot) == within
    snapshot.revert(mark)
    assert state(snapshot) == before
    assert taken(snapshot.nodes["n1"]) == [("TCP", 80)]
    assert taken(snapshot.nodes["n2"]) == []


def test_pods_of_a_removed_node_can_be_placed_elsewhere() -> None:
    one = pod("a", node="n1", requests={"cpu": 100})
    snapshot = Snapshot([node("n1"), node("n2")], [one])
    snapshot.remove_node("n1")
    snapshot.place(one, "n2")
    assert state(snapshot) == [("n2", {"cpu": 100}, [("shop", "a")], 1)]
    assert "n1" not in snapshot.nodes


def test_node_and_pod_names_are_unique() -> None:
    snapshot = Snapshot([node("n1"), node("n2")], [pod("a", node="n1")])
    with pytest.raises(ValueError, match="node 'n1' is in the snapshot already"):
        snapshot.add_node(node("n1"))
    with pytest.raises(ValueError, match="pod shop/a has a node in the snapshot already"):
        snapshot.place(pod("a"), "n2")
