"""Scale-up decides how many nodes each group gets, and says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapter.foundation.cluster.values.constraints import PodScheduling, PodTerm
from adapter.foundation.objects.selectors import parse_selector
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.estimator.packing_program import least_cost
from recommender.kinds.cluster_size.model.answer import LowerBound
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.memory import BackOff, ClusterSizeMemory, RequestedNodes
from recommender.kinds.cluster_size.model.size_settings import SizeLimits
from recommender.kinds.cluster_size.scale_up.decide import scale_up
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, settings, situation, snapshot_of
from tests.recommender.kinds.cluster_size.scale_up.pools import pods

NOT_READY = {"Ready": "False"}
SMALL = template("2", "8Gi", labels={"pool": "small"})
LARGE = template("8", "32Gi", labels={"pool": "large"})
IN_LARGE = PodScheduling(node_selector=(("pool", "large"),))
IN_SMALL = PodScheduling(node_selector=(("pool", "small"),))


def test_pods_that_fit_on_existing_nodes_need_no_new_ones() -> None:
    nodes = [node("n0"), node("n1")]
    answer = decided(situation([group("a", size=2, nodes=("n0", "n1"))], nodes=nodes, pods=pods(8)))
    assert answer.increases == {}
    assert answer.fitting_pods == 8
    assert answer.reasons == {"a": "no pending pod needs another node"}


def test_remaining_pods_get_new_nodes_and_the_round_is_recorded() -> None:
    answer = decided(situation([group("a", size=1, nodes=("n0",))], nodes=[node("n0")], pods=pods(10)))
    assert answer.increases == {"a": 2}
    assert (answer.fitting_pods, answer.helped_pods) == (4, 6)
    assert [(step.step, step.group, step.value) for step in answer.steps] == [("round/1", "a", 3)]
    assert answer.steps[0].detail == "2 nodes for 6 pods; the only group that can hold pods"
    assert answer.binding == "round/1"


def test_after_the_decision_the_snapshot_holds_the_new_nodes_with_their_pods() -> None:
    its = situation([group("a")], pods=pods(6))
    snapshot = snapshot_of(its)
    scale_up(its, settings(), snapshot)
    assert {name: len(info.pods) for name, info in snapshot.nodes.items()} == {"a-new-0": 4, "a-new-1": 2}


def test_rounds_combine_groups_if_one_group_cannot_hold_all_pods() -> None:
    groups = [group("large", node_template=LARGE), group("small", node_template=SMALL)]
    waiting = [
        *pods(1, name="l", like=pod("l", scheduling=IN_LARGE)),
        *pods(1, name="s", like=pod("s", scheduling=IN_SMALL)),
    ]
    answer = decided(situation(groups, pods=waiting))
    assert answer.increases == {"large": 1, "small": 1}
    assert [step.step for step in answer.steps] == ["round/1", "round/2"]


def test_one_round_gives_the_single_decision_of_the_peer() -> None:
    groups = [group("large", node_template=LARGE), group("small", node_template=SMALL)]
    waiting = [
        *pods(2, name="l", like=pod("l", scheduling=IN_LARGE)),
        *pods(1, name="s", like=pod("s", scheduling=IN_SMALL)),
    ]
    answer = decided(situation(groups, pods=waiting), rounds=1, expanders=("most-pods",))
    assert answer.increases == {"large": 1}
    limit = "one more node would do, but the limit of rounds is reached"
    assert (answer.unschedulable[0].groups["small"], answer.reasons["small"]) == (limit, limit)


def test_pods_that_only_wait_for_a_further_round_do_not_count_as_pods_that_no_group_can_hold() -> None:
    groups = [group("large", node_template=LARGE), group("small", node_template=SMALL)]
    waiting = [
        *pods(1, name="l", like=pod("l", scheduling=IN_LARGE)),
        *pods(1, name="s", like=pod("s", scheduling=IN_SMALL)),
        *pods(1, name="x", like=pod("x", "9")),
    ]
    answer = decided(situation(groups, pods=waiting), rounds=1, expanders=("priority",), priorities={1: ("large",)})
    assert answer.increases == {"large": 1}
    assert {alike.pods[0].name: alike.is_left_out for alike in answer.unschedulable} == {"s-0": True, "x-0": False}


def test_if_a_group_is_full_the_next_one_gets_the_rest() -> None:
    groups = [group("a", max_size=1), group("b", max_size=5)]
    answer = decided(situation(groups, pods=pods(12)), expanders=("priority",), priorities={1: ("b",), 9: ("a",)})
    assert answer.increases == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("changes", "increase", "binding"),
    [
        pytest.param({"limits": SizeLimits(max_nodes=2)}, 1, "limits.nodes", id="nodes"),
        pytest.param({"limits": SizeLimits(max_cores=12)}, 2, "limits.cores", id="cores"),
        pytest.param({"limits": SizeLimits(max_memory_bytes=33 << 30)}, 1, "limits.memory", id="memory"),
        pytest.param({}, 3, "maxSize", id="maximum"),
    ],
)
def test_limits_bind_and_are_named(changes: dict[str, object], increase: int, binding: str) -> None:
    nodes = [node("outside", "4", "16Gi", unschedulable=True)]
    answer = decided(situation([group("a", max_size=3)], nodes=nodes, pods=pods(100)), **changes)
    assert answer.increases == {"a": increase}
    assert answer.binding == binding
    assert len(answer.unschedulable) == 1
    assert len(answer.unschedulable[0].pods) == 100 - 4 * increase


def test_nodes_that_are_requested_and_do_not_exist_yet_count_for_limits() -> None:
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(3, NOW - 60)}, sizes={"a": 3})
    grown = group("a", size=3, nodes=("n0",))
    its = situation([grown], nodes=[node("n0")], pods=pods(100), memory=memory, writes_sizes=True)
    answer = decided(its, limits=SizeLimits(max_nodes=4))
    assert (answer.increases, answer.binding) == ({"a": 1}, "limits.nodes")


@pytest.mark.parametrize(
    ("configured", "chosen"), [(None, "b"), ({1: ("a",)}, "a")], ids=["ConfigMap", "configuration"]
)
def test_the_priorities_of_the_config_map_count_unless_there_are_own_ones(
    configured: dict[int, tuple[str, ...]] | None, chosen: str
) -> None:
    its = situation([group("a"), group("b")], pods=pods(1), priorities={1: ("a",), 9: ("b",)})
    assert decided(its, expanders=("priority",), priorities=configured).increases == {chosen: 1}


def test_an_extended_resource_is_limited() -> None:
    gpus = group("gpu", node_template=template(extended={"nvidia.com/gpu": "4"}))
    waiting = pods(40, like=pod("gpu", extended={"nvidia.com/gpu": "1"}))
    answer = decided(situation([gpus], pods=waiting), limits=SizeLimits(gpus={"nvidia.com/gpu": 18}))
    assert answer.increases == {"gpu": 4}
    assert answer.binding == "limits.gpus[nvidia.com/gpu]"


@pytest.mark.parametrize(
    ("largest", "limit", "increases"),
    [
        pytest.param(6, None, {"a": 6}, id="always-its-maximum"),
        pytest.param(6, 5, {}, id="not-at-all-beyond-a-limit"),
    ],
)
def test_an_all_or_nothing_group_gets_all_its_nodes_or_none(
    largest: int, limit: int | None, increases: dict[str, int]
) -> None:
    its = group("a", max_size=largest, zero_or_max=True)
    answer = decided(situation([its], pods=pods(1)), limits=SizeLimits(max_nodes=limit))
    assert answer.increases == increases


def test_similar_groups_share_the_nodes_and_differences_are_reported() -> None:
    zones = [template(labels={"topology.kubernetes.io/zone": zone}) for zone in "xyz"]
    other = template(labels={"tier": "gold"})
    groups = [
        *(group(f"g{n}", size=n, node_template=zone, max_size=9) for n, zone in enumerate(zones)),
        group("other", size=0, node_template=other),
    ]
    its = situation(groups, pods=pods(24))
    answer = decided(its, balance_similar_node_groups=True, expanders=("priority",), priorities={1: ("g0",)})
    assert answer.increases == {"g0": 3, "g1": 2, "g2": 1}
    assert "not balanced with other: the label tier is absent and 'gold'" in answer.steps[0].detail
    assert answer.unschedulable == ()


def test_minimum_sizes_are_reached_first_and_their_nodes_hold_pending_pods() -> None:
    groups = [group("a", size=1, min_size=3), group("b")]
    answer = decided(situation(groups, pods=pods(8)))
    assert answer.increases == {"a": 2}
    assert answer.steps[0].step == "minSize"
    assert answer.fitting_pods == 8


@pytest.mark.parametrize(("size", "missing"), [(0, 3), (2, 1), (3, 0), (4, 0)])
def test_a_group_grows_to_its_minimum_without_pending_pods(size: int, missing: int) -> None:
    its = situation([group("a", size=size, min_size=3)])
    assert decided(its, max_nodes_per_scale_up=1).increases.get("a", 0) == missing


@pytest.mark.parametrize(("whole", "increases"), [(False, {"a": 2}), (True, {})])
def test_a_limit_leaves_a_group_below_its_minimum_and_splits_no_all_or_nothing_group(
    *, whole: bool, increases: dict[str, int]
) -> None:
    its = situation([group("a", min_size=3, max_size=3, zero_or_max=whole)])
    assert decided(its, limits=SizeLimits(max_nodes=2)).increases == increases


def test_minimum_sizes_are_ignored_unless_enforced() -> None:
    assert decided(situation([group("a", min_size=3)]), enforce_min_size=False).increases == {}


def test_groups_without_template_or_with_a_problem_are_reported_and_left_out() -> None:
    groups = [
        replace(group("empty"), template=None),
        group("broken", problem="its object states no size"),
        group("whole"),
    ]
    answer = decided(situation(groups, pods=pods(1, "100")))
    assert answer.increases == {}
    assert "neither a ready node nor a template" in answer.reasons["empty"]
    assert answer.reasons["broken"] == "its object states no size"
    assert answer.unschedulable[0].groups == {
        "broken": "its object states no size",
        "empty": answer.reasons["empty"],
        "whole": "Insufficient cpu (100 requested, 4 of 4 left)",
    }


def test_an_unhealthy_cluster_is_not_scaled_up() -> None:
    nodes = [node(f"n{number}", conditions=NOT_READY) for number in range(4)]
    its = situation([group("a", size=4, nodes=[each.name for each in nodes])], nodes=nodes, pods=pods(1))
    answer = decided(its)
    assert answer.hold.startswith("nodes that are not ready: 4 of 4")
    assert answer.increases == {}
    assert answer.reasons == {"a": answer.hold}


def test_starting_nodes_count_as_on_their_way() -> None:
    taints = ("node.kubernetes.io/not-ready:NoSchedule",)
    starting = node("n0", conditions=NOT_READY, taints=taints, created=NOW - 60)
    its = situation([group("a", size=1, nodes=("n0",))], nodes=[starting], pods=pods(4))
    assert decided(its).increases == {}


@pytest.mark.parametrize(
    ("present", "increases"),
    [
        pytest.param("kube-proxy", {}, id="its-own-static-pod"),
        pytest.param("other", {"a": 1}, id="another-static-pod"),
    ],
)
def test_a_static_pod_of_a_starting_node_counts_once(present: str, increases: dict[str, int]) -> None:
    starting = node("n0", conditions=NOT_READY, created=NOW - 60)
    static = [
        pod(f"{name}-{on}", "1500m", node=on, namespace="kube-system", controller=controller(on, "Node", "v1"))
        for name, on in (("kube-proxy", "n9"), (present, "n0"))
    ]
    like_n9 = replace(template(), pods=(replace(static[0], node=""),))
    members = group("a", size=1, nodes=("n0",), node_template=like_n9)
    its = situation([members], nodes=[starting], pods=[static[1], pod("web", "2", controller="web")])
    assert decided(its).increases == increases


def test_a_node_that_is_unready_for_long_does_not_count_as_on_its_way() -> None:
    taints = ("node.kubernetes.io/not-ready:NoSchedule",)
    old = node("n0", conditions=NOT_READY, taints=taints, created=NOW - 3600)
    its = situation([group("a", size=1, nodes=("n0",))], nodes=[old], pods=pods(4))
    assert decided(its).increases == {"a": 1}


@pytest.mark.parametrize(
    ("writes_sizes", "increases"),
    [pytest.param(True, {}, id="written"), pytest.param(False, {"a": 2}, id="only-recommended")],
)
def test_a_size_is_recommended_again_unless_it_is_written(*, writes_sizes: bool, increases: dict[str, int]) -> None:
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(2, NOW - 60)}, sizes={"a": 2})
    size = 2 if writes_sizes else 0
    its = situation([group("a", size=size)], pods=pods(8), memory=memory, writes_sizes=writes_sizes)
    assert decided(its).increases == increases


def test_late_nodes_correct_the_size_and_the_next_group_is_tried() -> None:
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(2, NOW - 901)})
    its = situation([group("a", size=2), group("b")], pods=pods(8), memory=memory, writes_sizes=True)
    answer = decided(its, expanders=("priority",), priorities={9: ("a",), 1: ("b",)})
    assert answer.increases == {"a": -2, "b": 2}
    assert answer.steps[0].step == "maxNodeProvisionTime"
    assert answer.memory is not None
    assert answer.memory.requested == {}
    assert answer.memory.back_offs["a"].until == NOW + 300


def test_late_nodes_do_not_split_an_all_or_nothing_group_and_the_next_group_is_tried() -> None:
    """A smaller size would leave some of its nodes, and end the request for those that may still come."""
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(3, NOW - 901)})
    workers = TargetReference("cluster.x-k8s.io/v1beta1", "MachineDeployment", "default", "a")
    whole = replace(group("a", size=3, max_size=3, nodes=("n0",), zero_or_max=True), scalable=workers)
    its = situation([whole, group("b")], nodes=[node("n0")], pods=pods(8), memory=memory, writes_sizes=True)
    answer = decided(its)
    assert answer.increases == {"b": 1}
    assert answer.memory is not None
    assert answer.memory.back_offs["a"].reason == "2 requested nodes were not ready within 900 s"
    later = decided(replace(its, memory=answer.memory, now=NOW + 301))
    assert later.increases == {"b": 1}
    assert later.memory is not None
    assert "its size still counts them" in later.memory.back_offs["a"].reason


def test_a_group_that_backs_off_does_not_grow_until_the_back_off_ends() -> None:
    back_off = BackOff(NOW + 60, 300.0, NOW - 240, "it failed")
    its = situation([group("a", min_size=1)], pods=pods(1), memory=ClusterSizeMemory(back_offs={"a": back_off}))
    answer = decided(its)
    assert answer.increases == {}
    assert answer.reasons["a"] == "it is backing off until 1970-01-12T13:47:40Z: it failed"
    later = replace(its, now=NOW + 61)
    assert decided(later).increases == {"a": 1}


def test_a_group_with_a_longer_provision_time_waits_longer_for_its_nodes() -> None:
    patient = replace(group("a", size=2), options=GroupOptions(max_node_provision_seconds=2000.0))
    memory = ClusterSizeMemory(requested={"a": RequestedNodes(2, NOW - 1000)})
    assert decided(situation([patient], pods=pods(8), memory=memory, writes_sizes=True)).increases == {}


def test_pods_with_mutual_anti_affinity_get_a_node_each() -> None:
    selector = parse_selector("app=web")
    term = PodTerm("kubernetes.io/hostname", selector, frozenset({"default"}))
    apart = PodScheduling(anti_affinity=(term,))
    answer = decided(situation([group("a")], pods=pods(3, like=pod("apart", labels={"app": "web"}, scheduling=apart))))
    assert answer.increases == {"a": 3}


def test_a_missing_price_is_reported() -> None:
    groups = [group("priced", price=1.0), group("unpriced")]
    answer = decided(situation(groups, pods=pods(1)), expanders=("price",))
    assert answer.increases == {"priced": 1}
    assert "not compared, because they have no price: unpriced" in answer.steps[0].detail


def test_broken_priorities_are_reported_and_do_not_prevent_a_choice() -> None:
    groups = [group("a"), group("b")]
    answer = decided(situation(groups, pods=pods(1)), expanders=("priority",), priorities={1: ("(",)})
    assert len(answer.increases) == 1
    assert "a pattern of priority 1 cannot be used" in answer.steps[0].detail


def test_the_answer_states_a_bound_for_the_optimum() -> None:
    groups = [group("a", price=2.0), group("b", price=3.0)]
    answer = decided(situation(groups, pods=pods(9)), expanders=("priority",), priorities={1: ("b",)})
    assert answer.bound is not None
    assert (answer.bound.nodes, answer.bound.bound, answer.bound.cost) == (3, 3, 9.0)
    assert answer.bound.cost_bound == pytest.approx(4.5, rel=1e-4)


def test_groups_grow_without_a_bound_that_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recommender.kinds.cluster_size.estimator.least_nodes.least_cost", lambda *_: None)
    answer = decided(situation([group("a")], pods=pods(9)))
    assert answer.increases == {"a": 3}
    assert answer.bound is None


def test_a_cost_bound_that_would_take_too_long_is_not_stated_as_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The costs differ between groups, so that the solver may take longer for them than for numbers of nodes."""

    def nodes_only(demands: Any, free: Any, costs: list[float]) -> float | None:  # noqa: ANN401 - handed on as they are
        return least_cost(demands, free, costs) if set(costs) == {1.0} else None

    monkeypatch.setattr("recommender.kinds.cluster_size.estimator.least_nodes.least_cost", nodes_only)
    answer = decided(situation([group("a", price=2.0)], pods=pods(9)))
    assert answer.bound == LowerBound(3, 3, cost=6.0)


