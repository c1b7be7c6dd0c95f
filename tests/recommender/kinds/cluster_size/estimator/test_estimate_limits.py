from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.estimator.estimate_limits import (
    EstimateLimit,
    cluster_capacity_limit,
    group_capacity_limit,
    merged_limit,
    min_limit,
)
from tests.recommender.kinds.cluster_size.cases import cases

if TYPE_CHECKING:
    from tests.recommender.kinds.cluster_size.cases import Case


@pytest.mark.parametrize("case", cases("estimation_limiter"))
def test_the_limiter_allows_as_many_nodes_as_the_peer(case: Case) -> None:
    given = case.input["thresholds"]
    limit = merged_limit(EstimateLimit(each["node_limit"], each["duration_s"]) for each in given)
    opened, elapsed = 0, case.input["elapsed_before_s"]
    for step in case.input["ops"]:
        if step == "R":
            opened, elapsed = 0, 0
            continue
        assert limit.allows(opened, elapsed) is (step == "A")
        opened += step == "A"
    assert opened == case.expected["nodes"]


@pytest.mark.parametrize("case", cases("min_limit"))
def test_the_stricter_of_two_limits_applies(case: Case) -> None:
    assert min_limit(case.input["base"], case.input["target"]) == case.expected["limit"]


@pytest.mark.parametrize(
    ("first", "second", "limit"), [(10, -10, -1), (0, 0, 0), (10, 0, 10), (10, 7, 7), (0, -1, -1), (3, 3, 3)]
)
def test_the_stricter_of_two_limits_applies_beyond_the_table_of_the_peer(first: int, second: int, limit: int) -> None:
    assert min_limit(first, second) == limit


@pytest.mark.parametrize("case", cases("cluster_capacity_threshold"))
def test_the_maximum_number_of_nodes_limits_the_estimate(case: Case) -> None:
    found = cluster_capacity_limit(case.input["max_nodes_total"], case.input["current_nodes"])
    assert found == case.expected["limit"]


@pytest.mark.parametrize("case", cases("sng_capacity_threshold"))
def test_the_room_of_similar_groups_is_added(case: Case) -> None:
    every = [case.input["group"], *case.input["similar"]]
    assert group_capacity_limit((each["max"], each["target"]) for each in every) == case.expected["limit"]


@given(st.lists(st.integers(-2, 5), max_size=4), st.integers(0, 6))
def test_a_node_is_allowed_only_if_every_limit_allows_it(limits: list[int], opened: int) -> None:
    each = [EstimateLimit(nodes) for nodes in limits]
    assert merged_limit(each).allows(opened) == all(limit.allows(opened) for limit in each)
