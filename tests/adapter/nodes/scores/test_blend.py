"""The mean of several policies, and which of them take part while metrics are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.nodes_snapshot import NodesSnapshot, ScoreBasis
from adapter.nodes.model.scheduling_settings import DEFAULT_ARGS, MostAllocatedArgs, PolicyName, PolicySettings
from adapter.nodes.scores.blend import blend
from adapter.nodes.scores.table import METRIC_POLICIES, POD_POLICIES, POLICIES, score_nodes, score_request
from tests.adapter.nodes.scores.builder import CPU, Node, bound_pod, columns, listed, pod, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.nodes.model.columns import NodeColumns

NAN = float("nan")
CAPACITY = {"cpu": 1000, "memory": 1000}
SCORES = st.lists(st.one_of(st.just(NAN), st.integers(0, 100).map(float)), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("parts", "size", "priorities"),
    [
        ([(1, [0, 4, 5, 45, 44, 94, 95, 100])], 8, [0, 0, 1, 5, 4, 9, 10, 10]),
        # 3 * 90 + 1 * 0 is 67.5 in the mean: rounded only at the end, so 7.
        ([(3, [90, 10]), (1, [0, 100])], 2, [7, 3]),
        # 49.67 is 5; a mean of rounded tens would be 5 as well, of truncated ones 4.
        ([(2, [49]), (1, [51])], 1, [5]),
        ([(7, [45, 0]), (3, [45, 0])], 2, [5, 0]),
        # The middle of 0, 20 and 100, not their mean.
        ([(1, [0, NAN, 20, 100])], 4, [0, 2, 2, 10]),
        # The middle of an even number of nodes is between two.
        ([(1, [20, NAN, 100])], 3, [2, 6, 10]),
        # A policy that knows no node does not decide, but counts with the middle.
        ([(1, [NAN, NAN]), (1, [100, 0])], 2, [8, 3]),
        ([(1, [NAN, NAN])], 2, [5, 5]),
        ([], 2, [5, 5]),
        ([], 0, []),
        ([(1, [])], 0, []),
    ],
)
def test_the_mean_is_rounded_once_and_half_up(
    parts: Sequence[tuple[int, list[float]]], size: int, priorities: list[int]
) -> None:
    blended = blend([(weight, np.array(values, dtype=np.float64)) for weight, values in parts], size)
    assert blended.priorities.tolist() == priorities


@pytest.mark.parametrize(
    ("values", "expected"), [([70, 70], True), ([71, 74], True), ([70, 80], False), ([70], False), ([], False)]
)
def test_equal_priorities_have_no_influence(values: list[float], expected: bool) -> None:  # noqa: FBT001
    assert blend([(1, np.array(values, dtype=np.float64))], len(values)).without_influence is expected


@given(SCORES, st.integers(1, 1000), st.integers(1, 1000))
def test_the_mean_of_a_policy_with_itself_equals_the_policy(values: list[float], first: int, second: int) -> None:
    array = np.array(values)
    once, twice = blend([(1, array)], len(array)), blend([(first, array), (second, array)], len(array))
    assert once.priorities.tolist() == twice.priorities.tolist()
    assert ((twice.priorities >= 0) & (twice.priorities <= 10)).all()


def nodes_snapshot(table: NodeColumns, basis: ScoreBasis = "metrics") -> NodesSnapshot:
    return NodesSnapshot(
        columns=table,
        loads=None,
        basis=basis,
        pods_by_namespace={"": [bound_pod(table.names[0], {"app": "web"}, "")]},
    )


def settings(name: PolicyName, weight: int = 1) -> PolicySettings:
    return PolicySettings(name, weight, DEFAULT_ARGS[name])


def some_nodes() -> NodeColumns:
    return columns(
        Node("hot", CAPACITY, requested={"cpu": 100}, mean={CPU: 0.9}),
        Node("good", CAPACITY, requested={"cpu": 800}, mean={CPU: 0.3}),
    )


def test_each_policy_has_a_function() -> None:
    assert set(POLICIES) == set(PolicyName)


@pytest.mark.parametrize("name", PolicyName)
def test_an_unknown_node_does_not_change_the_scores_of_others(name: PolicyName) -> None:
    def priorities(*positions: int) -> list[int]:
        found = score_request([settings(name)], pod({"cpu": 100}), nodes_snapshot(some_nodes()), np.array(positions))
        scored: list[int] = found.priorities.tolist()
        return scored

    first, second = priorities(0, 1)
    assert priorities(-1, 0, -1, 1)[1::2] == [first, second]
    assert priorities(-1, -1) == [5, 5]


@pytest.mark.parametrize(
    ("basis", "names", "priorities"),
    [
        ("metrics", [PolicyName.TARGET_LOAD_PACKING], [1, 9]),
        ("none", [PolicyName.TARGET_LOAD_PACKING], [5, 5]),
        # Best fit: 20% and 90% of the CPU, nothing of the memory.
        ("requests", [PolicyName.TARGET_LOAD_PACKING], [1, 5]),
        # What needs no metrics goes on alone, but not beside one that is at the middle.
        ("none", [PolicyName.MOST_ALLOCATED], [1, 5]),
        ("none", [PolicyName.TARGET_LOAD_PACKING, PolicyName.MOST_ALLOCATED], [5, 5]),
        ("requests", [PolicyName.TARGET_LOAD_PACKING, PolicyName.MOST_ALLOCATED], [1, 5]),
    ],
)
def test_without_metrics_nodes_get_middle_scores_and_later_those_of_best_fit(
    basis: ScoreBasis, names: list[PolicyName], priorities: list[int]
) -> None:
    policies = [settings(name) for name in names]
    result = score_request(policies, pod({"cpu": 100}), nodes_snapshot(some_nodes(), basis), rows(2))
    assert result.priorities.tolist() == priorities


@pytest.mark.parametrize("name", PolicyName)
def test_without_node_objects_no_capacity_is_known_and_nothing_is_scored(name: PolicyName) -> None:
    nodeless = replace(nodes_snapshot(some_nodes()), are_nodes_known=False)
    assert listed(score_nodes(settings(name), pod({"cpu": 100}), nodeless, rows(2))) == [None, None]
    assert score_request([settings(name)], pod({"cpu": 100}), nodeless, rows(2)).priorities.tolist() == [5, 5]


@pytest.mark.parametrize("name", PolicyName)
def test_without_pods_nothing_is_scored_that_depends_on_what_they_request(name: PolicyName) -> None:
    podless = replace(nodes_snapshot(some_nodes()), are_pods_known=False)
    scores = score_nodes(settings(name), pod({"cpu": 100}), podless, rows(2))
    if name in POD_POLICIES:
        assert listed(scores) == [None, None]
        assert scores.reason(0).startswith("Pods and their requests are not known: ")
    else:
        assert listed(scores) == listed(
            score_nodes(settings(name), pod({"cpu": 100}), nodes_snapshot(some_nodes()), rows(2))
        )


@pytest.mark.parametrize("name", sorted(METRIC_POLICIES))
def test_without_pods_no_fit_replaces_missing_metrics(name: PolicyName) -> None:
    podless = replace(nodes_snapshot(some_nodes(), "requests"), are_pods_known=False)
    scores = score_nodes(settings(name), pod({"cpu": 100}), podless, rows(2))
    assert listed(scores) == [None, None]
    assert scores.reason(0).startswith("there are no metrics, and Pods and their requests are not known: ")
    assert score_request([settings(name)], pod({"cpu": 100}), podless, rows(2)).priorities.tolist() == [5, 5]


@pytest.mark.parametrize("name", sorted(METRIC_POLICIES))
def test_the_reason_names_what_replaces_a_policy_without_metrics(name: PolicyName) -> None:
    reasons = {
        basis: score_nodes(settings(name), pod({"cpu": 100}), nodes_snapshot(some_nodes(), basis), rows(2)).reason(0)
        for basis in ("none", "requests")
    }
    assert reasons["none"] == "no node has usable metrics yet"
    assert reasons["requests"].startswith("there are no metrics; ")


def test_a_policy_of_weight_0_does_not_count() -> None:
    policies = [settings(PolicyName.TARGET_LOAD_PACKING), settings(PolicyName.GPU_PACKING, 0)]
    assert score_request(policies, pod(), nodes_snapshot(some_nodes()), rows(2)).priorities.tolist() == [1, 9]


def test_arguments_of_another_policy_are_refused() -> None:
    policy = PolicySettings(PolicyName.PEAKS, 1, MostAllocatedArgs())
    with pytest.raises(TypeError, match="MostAllocatedArgs are not the arguments of this policy: it takes PeaksArgs"):
        score_nodes(policy, pod(), nodes_snapshot(some_nodes()), rows(2))
