"""The snapshot has the names, zones and pools of nodes; facts that are unknown keep their reason."""

from __future__ import annotations

from adapter.foundation.cluster.values.placed_pods import PlacedPods
from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, Observed, Unknown
from adapter.nodes.snapshot.cluster_facts import NodeFacts, node_facts, node_topology


def node(name: str, labels: dict[str, str] | None = None) -> ClusterNode:
    return ClusterNode(
        name, labels or {}, (), unschedulable=False, conditions={}, created=None, capacity={}, allocatable={}
    )


def test_observed_nodes_are_sorted_by_name() -> None:
    placed = PlacedPods()
    facts = node_facts(ClusterState(nodes=Observed((node("b"), node("a")), 1.0)), Observed(placed, 1.0))
    assert [one.name for one in facts.nodes or ()] == ["a", "b"]
    assert facts.pods is placed
    assert facts.why_unknown == ""


def test_sorted_nodes_are_returned_as_the_same_object() -> None:
    nodes = (node("a"), node("b"))
    assert node_facts(ClusterState(nodes=Observed(nodes, 1.0)), Unknown("")).nodes is nodes


def test_unknown_nodes_have_a_reason() -> None:
    facts = node_facts(ClusterState(nodes=Unknown("not allowed")), Unknown("pods are not watched"))
    assert (facts.nodes, facts.why_unknown, facts.pods) == (None, "not allowed", None)
    assert NodeFacts().why_unknown.startswith("no cluster is configured")


def test_zones_come_from_either_label_and_pools_from_the_configured_one() -> None:
    nodes = (
        node("a", {"topology.kubernetes.io/zone": "east", "example.com/pool": "batch"}),
        node("b", {"failure-domain.beta.kubernetes.io/zone": "west"}),
    )
    topology = node_topology(nodes, "example.com/pool")
    assert dict(topology.zones) == {"a": "east", "b": "west"}
    assert dict(topology.pools) == {"a": "batch", "b": ""}
    assert node_topology(nodes, "").pools == {}
    assert node_topology(None, "x").zones == {}
