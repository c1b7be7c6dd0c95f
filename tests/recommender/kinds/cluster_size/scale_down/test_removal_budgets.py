"""How many nodes are removed at once, at the limits."""

from __future__ import annotations

import pytest

from recommender.kinds.cluster_size.scale_down.removal_budgets import GroupRemoval, within_budgets
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import Harness, due, group


def removal(*nodes: str, whole: bool = False, size: int | None = None, registered: int | None = None) -> GroupRemoval:
    count = len(nodes)
    return GroupRemoval("g", nodes, whole, count if size is None else size, count if registered is None else registered)


@pytest.mark.parametrize(
    ("empty", "drained", "most", "most_drained", "chosen"),
    [
        pytest.param([removal("a", "b", whole=True)], [], 1, 0, ["a", "b"], id="no drain is left, and none is needed"),
        pytest.param([], [removal("a", whole=True)], 5, 0, [], id="no drain is left"),
        pytest.param(
            [], [removal("a", "b", whole=True)], 5, 1, ["a", "b"], id="one group exceeds the drains that are left"
        ),
        pytest.param([], [removal("a", "b", whole=True)], 1, 5, ["a", "b"], id="one group exceeds the removals"),
        pytest.param([], [removal("a", "b", whole=True)], 0, 5, [], id="no removal is left"),
        pytest.param(
            [removal("a", whole=True, size=2, registered=2)],
            [removal("b", whole=True, size=2, registered=2)],
            9,
            9,
            ["a", "b"],
            id="empty and drained nodes of one group",
        ),
        pytest.param([removal("a", whole=True, size=2)], [], 1, 0, ["a"], id="a requested node has not come"),
        pytest.param([removal("a", "b")], [removal("c", "d")], 3, 9, ["a", "b", "c"], id="empty and drained together"),
    ],
)
def test_budgets_hold_for_all_removals_together(
    empty: list[GroupRemoval], drained: list[GroupRemoval], most: int, most_drained: int, chosen: list[str]
) -> None:
    assert within_budgets(empty, drained, most, most_drained) == chosen


def test_a_node_at_the_threshold_of_utilisation_is_removable() -> None:
    nodes = (node("a", "4", "16Gi"), node("b", "8", "32Gi"))
    harness = Harness(nodes, (pod("web", "2", "1Gi", node="a", controller="web"),), (group("g", ["a"]),))
    assert due(harness.decide()) == ["a"]
