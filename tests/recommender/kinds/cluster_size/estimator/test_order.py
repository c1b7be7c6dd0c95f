from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.kinds.cluster_size.estimator.binpacking import order_by_score
from tests.recommender.kinds.cluster_size.cases import cases
from tests.recommender.kinds.cluster_size.estimator.clusters import groups_of, node_of, snapshot_of

if TYPE_CHECKING:
    from tests.recommender.kinds.cluster_size.cases import Case

SMALL = {"cpu_milli": 4, "mem_bytes": 600}


@pytest.mark.parametrize("case", cases("pod_order"))
def test_groups_have_the_order_of_the_peer(case: Case) -> None:
    groups = groups_of(case.input["groups"], snapshot_of([]))
    found = order_by_score(groups, node_of(case.input["node"], "template"))
    assert [groups.index(group) for group in found] == case.expected["order"]


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        ([(1, 100), (2, 100), (2, 200)], [2, 1, 0]),
        ([(1, 100), (1, 100)], [0, 1]),
        ([(2, 1), (1, 400)], [1, 0]),
        ([(0, 0), (0, 600), (4, 0)], [1, 2, 0]),
    ],
)
def test_larger_pods_come_first_and_equal_ones_keep_their_order(pods: list[tuple[int, int]], order: list[int]) -> None:
    groups = groups_of([{"cpu_milli": cpu, "mem_bytes": memory} for cpu, memory in pods], snapshot_of([]))
    found = order_by_score(groups, node_of(SMALL, "template"))
    assert [groups.index(group) for group in found] == order
