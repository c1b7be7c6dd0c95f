"""Similar groups and the distribution of nodes over them, as in Cluster Autoscaler's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.scale_up.balancing import (
    GroupRoom,
    difference,
    similar_groups,
    spread_new_nodes,
    within_quota,
)
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.cases import Case, cases
from tests.recommender.kinds.cluster_size.options import template

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.groups import NodeTemplate


def _template(row: dict[str, Any]) -> NodeTemplate:
    capacity, allocatable, used = row["capacity"], row["allocatable"], row["used"]
    pods = [pod("used", f"{used['cpu_milli']}m", str(used["memory"]))] if used else []
    return template(
        f"{capacity['cpu_milli']}m",
        str(capacity["memory"]),
        max_pods=capacity["pods"],
        allocatable={"cpu": f"{allocatable['cpu_milli']}m", "memory": str(allocatable["memory"])},
        labels=row["labels"],
        pods=pods,
    )


@pytest.mark.parametrize("case", cases("similar_nodes"))
def test_similar_nodes_are_recognised(case: Case) -> None:
    one, other = _template(case.input["a"]), _template(case.input["b"])
    assert (not difference(one, other, case.input["extra_ignored_labels"])) is case.expected["similar"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"pool": "a"}, {"pool": "b"}, "the label pool is 'a' and 'b'", id="label"),
        pytest.param({"pool": "a"}, {}, "the label pool is 'a' and absent", id="label-of-one"),
        pytest.param(
            dict.fromkeys("cbad", "1"), {}, "the label a is '1' and absent", id="the-first-by-name-of-several"
        ),
    ],
)
def test_the_difference_between_nodes_is_reported(one: dict[str, str], other: dict[str, str], expected: str) -> None:
    assert difference(template(labels=one), template(labels=other)) == expected


@pytest.mark.parametrize(
    "label",
    [
        "topology.k8s.aws/zone-id",
        "aksEngineVersion",
        "creationSource",
        "poolName",
        "resourceNameSuffix",
        "kubernetes.azure.com/consolidated-additional-properties",
        "kubernetes.azure.com/node-image-version",
    ],
)
def test_labels_by_which_clouds_distinguish_zones_and_pools_are_ignored(label: str) -> None:
    assert not difference(template(labels={label: "use1-az1"}), template(labels={label: "use1-az2"}))
    assert not difference(template(labels={label: "use1-az1"}), template())


@pytest.mark.parametrize(("cpu", "is_alike"), [("3800m", True), ("3799m", False)])
def test_allocatable_amounts_of_similar_nodes_differ_by_a_twentieth_of_the_larger_one(
    cpu: str, *, is_alike: bool
) -> None:
    one, other = (template("4", "16Gi", allocatable={"cpu": each, "memory": "15Gi"}) for each in ("4", cpu))
    assert (not difference(one, other)) is (not difference(other, one)) is is_alike


def test_a_resource_that_one_node_lacks_is_reported() -> None:
    one, other = template(extended={"nvidia.com/gpu": "1"}), template()
    expected = "only one of them has capacity nvidia.com/gpu"
    assert difference(one, other) == difference(other, one) == expected


def test_nodes_on_which_daemons_leave_less_room_are_not_alike() -> None:
    busy = template("4", pods=[pod("daemon", "1", "1Gi")])
    assert difference(template("4"), busy) == "free cpu is 4 and 3"


@pytest.mark.parametrize(
    ("labels", "others", "alike"),
    [
        pytest.param({"pool": "a"}, {"pool": "a", "further": "x"}, True, id="others-do-not-matter"),
        pytest.param({"pool": "a"}, {"pool": "b"}, False, id="different"),
        pytest.param({}, {}, False, id="absent"),
    ],
)
def test_chosen_labels_replace_the_comparison(labels: dict[str, str], others: dict[str, str], *, alike: bool) -> None:
    one, other = template("4", labels=labels), template("8", labels=others)
    assert (not difference(one, other, compared=("pool",))) is alike


@pytest.mark.parametrize("case", cases("similar_groups_by_pods"))
def test_similar_groups_are_those_that_hold_the_same_pods(case: Case) -> None:
    given_ = case.input
    schedulable = {name: frozenset(groups) for name, groups in given_["schedulable_pod_groups"].items()}
    found = similar_groups(given_["group"], given_["similar"], schedulable, balance=given_["balance"])
    assert list(found) == case.expected["similar"]


@pytest.mark.parametrize(("balance", "found"), [pytest.param(True, ("b",), id="on"), pytest.param(False, (), id="off")])
def test_a_similar_group_must_hold_every_pod_group_of_the_chosen_group(
    *, balance: bool, found: tuple[str, ...]
) -> None:
    schedulable = {"a": frozenset({1, 2}), "b": frozenset({1, 2, 3}), "c": frozenset({1})}
    assert similar_groups("a", ["b", "c", "d"], schedulable, balance=balance) == found


@pytest.mark.parametrize("case", cases("balance"))
def test_nodes_go_to_the_smallest_groups(case: Case) -> None:
    groups = [GroupRoom(row["name"], row["size"], row["max"]) for row in case.input["groups"]]
    before = {its.name: its.size for its in groups}
    sizes = {name: before[name] + share for name, share in spread_new_nodes(groups, case.input["new_nodes"]).items()}
    expected = case.expected
    if "new_sizes" in expected:
        assert sizes == expected["new_sizes"]
    else:
        assert sum(sizes.values()) == expected["sum_of_new_sizes"]
        assert sorted(sizes) == expected["groups"]
        assert set(sizes.values()) <= set(expected["each_in"])


@pytest.mark.parametrize("case", cases("balance_with_quota"))
def test_a_share_cut_by_a_quota_is_not_given_to_another_group(case: Case) -> None:
    """The quota of the peer is of some of the groups; the other ones get their whole shares."""
    sizes: dict[str, int] = case.input["sizes"]
    (row,) = case.input["quotas"]
    quota = {row["resource"]: row["limit"] - sum(sizes[name] for name in row["groups"])}
    shares = spread_new_nodes(
        [GroupRoom(name, size, case.input["max"]) for name, size in sizes.items()], case.input["new_nodes"]
    )
    node = {"nodes": 1, "cpu": case.input["node_cores_counted"]}
    limited = {name: share for name, share in shares.items() if name in row["groups"]}
    allowed = shares | dict.fromkeys(limited, 0) | within_quota(limited, dict.fromkeys(sizes, node), quota)
    assert {name: size + allowed.get(name, 0) for name, size in sizes.items()} == case.expected["sizes"]


def test_groups_use_up_a_quota_together() -> None:
    nodes = {"a": {"nodes": 1, "cpu": 4}, "b": {"nodes": 1, "cpu": 2}}
    assert within_quota({"a": 2, "b": 3}, nodes, {"nodes": 4, "cpu": 13}) == {"a": 2, "b": 2}


@given(rows=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6), new_nodes=st.integers(0, 60))
def test_no_group_exceeds_its_maximum_and_all_nodes_are_distributed_while_there_is_room(
    rows: list[tuple[int, int]], new_nodes: int
) -> None:
    groups = [GroupRoom(f"g{number}", size, most) for number, (size, most) in enumerate(rows)]
    shares = spread_new_nodes(groups, new_nodes)
    room = {its.name: max(0, its.max_size - its.size) for its in groups}
    assert all(0 < share <= room[name] for name, share in shares.items())
    assert sum(shares.values()) == min(new_nodes, sum(room.values()))
