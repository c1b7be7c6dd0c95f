"""NodeReadiness, the health gate, back-off, and requested nodes that do not appear."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from adapter.foundation.cluster.values.constraints import TaintEffect
from adapter.foundation.cluster.values.state import ClusterState, Observed
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.health.cluster_health import (
    NodeReadiness,
    health_problem,
    readiness_of,
    with_readiness_taint,
)
from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL, with_failed_removals
from recommender.kinds.cluster_size.health.requested_nodes import (
    GroupRequest,
    after_failure,
    group_request,
    is_forgotten,
    requests_of,
)
from recommender.kinds.cluster_size.health.starting_nodes import starting_nodes
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup, NodeGroups
from recommender.kinds.cluster_size.model.memory import LATE, BackOff, ClusterSizeMemory, RequestedNodes
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, Unready
from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.options import group

NOW = 100_000.0
NOT_READY = {"Ready": "False"}
SETTINGS = ClusterSizeSettings(NodeGroupSources())


def test_nodes_are_counted_as_ready_starting_or_unready_except_those_being_deleted() -> None:
    nodes = [
        node("ready"),
        node("new", conditions=NOT_READY, created=NOW - 100),
        node("old", conditions=NOT_READY, created=NOW - 1000),
        node("ageless", conditions=NOT_READY, created=None),
        node("going"),
        node("terminating", is_terminating=True),
        node("outside"),
        node("patient", conditions=NOT_READY, created=NOW - 1000),
    ]
    group_of = {its.name: "b" if its.name == "patient" else "a" for its in nodes if its.name != "outside"}
    patient = replace(group("b", nodes=("patient",)), options=GroupOptions(max_node_provision_seconds=2000.0))
    its = ClusterSituation(NOW, tuple(nodes), (), NodeGroups((group("a"), patient), group_of))
    found = readiness_of(nodes, group_of, frozenset({"going"}), starting_nodes(its, SETTINGS))
    assert found == {
        "a": NodeReadiness(ready=1, starting=1, unready=2),
        "": NodeReadiness(ready=1),
        "b": NodeReadiness(starting=1),
    }


@pytest.mark.parametrize(
    ("unready", "total", "healthy"),
    [
        pytest.param(3, 3, True, id="few"),
        pytest.param(4, 4, False, id="all"),
        pytest.param(9, 20, True, id="exactly-45-percent"),
        pytest.param(10, 20, False, id="more"),
        pytest.param(0, 0, True, id="none"),
    ],
)
def test_a_cluster_is_unhealthy_with_more_than_45_percent_and_more_than_3_unready(
    unready: int, total: int, *, healthy: bool
) -> None:
    assert (not health_problem(unready, total, Unready())) is healthy


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        pytest.param([0], 300, id="first"),
        pytest.param([0, 100], 300, id="inside-restarts"),
        pytest.param([0, 301], 600, id="expired-doubles"),
        pytest.param([0, 301, 1000, 2300], 1800, id="at-most-half-an-hour"),
        pytest.param([0, 301, 1000, 2300, 4200], 1800, id="stays-there"),
        pytest.param([0, 301, 11_200], 300, id="forgotten-after-three-hours"),
    ],
)
def test_a_back_off_doubles_when_the_last_one_has_expired(failures: list[float], seconds: float) -> None:
    last: BackOff | None = None
    for at in failures:
        last = after_failure(last, at, "it failed")
    assert last == BackOff(failures[-1] + seconds, seconds, failures[-1], "it failed")


def test_a_back_off_is_forgotten_three_hours_after_the_last_failure() -> None:
    last = after_failure(None, 0.0, "it failed")
    assert not is_forgotten(last, 10_800.0)
    assert is_forgotten(last, 10_801.0)


@pytest.mark.parametrize(
    ("present", "starting", "age", "minimum", "found"),
    [
        pytest.param(3, 0, 100, 0, GroupRequest(5, missing=2), id="on-their-way"),
        pytest.param(3, 0, 901, 0, GroupRequest(3, late=2), id="did-not-come"),
        pytest.param(3, 0, 901, 4, GroupRequest(4, late=2), id="not-below-the-minimum"),
        pytest.param(4, 1, 901, 0, GroupRequest(5, late=1), id="came-but-not-ready"),
        pytest.param(5, 0, 901, 0, GroupRequest(5), id="all-came"),
    ],
)
def test_requested_nodes_are_missing_until_they_are_late(
    present: int, starting: int, age: float, minimum: int, found: GroupRequest
) -> None:
    names = tuple(f"n{number}" for number in range(present + starting))
    readiness = NodeReadiness(present, starting)
    its = group("a", size=5, min_size=minimum, nodes=names)
    assert group_request(its, readiness, RequestedNodes(5, NOW - age), age, 900.0) == found


@pytest.mark.parametrize(
    ("present", "minimum", "size"),
    [
        pytest.param(3, 0, 5, id="some-came"),
        pytest.param(0, 0, 0, id="none-came"),
        pytest.param(0, 2, 5, id="none-came-and-a-minimum"),
    ],
)
def test_late_nodes_do_not_split_an_all_or_nothing_group(present: int, minimum: int, size: int) -> None:
    names = tuple(f"n{number}" for number in range(present))
    its = group("a", size=5, max_size=5, min_size=minimum, nodes=names, zero_or_max=True)
    found = group_request(its, NodeReadiness(present), RequestedNodes(5, NOW - 901), 901, 900.0)
    assert found == GroupRequest(size, late=5 - present)


def test_requested_nodes_that_came_and_are_not_ready_any_more_are_not_late() -> None:
    its = group("a", size=5, nodes=("n0", "n1", "n2", "n3", "n4"))
    readiness = NodeReadiness(ready=3, unready=2)
    assert group_request(its, readiness, RequestedNodes(5, NOW - 901), 901, 900.0) == GroupRequest(5)


def test_without_a_remembered_request_no_node_is_missing() -> None:
    assert group_request(group("a", size=5), NodeReadiness(), None, 0.0, 900.0) == GroupRequest(5)


def _situation(memory: ClusterSizeMemory, *, writes_sizes: bool = True, size: int = 2) -> ClusterSituation:
    groups = NodeGroups((group("a", size=size, nodes=("n0",)),), {"n0": "a"})
    return ClusterSituation(NOW, (node("n0"),), (), groups, memory=memory, writes_sizes=writes_sizes)


def test_a_group_whose_nodes_are_late_backs_off_and_its_request_is_dropped() -> None:
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(2, NOW - 901)}, last_delete=7.0)
    found, changed = requests_of(_situation(memory), SETTINGS, {"a": NodeReadiness(1)})
    assert found == {"a": GroupRequest(1, late=1)}
    back_off = BackOff(NOW + 300, 300.0, NOW, "1 requested node was not ready within 900 s")
    assert changed == structs.replace(memory, requested={}, back_offs={"a": back_off})


@pytest.mark.parametrize(("until", "renewed"), [(NOW + 100.0, NOW + 100.0), (NOW, NOW + 600.0)])
def test_a_group_whose_machines_cannot_be_made_backs_off_again_only_once_its_back_off_has_ended(
    until: float, renewed: float
) -> None:
    memory = ClusterSizeMemory(
        requested={"a": RequestedNodes(2, NOW - 10)}, back_offs={"a": BackOff(until, 300.0, until - 300.0, "no quota")}
    )
    its = _situation(memory)
    [members] = its.groups.groups
    its = replace(its, groups=replace(its.groups, groups=(replace(members, failures=("no quota",)),)))
    _, changed = requests_of(its, SETTINGS, {"a": NodeReadiness(1)})
    assert (changed or memory).back_offs["a"].until == renewed


def test_fulfilled_requests_and_old_back_offs_are_dropped() -> None:
    old = BackOff(1.0, 1.0, 1.0, "long ago")
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(1, NOW - 10)}, back_offs={"b": old})
    _, changed = requests_of(_situation(memory, size=1), SETTINGS, {"a": NodeReadiness(1)})
    assert changed == ClusterSizeMemory()


def test_requests_of_groups_that_are_not_known_now_are_kept_while_they_matter() -> None:
    late = RequestedNodes(2, LATE)
    requested = {"new": RequestedNodes(2, NOW - 899), "old": RequestedNodes(2, NOW - 901), "late": late, "over": late}
    memory = ClusterSizeMemory(requested=requested, back_offs={"late": BackOff(NOW + 300, 300.0, NOW, "late nodes")})
    _, changed = requests_of(_situation(memory, size=1), SETTINGS, {"a": NodeReadiness(1)})
    assert changed is not None
    assert set(changed.requested) == {"new", "late"}


def test_a_written_size_that_is_not_read_yet_stays_requested() -> None:
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(2, NOW - 1)})
    found, changed = requests_of(_situation(memory, size=1), SETTINGS, {"a": NodeReadiness(1)})
    assert found == {"a": GroupRequest(1)}
    assert changed is None


def test_no_node_is_late_if_sizes_are_not_written() -> None:
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(2, NOW - 901)})
    found, changed = requests_of(_situation(memory, writes_sizes=False), SETTINGS, {"a": NodeReadiness(1)})
    assert found == {"a": GroupRequest(2)}
    assert changed is None


SCALABLE = TargetReference("cluster.x-k8s.io/v1beta1", "MachineDeployment", "default", "a")


@pytest.mark.parametrize(
    ("its", "writes_sizes", "missing"),
    [
        pytest.param(group("a", size=3, nodes=("n0",)), True, 0, id="size-cannot-be-written"),
        pytest.param(
            replace(group("a", size=3, nodes=("n0",)), scalable=SCALABLE), True, 2, id="written-and-forgotten"
        ),
        pytest.param(replace(group("a", size=3, nodes=("n0",)), scalable=SCALABLE), False, 0, id="only-recommended"),
        pytest.param(
            replace(group("a", size=3, nodes=("n0",)), scalable=SCALABLE, paused="by hand"), True, 0, id="paused"
        ),
        pytest.param(replace(group("a", size=1, nodes=("n0",)), scalable=SCALABLE), True, 0, id="none-is-missing"),
    ],
)
def test_nodes_requested_before_the_memory_was_lost_are_still_expected(
    its: NodeGroup,
    writes_sizes: bool,  # noqa: FBT001 - a column of the table
    missing: int,
) -> None:
    groups = NodeGroups((its,), {"n0": "a"})
    situation = ClusterSituation(NOW, (node("n0"),), (), groups, writes_sizes=writes_sizes)

    found, changed = requests_of(situation, SETTINGS, {"a": NodeReadiness(1)})

    assert found["a"].missing == missing
    assert (changed.requested if changed else {}) == ({"a": RequestedNodes(3, NOW)} if missing else {})


@pytest.mark.parametrize(("size", "request_size", "missing", "late"), [(3, 2, 2, 0), (3, 3, 0, 2)])
def test_nodes_that_are_requested_after_late_ones_are_expected_anew(
    size: int, request_size: int, missing: int, late: int
) -> None:
    its = replace(group("a", size=size, nodes=("n0",)), scalable=SCALABLE)
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(request_size, LATE)})
    situation = ClusterSituation(
        NOW, (node("n0"),), (), NodeGroups((its,), {"n0": "a"}), memory=memory, writes_sizes=True
    )
    found, _ = requests_of(situation, SETTINGS, {"a": NodeReadiness(1)})
    assert (found["a"].missing, found["a"].late) == (missing, late)


def test_a_node_that_is_not_ready_has_the_taint_of_one() -> None:
    ready, unready = node("a"), node("b", conditions={"Ready": "Unknown"})
    assert with_readiness_taint(ready) is ready
    tainted = with_readiness_taint(unready)
    assert [(each.key, each.effect) for each in tainted.taints] == [
        ("node.kubernetes.io/not-ready", TaintEffect.NO_SCHEDULE)
    ]
    assert with_readiness_taint(tainted) is tainted


@pytest.mark.parametrize(
    ("known", "of_nodes", "expected"),
    [
        (None, (), None),
        (500.0, (), 500.0),
        (None, ("400",), 400.0),
        (500.0, ("400",), 500.0),
        (500.0, ("400", "600"), 600.0),
        (500.0, ("soon", "-1", ""), 500.0),
        (500.0, ("99999999999",), NOW),
    ],
)
def test_the_last_failed_removal_is_the_newer_of_memory_and_nodes(
    known: float | None, of_nodes: tuple[str, ...], expected: float | None
) -> None:
    nodes = tuple(node(f"n{text}", annotations={FAILED_REMOVAL: text}) for text in of_nodes)
    memory = ClusterSizeMemory(last_failure=known)
    assert with_failed_removals(memory, ClusterState(nodes=Observed(nodes, NOW)), NOW).last_failure == expected
    assert with_failed_removals(memory, ClusterState(), NOW) is memory
