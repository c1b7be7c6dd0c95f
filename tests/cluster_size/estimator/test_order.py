from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.cluster_size.estimator.fast_path import fast_path_choice
from recommender.cluster_size.estimator.order import ordered
from tests.cluster_size.cases import cases
from tests.cluster_size.estimator.clusters import groups_of, node_of, snapshot_of

if TYPE_CHECKING:
    from tests.cluster_size.cases import Case

SMALL = {"cpu_milli": 4, "mem_bytes": 600}
NODE = {"cpu_milli": 100, "mem_bytes": 100, "pods": 10}
SPREAD = {"max_skew": 2, "topology_key": "kubernetes.io/hostname"}


@pytest.mark.parametrize("case", cases("pod_order"))
def test_groups_come_in_the_order_of_the_peer(case: Case) -> None:
    groups = groups_of(case.input["groups"], snapshot_of([]))
    found = ordered(groups, node_of(case.input["node"], "template"))
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
    found = ordered(groups, node_of(SMALL, "template"))
    assert [groups.index(group) for group in found] == order


@pytest.mark.parametrize("case", cases("fastpath_choice"))
def test_fast_path_takes_the_group_that_the_peer_takes(case: Case) -> None:
    groups = groups_of(case.input["groups"], snapshot_of([]))
    assert fast_path_choice(groups, node_of(case.input["node"], "template")) == case.expected["index"]


def test_fast_path_suits_no_group_that_spreads_its_pods() -> None:
    groups = groups_of([{"count": 10, "cpu_milli": 5, "mem_bytes": 5} | SPREAD], snapshot_of([]))
    assert fast_path_choice(groups, node_of(NODE, "template")) is None
