"""How many nodes a group and those similar to it may add together, within all limits on their number."""

from __future__ import annotations

import pytest

from recommender.kinds.cluster_size.model.groups import NodeGroup
from recommender.kinds.cluster_size.model.size_settings import SizeLimits
from recommender.kinds.cluster_size.resource_limits import quota_of
from recommender.kinds.cluster_size.scale_up.scale_up_state import SizingState
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.cases import Case, cases

ROOM = 500


def most(
    groups: list[dict[str, int]], max_nodes: int | None = None, current_nodes: int = 0, per_scale_up: int = 1000
) -> int:
    """Return how many nodes groups with these maxima and sizes may add, in a cluster with so many nodes."""
    found = {f"g{number}": NodeGroup(f"g{number}", 0, row["max"], row["target"]) for number, row in enumerate(groups)}
    quota = quota_of(SizeLimits(max_nodes=max_nodes), [node(f"n{number}") for number in range(current_nodes)])
    sizes = {name: group.target_size for name, group in found.items()}
    return SizingState(found, sizes, quota, {}, most_nodes_per_scale_up=per_scale_up).most_new_nodes(found.values())


@pytest.mark.parametrize("case", cases("min_limit"))
def test_the_strictest_limit_applies(case: Case) -> None:
    """Where the peer says 0 for no limit and less for no node, there is no limit here, and no node."""
    limits = case.input["base"], case.input["target"]
    total = None if limits[0] == 0 else max(0, limits[0])
    assert most([{"max": ROOM, "target": 0}], total, per_scale_up=limits[1]) == max(0, case.expected["limit"])


@pytest.mark.parametrize("case", cases("cluster_capacity_threshold"))
def test_the_limit_of_all_nodes_counts_those_that_exist(case: Case) -> None:
    limit, expected = case.input["max_nodes_total"] or None, case.expected["limit"] or ROOM
    assert most([{"max": ROOM, "target": 0}], limit, case.input["current_nodes"]) == max(0, expected)


@pytest.mark.parametrize("case", cases("sng_capacity_threshold"))
def test_the_room_of_similar_groups_is_added(case: Case) -> None:
    assert most([case.input["group"], *case.input["similar"]]) == max(0, case.expected["limit"])


@pytest.mark.parametrize(("per_scale_up", "max_nodes", "expected"), [(7, None, 7), (7, 3, 3), (7, 9, 7), (50, 40, 12)])
def test_none_of_the_limits_is_exceeded(per_scale_up: int, max_nodes: int | None, expected: int) -> None:
    assert most([{"max": 10, "target": 0}, {"max": 5, "target": 3}], max_nodes, 0, per_scale_up) == expected
