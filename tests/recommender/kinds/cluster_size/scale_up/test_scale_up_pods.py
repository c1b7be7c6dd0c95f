"""The pods that count for scale-up, and the time from which they count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.pod_places import PodName
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, settings, situation
from tests.recommender.kinds.cluster_size.scale_up.pools import pods

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod


def test_pods_that_do_not_count_are_listed_with_the_reason() -> None:
    waiting = [
        pod("gated", scheduling=PodScheduling(is_gated=True)),
        pod("theirs", scheduling=PodScheduling(scheduler_name="volcano")),
        pod("expendable", "100", priority=-11),
        pod("barely-important", priority=-10),
        pod("daemon", "100", controller=controller("agent", "DaemonSet")),
        pod("expendable-daemon", "100", priority=-11, controller=controller("agent", "DaemonSet")),
        pod("going", "100", deleted=NOW),
        pod("expendable-going", "100", priority=-11, deleted=NOW),
        pod("ended", "100", phase="Succeeded"),
        pod("twice"),
        pod("twice"),
    ]
    answer = decided(
        situation([group("a", max_size=1)], pods=waiting), scheduler_names=frozenset({"default-scheduler"})
    )
    assert {str(each.pods[0]): each.reason.split(":")[0] for each in answer.unschedulable} == {
        "default/gated": "it has a scheduling gate",
        "default/theirs": "the scheduler volcano is not among schedulerNames",
        "default/expendable": "its priority of -11 is below expendablePodsPriorityCutoff",
        "default/twice": "another pod has the same namespace and name",
    }
    assert answer.helped_pods == 2


def test_bound_expendable_pods_take_no_room() -> None:
    bound = pod("low", "4", node="n0", priority=-11)
    its = situation([group("a", size=1, nodes=("n0",))], nodes=[node("n0")], pods=[bound, *pods(1, "4")])
    assert decided(its).fitting_pods == 1


@pytest.mark.parametrize(
    ("age", "annotation", "waits", "waiting"),
    [
        pytest.param(10, "", True, True, id="younger-than-the-delay"),
        pytest.param(40, "", True, False, id="older"),
        pytest.param(40, "1m", True, True, id="annotation-lengthens"),
        pytest.param(10, "1s", True, True, id="annotation-does-not-shorten"),
        pytest.param(40, "soon", True, False, id="annotation-that-is-no-duration"),
        pytest.param(10, "", False, False, id="nothing-is-waited-for"),
    ],
)
def test_young_pods_wait(*, age: float, annotation: str, waits: bool, waiting: bool) -> None:
    notes = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": annotation} if annotation else {}
    its = situation([group("a")], pods=[pod("p", created=NOW - age, annotations=notes)], waits=waits)
    answer = decided(its, new_pod_scale_up_delay_seconds=30.0)
    assert answer.waiting == ((PodName("default", "p"),) if waiting else ())
    assert answer.increases == ({} if waiting else {"a": 1})


def test_if_all_pods_have_just_arrived_the_decision_waits_for_more() -> None:
    new, old = pod("new", created=NOW - 1), pod("old", created=NOW - 3)
    assert decided(situation([group("a")], pods=[new])).waiting == (PodName("default", "new"),)
    assert decided(situation([group("a")], pods=[new, old])).waiting == ()


@pytest.mark.parametrize(
    ("ages", "delay", "until"),
    [
        pytest.param((1.0,), 0.0, 1.0, id="the-only-one-settles"),
        pytest.param((1.5, 0.2), 0.0, 0.5, id="all-settle-with-the-oldest"),
        pytest.param((2.0, 0.2), 0.0, None, id="settled"),
        pytest.param((5.0, 28.0), 30.0, 2.0, id="the-oldest-of-the-young"),
        pytest.param((0.5, 1.0), 1.2, 1.0, id="old-enough-before-they-settle"),
        pytest.param((5.0, 40.0), 30.0, 25.0, id="one-that-counts-is-not-waited-for"),
        pytest.param((40.0,), 30.0, None, id="all-count"),
        pytest.param((-7.0,), 0.0, 9.0, id="of-a-clock-that-is-ahead"),
        pytest.param((None, 1.0), 0.0, None, id="an-unknown-age-counts"),
    ],
)
def test_the_answer_states_when_the_first_young_pod_counts(
    ages: tuple[float | None, ...], delay: float, until: float | None
) -> None:
    young = [pod(f"p{i}", created=None if age is None else NOW - age) for i, age in enumerate(ages)]
    found = decided(situation([group("a")], pods=young), new_pod_scale_up_delay_seconds=delay)
    assert found.waits_until == (None if until is None else pytest.approx(NOW + until))


@pytest.mark.parametrize(
    ("cpu", "age", "annotation", "is_new"),
    [
        pytest.param("1", 1.0, "", True, id="just created"),
        pytest.param("1", 1.0, "1h", True, id="just created, and delayed by its annotation"),
        pytest.param("1", 20.0, "", True, id="younger than the delay of all pods"),
        pytest.param("1", 30.0, "1h", False, id="delayed by its annotation alone"),
        pytest.param("100", 1.0, "", False, id="larger than any node"),
    ],
)
def test_removals_wait_for_young_pods_that_a_node_could_hold_and_for_no_annotation(
    cpu: str, age: float, annotation: str, *, is_new: bool
) -> None:
    delay = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": annotation} if annotation else {}
    young = pod("young", cpu, created=NOW - age, annotations=delay)
    found = decided(situation([group("a")], pods=[young]), new_pod_scale_up_delay_seconds=30.0)
    assert [str(each) for each in found.waiting] == ["default/young"]
    assert found.new_pods == (found.waiting if is_new else ())


def test_without_waiting_no_pod_is_young() -> None:
    found = decided(situation([group("a")], pods=[pod("p", created=NOW)], waits=False))
    assert (found.waiting, found.waits_until) == ((), None)


@given(
    st.lists(st.tuples(st.floats(-5, 100), st.sampled_from(["", "7s", "0.3s"])), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.1, 3.0, 30.0]),
)
def test_a_waiting_pod_counts_at_the_stated_time(made: list[tuple[float, str]], delay: float) -> None:
    annotation = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
    young = [
        pod(f"p{number}", created=NOW - age, annotations={annotation: text} if text else {})
        for number, (age, text) in enumerate(made)
    ]
    first = decided(situation([group("a")], pods=young), new_pod_scale_up_delay_seconds=delay)
    assert (first.waits_until is None) == (not first.waiting)
    if first.waits_until is not None:
        assert first.waits_until > NOW
        later = replace(situation([group("a")], pods=young), now=first.waits_until)
        again = decided(later, new_pod_scale_up_delay_seconds=delay)
        assert set(again.waiting) < set(first.waiting)


def test_future_pods_are_neither_young_nor_expendable() -> None:
    future = pod("later", "3", created=NOW, priority=-1000)
    its = situation([group("a")], future_pods=(future,))
    assert decided(its, new_pod_scale_up_delay_seconds=60.0).increases == {"a": 1}


def test_unschedulable_future_pods_are_marked_as_expected() -> None:
    its = situation([group("a")], pods=[pod("now", "100")], future_pods=(pod("later", "100"),))
    answer = decide_size(its, settings())
    assert [str(one) for each in answer.unschedulable for one in each.pods] == ["default/now", "default/later"]
    assert answer.expected == {PodName("default", "later")}


def test_pods_of_nodes_that_are_being_deleted_need_room() -> None:
    going = replace(group("a", size=1, nodes=("n0",)), deleting=("n0",))
    bound = [pod("p", "3", node="n0", controller="web"), pod("d", node="n0", controller=controller("d", "DaemonSet"))]
    answer = decided(situation([going], nodes=[node("n0")], pods=bound))
    assert answer.increases == {"a": 1}
    assert answer.helped_pods == 1


def test_pods_of_a_node_whose_object_is_being_deleted_need_room() -> None:
    its = situation(
        [group("a", size=1, nodes=("n0",))],
        nodes=[node("n0", is_terminating=True)],
        pods=[pod("p", "3", node="n0", controller="web")],
    )
    assert decided(its).increases == {"a": 1}


@pytest.mark.parametrize(
    "bound",
    [
        pod("without-controller", "3", node="n0"),
        pod("ends", "3", node="n0", controller="web", deleted=NOW),
        pod("static", "3", node="n0", controller="n0", annotations={"kubernetes.io/config.mirror": "1"}),
        pod("has-ended", "3", node="n0", controller="web", phase="Succeeded"),
    ],
    ids=lambda its: its.name,
)
def test_pods_that_nothing_recreates_elsewhere_need_no_room(bound: ClusterPod) -> None:
    going = replace(group("a", size=1, nodes=("n0",)), deleting=("n0",))
    assert decided(situation([going], nodes=[node("n0")], pods=[bound])).increases == {}


def nominated(its: ClusterPod, on: str) -> ClusterPod:
    assert its.facts is not None
    return replace(its, facts=replace(its.facts, nominated_node=on))


@pytest.mark.parametrize(
    ("on", "cordoned", "needed"),
    [("n0", False, {}), ("n9", False, {"a": 1}), ("n0", True, {"a": 1}), ("", False, {"a": 1})],
)
def test_a_pod_that_preempts_others_needs_no_additional_node(
    on: str,
    cordoned: bool,  # noqa: FBT001 - a column of the table
    needed: dict[str, int],
) -> None:
    full = pod("victim", "4", "1Gi", node="n0", controller="low", deleted=NOW + 30)
    waiting = nominated(pod("urgent", "4", "1Gi", controller="high", priority=1000), on)
    nodes = [node("n0", unschedulable=cordoned)]
    its = situation([group("a", size=1, nodes=("n0",))], nodes=nodes, pods=[full, waiting])
    answer = decided(its)
    assert answer.increases == needed
    assert answer.fitting_pods == (0 if needed else 1)


def test_the_nomination_of_a_pod_of_a_deleted_node_is_ignored() -> None:
    # Before 1.34, Kubernetes keeps the nomination of a pod that got another node.
    moved = nominated(pod("p", "3", node="n0", controller="web"), "n1")
    full = pod("full", "3", node="n1", controller="web")
    its = replace(group("a", size=2, nodes=("n0", "n1")), deleting=("n0",))
    answer = decided(situation([its], nodes=[node("n0"), node("n1")], pods=[moved, full]))
    assert answer.increases == {"a": 1}


def test_pods_of_every_scheduler_get_nodes_unless_schedulers_are_listed() -> None:
    theirs = pod("theirs", scheduling=PodScheduling(scheduler_name="volcano"))
    its = situation([group("a")], pods=[theirs])
    assert decided(its).increases == {"a": 1}
    assert decided(its, scheduler_names=frozenset({"volcano"})).increases == {"a": 1}
    assert decided(its, scheduler_names=frozenset({"default-scheduler"})).increases == {}


def test_a_pod_that_fits_beside_a_later_pod_needs_no_node() -> None:
    beside = PodTerm(HOSTNAME_LABEL, parse_selector("app=db"), frozenset({"default"}))
    waiting = [
        pod("web", "1", labels={"app": "web"}, scheduling=PodScheduling(affinity=(beside,))),
        pod("db", "1", labels={"app": "db"}),
    ]
    answer = decided(situation([group("a", size=1, nodes=("n0",))], nodes=[node("n0")], pods=waiting))
    assert (answer.increases, answer.unschedulable, answer.fitting_pods) == ({}, (), 2)
