"""Quotas allow the same as Cluster Autoscaler's tracker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.model.size_settings import SizeLimits
from recommender.kinds.cluster_size.resource_limits import check_quota, counted_amounts, quota_after, quota_of
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.cases import Case, cases

RESOURCES = ("cpu", "memory", "nodes", "gpu")
AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 50))


@pytest.mark.parametrize("case", cases("quota_check"))
def test_the_scarcest_resource_decides_how_many_nodes_a_quota_allows(case: Case) -> None:
    """The peer has several quotas, of which some do not apply to a group; here, there is one for all groups."""
    quotas, node, wanted = case.input["quotas"], case.input["node"], case.input["delta"]
    if case.expected.get("error"):
        with pytest.raises(ValueError, match="ask for 0 or more"):
            check_quota({}, node, wanted)
        return
    verdicts = {row["id"]: check_quota(row["left"], node, wanted) for row in quotas if row["applies"]}
    assert min((each.allowed for each in verdicts.values()), default=wanted) == case.expected["allowed"]
    assert {name: list(each.exceeded) for name, each in verdicts.items() if each.exceeded} == case.expected["exceeded"]


@pytest.mark.parametrize("case", cases("quota_consume"))
def test_the_nodes_that_are_added_use_a_quota_up(case: Case) -> None:
    """The peer adds no node unless all wanted ones are allowed; here, the caller decides how many are added."""
    ((quota, node, wanted),) = ((row["left"], case.input["node"], case.input["delta"]) for row in case.input["quotas"])
    allowed = check_quota(quota, node, wanted).allowed
    assert allowed == case.expected["allowed"]
    assert quota_after(quota, node, wanted if allowed == wanted else 0) == case.expected["left"]


@given(left=AMOUNTS, per_node=AMOUNTS, wanted=st.integers(0, 30))
def test_the_allowed_number_of_nodes_fits_and_one_more_does_not(
    left: dict[str, int], per_node: dict[str, int], wanted: int
) -> None:
    allowed = check_quota(left, per_node, wanted).allowed
    assert min(quota_after(left, per_node, allowed).values(), default=0) >= 0
    one_more = [left[resource] - (allowed + 1) * per_node.get(resource, 0) for resource in left]
    assert allowed == wanted or min(one_more) < 0


def test_a_node_uses_up_only_what_it_has() -> None:
    assert quota_after({"nodes": 3, "gpu": 2}, {"nodes": 1}, 2) == {"nodes": 1, "gpu": 2}


def test_a_node_counts_whole_cores_and_extended_resources() -> None:
    assert counted_amounts(node("n", "100m", "1Gi", 10, extended={"nvidia.com/gpu": "2"})) == {
        "cpu": 1,
        "memory": 1 << 30,
        "pods": 10,
        "nvidia.com/gpu": 2,
        "nodes": 1,
    }


def test_all_nodes_count_against_limits_and_the_rest_is_never_negative() -> None:
    nodes = [node("a", "2500m", "1Gi"), node("b", "4", "1Gi", extended={"nvidia.com/gpu": "4"})]
    limits = SizeLimits(max_nodes=3, max_cores=9, max_memory_bytes=1 << 30, gpus={"nvidia.com/gpu": 16})
    assert quota_of(limits, nodes) == {"nodes": 1, "cpu": 2, "memory": 0, "nvidia.com/gpu": 12}


def test_a_node_of_virtual_kubelet_counts_as_a_node_and_its_amounts_do_not_count() -> None:
    nodes = [node("a", "4", "1Gi"), node("virtual", "10k", "4Ti", labels={"type": "virtual-kubelet"})]
    limits = SizeLimits(max_nodes=3, max_cores=9, max_memory_bytes=2 << 30)
    assert quota_of(limits, nodes) == {"nodes": 1, "cpu": 5, "memory": 1 << 30}


def test_without_limits_nothing_is_limited() -> None:
    assert check_quota(quota_of(SizeLimits(), [node("a")]), {"nodes": 1, "cpu": 1}, 10_000).allowed == 10_000