def test_without_new_nodes_there_is_no_bound() -> None:
    assert decided(situation([group("a")])).bound is None


def test_pods_named_like_the_pods_of_a_new_node_are_placed() -> None:
    own = pod("agent", namespace="kube-system", controller=controller("agent", "DaemonSet"))
    nameless = [pod("", namespace="kube-system", controller=controller(name, "DaemonSet")) for name in "xy"]
    its = group("a", node_template=template(pods=[own, *nameless]))
    waiting = [pod(name, "1", namespace="kube-system") for name in ("agent-a-new-0", "-a-new-0", "agent")]
    assert decided(situation([its], pods=waiting)).helped_pods == 3


def test_a_minimum_above_the_maximum_does_not_exceed_the_maximum() -> None:
    assert decided(situation([group("a", min_size=5, max_size=2)])).increases == {"a": 2}


@pytest.mark.parametrize(("most", "added"), [(1, {}), (29, {}), (30, {"a": 30})])
@pytest.mark.parametrize("minimum", [0, 1])
def test_an_all_or_nothing_group_does_not_exceed_max_nodes_per_scale_up(
    most: int, added: dict[str, int], minimum: int
) -> None:
    its = situation([group("a", max_size=30, min_size=minimum, zero_or_max=True)], pods=pods(3))
    answer = decided(its, max_nodes_per_scale_up=most)
    assert answer.increases == added
    if not added:
        assert f"maxNodesPerScaleUp is {most}" in answer.reasons["a"]
        assert answer.binding == "maxNodesPerScaleUp"


def test_gpus_that_cannot_be_allocated_yet_count_for_limits() -> None:
    gpu = {"nvidia.com/gpu": "2"}
    started = node("n0", created=NOW - 60)
    waiting = [pod(f"p{number}", extended=gpu, controller="job") for number in range(3)]
    its = situation(
        [group("a", size=1, nodes=("n0",), node_template=template(extended=gpu))], nodes=[started], pods=waiting
    )
    answer = decided(its, limits=SizeLimits(gpus={"nvidia.com/gpu": 4}))
    assert answer.increases == {"a": 1}
    assert answer.fitting_pods == 1
