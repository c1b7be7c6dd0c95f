"""The nodes that are counted, and those that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from recommender.kinds.proportional.facts import LastCounts
from recommender.kinds.proportional.parameters import Linear, NodeFilter, ProportionalSettings
from tests.recommender.kinds.proportional.clusters import NOW, calculated, inputs_of, node

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode

NODES: Final = {
    "plain": node(cpu_milli=3920, capacity_milli=4000),
    "cordoned": node(unschedulable=True),
    "not ready": node(ready=False),
    "tainted": node(taints=("maintenance",)),
    "virtual by label": node(labels={"type": "virtual-kubelet"}, cpu_milli=20_000_000),
    "virtual by taint": node(taints=("virtual-kubelet.io/provider",)),
    "fargate by label": node(labels={"eks.amazonaws.com/compute-type": "fargate"}),
    "fargate by taint": node(taints=("eks.amazonaws.com/compute-type",)),
    "ec2": node(labels={"eks.amazonaws.com/compute-type": "ec2"}),
    "young": node(created=NOW - 59),
    "as old as the minimum": node(created=NOW - 60),
    "of unknown age": node(created=None),
}


def replicas(nodes: list[ClusterNode], node_filter: NodeFilter, mode: Linear = Linear(0, 1)) -> int | None:  # noqa: B008 - frozen
    return calculated(ProportionalSettings(mode=mode, node_filter=node_filter), inputs_of(nodes)).replicas


@pytest.mark.parametrize(
    ("node_filter", "left_out"),
    [
        (NodeFilter(), set()),
        (NodeFilter(ignore_taints=frozenset({"maintenance", "x"})), {"tainted"}),
        (
            NodeFilter(ignore_virtual_nodes=True),
            {"virtual by label", "virtual by taint", "fargate by label", "fargate by taint"},
        ),
        (NodeFilter(min_node_age_seconds=60), {"young"}),
        (NodeFilter(selector="eks.amazonaws.com/compute-type!=ec2"), {"ec2"}),
    ],
    ids=["no filter", "taints", "virtual nodes", "age", "labels"],
)
def test_a_filter_excludes_nodes(node_filter: NodeFilter, left_out: set[str]) -> None:
    unschedulable = {"cordoned", "not ready"}
    for name, found in NODES.items():
        expected = 0 if name in left_out | unschedulable else 1
        counts = calculated(ProportionalSettings(mode=Linear(0, 1), node_filter=node_filter), inputs_of([found])).inputs
        assert (name, counts["schedulable_nodes"]) == (name, expected)
        assert (name, counts["nodes"]) == (name, 0 if name in left_out else 1)


def test_nodes_are_counted_again_when_they_change_or_become_old_enough() -> None:
    young, counts, node_filter = [node(created=NOW - 59)], LastCounts(), NodeFilter(min_node_age_seconds=60)
    assert counts.count(young, node_filter, EVERYTHING, NOW).nodes == 0
    assert counts.count(young, node_filter, EVERYTHING, NOW + 1).nodes == 1
    plain = LastCounts()
    assert [plain.count(nodes, NodeFilter(), EVERYTHING, NOW).nodes for nodes in (young, [])] == [1, 0]


def test_allocatable_cores_count_and_not_the_capacity() -> None:
    """Of 64 cores, pods can use 63: there is no work for the second replica that the capacity would require."""
    nodes = [NODES["plain"]] * 16
    assert replicas(nodes, NodeFilter(), Linear(cores_per_replica=63)) == 1
    assert sum(found.capacity["cpu"].milli_value() for found in nodes) == 64_000


def test_cores_are_rounded_once_for_the_cluster() -> None:
    assert replicas([node(cpu_milli=1100)] * 10, NodeFilter(), Linear(cores_per_replica=1)) == 11


def test_a_cluster_without_nodes_gets_the_minimum() -> None:
    assert replicas([], NodeFilter(), Linear(0, 1, min=2)) == 2
