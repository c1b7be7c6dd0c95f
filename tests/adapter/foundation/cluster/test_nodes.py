"""Nodes and cores are counted as cluster-proportional-autoscaler counts them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.facts.objects import node_of
from adapter.foundation.cluster.forms.objects import NodeForm
from adapter.foundation.cluster.values.node_counts import NodeCounts, count_nodes
from adapter.foundation.objects.selectors import parse_selector
from tests.support.cluster_objects import node_object

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode


def node(name: str, *arguments: Any, **named: Any) -> ClusterNode:  # noqa: ANN401 - those of node_object
    return node_of(msgspec.convert(node_object(name, *arguments, **named), NodeForm))


APP = {"app": "autoscaler"}
CASE = [
    node("n1", "1000m", labels=APP),
    node("n2", "2000m", labels=APP),
    node("n3", "3000m", labels=APP, unschedulable=True),
    node("n4", "4000m", labels={"app": "something-else"}),
    node("n5", "3000m", labels=APP, ready="False"),
]
"""The case TestGetClusterStatus of cluster-proportional-autoscaler, k8sclient_test.go at 5a5dd5a1."""


def test_nodes_of_the_upstream_case_are_counted_as_upstream() -> None:
    assert count_nodes(CASE, parse_selector("app=autoscaler")) == NodeCounts(4, 2, 9, 3)


TABLE: dict[str, tuple[list[ClusterNode], str, set[str], NodeCounts]] = {
    "no nodes": ([], "", set(), NodeCounts(0, 0, 0, 0)),
    "the sum is rounded up, not each node": ([node("a", "1930m")] * 3, "", set(), NodeCounts(3, 3, 6, 6)),
    "a part of a core is a core": ([node("a", "1m")], "", set(), NodeCounts(1, 1, 1, 1)),
    "whole cores stay": ([node("a", "500m"), node("b", "1500m")], "", set(), NodeCounts(2, 2, 2, 2)),
    "allocatable counts, not capacity": ([node("a", "4")], "", set(), NodeCounts(1, 1, 4, 4)),
    "readiness that is not known is no readiness": ([node("a", ready="Unknown")], "", set(), NodeCounts(1, 0, 4, 0)),
    "a taint alone restricts nothing": ([node("a", taints=["gpu"])], "", set(), NodeCounts(1, 1, 4, 4)),
    "ignored taints": ([node("a", taints=["x", "gpu"]), node("b")], "", {"gpu", "y"}, NodeCounts(1, 1, 4, 4)),
    "a selector of absence": (
        [node("a", labels={"virtual": "1"}), node("b")],
        "!virtual",
        set(),
        NodeCounts(1, 1, 4, 4),
    ),
    "a bare number, as a file may have it": ([node("a", 2), node("b", 0.5)], "", set(), NodeCounts(2, 2, 3, 3)),
}


@pytest.mark.parametrize(("nodes", "selector", "ignored", "expected"), TABLE.values(), ids=TABLE.keys())
def test_nodes_and_cores_are_counted(
    nodes: list[ClusterNode], selector: str, ignored: set[str], expected: NodeCounts
) -> None:
    assert count_nodes(nodes, parse_selector(selector), ignored) == expected


def test_a_node_without_allocatable_cpu_counts_without_cores() -> None:
    found = node_of(msgspec.convert({"metadata": {"name": "new"}}, NodeForm))
    assert count_nodes([found]) == NodeCounts(1, 0, 0, 0)


@given(
    st.lists(
        st.tuples(
            st.integers(min_value=0, max_value=10**6),
            st.booleans(),
            st.sampled_from(["True", "False", "Unknown"]),
            st.sampled_from(["a", "b"]),
            st.lists(st.sampled_from(["t", "u"]), unique=True),
        ),
        max_size=30,
    ),
    st.sampled_from(["", "a", "b"]),
    st.sets(st.sampled_from(["t", "u"])),
)
def test_counting_equals_a_naive_reference(
    described: list[tuple[int, bool, str, str, list[str]]], pool: str, ignored: set[str]
) -> None:
    nodes = [
        node(str(number), f"{milli}m", unschedulable=cordoned, ready=ready, labels={"pool": label}, taints=taints)
        for number, (milli, cordoned, ready, label, taints) in enumerate(described)
    ]
    matching = [one for one in described if pool in {"", one[3]} and ignored.isdisjoint(one[4])]
    schedulable = [one for one in matching if not one[1] and one[2] == "True"]
    assert count_nodes(nodes, parse_selector(f"pool={pool}" if pool else ""), ignored) == NodeCounts(
        len(matching),
        len(schedulable),
        math.ceil(Fraction(sum(one[0] for one in matching), 1000)),
        math.ceil(Fraction(sum(one[0] for one in schedulable), 1000)),
    )
