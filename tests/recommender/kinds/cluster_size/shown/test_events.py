"""Events of cluster size decisions."""

from __future__ import annotations

from dataclasses import replace

from recommender.decisions.record import Record, Status, TargetReference
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize, UnschedulablePods, answer_of
from recommender.kinds.cluster_size.model.memory import BackOff, ClusterSizeMemory
from recommender.kinds.cluster_size.model.pod_places import PodName, pod_names
from recommender.kinds.cluster_size.shown.events import events_of_sizes
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, situation
from tests.recommender.kinds.cluster_size.scale_up.pools import pods

WORKERS = TargetReference("cluster.x-k8s.io/v1beta1", "MachineDeployment", "capi", "workers")


def record(size: int, *names: str) -> Record:
    groups = (
        GroupSize("workers", 3, size, size, 0, 9, "2 pods wait", scalable=WORKERS),
        GroupSize("static", 3, size, size, 0, 9, "2 pods wait"),
    )
    alike = tuple(
        UnschedulablePods((PodName("shop", name), PodName("shop", f"{name}-b")), {"a": "Insufficient cpu"})
        for name in names
    )
    return Record("w", "clusterSize", 1.0, Status.OK, "", details=ClusterSizeAnswer(groups, unschedulable=alike))


def test_a_changed_size_is_an_event_of_the_object_that_holds_it() -> None:
    [event] = events_of_sizes(record(3), record(5))

    assert str(event.target) == "MachineDeployment capi/workers"
    assert (event.reason, event.message) == (
        "RecommendationChanged",
        "recommendation w: from 3 to 5 nodes: 2 pods wait",
    )


def test_the_first_record_has_no_events() -> None:
    assert list(events_of_sizes(None, record(5))) == []


def test_the_event_of_a_pod_has_its_uid() -> None:
    waiting = pod_names([pod("x")])
    answer = ClusterSizeAnswer((), unschedulable=(UnschedulablePods(waiting, {"a": "Insufficient cpu"}),))
    [event] = events_of_sizes(None, replace(record(3), details=answer))
    assert event.uid == pod("x").uid


def test_alike_pods_that_no_group_can_hold_share_one_event() -> None:
    first, second = record(3, "x"), record(3, "x", "y")

    assert [str(event.target) for event in events_of_sizes(None, first)] == ["Pod shop/x"]
    [event] = events_of_sizes(first, second)
    assert (str(event.target), event.reason, event.is_warning) == ("Pod shop/y", "NoNodeGroupFits", True)
    assert event.message.endswith("no node group can hold this pod (and 1 pod like it): a: Insufficient cpu")


def test_a_group_that_is_left_out_has_no_event() -> None:
    before, after = record(5), record(3)
    for one in (before, after):
        answer = answer_of(one)
        assert answer is not None
        left_out = tuple(replace(group, is_left_out=True) for group in answer.groups)
        changed = replace(one, details=replace(answer, groups=left_out))
        pair = (changed, after) if one is before else (before, changed)
        assert list(events_of_sizes(*pair)) == []


def test_the_event_of_a_pod_without_a_tried_group_states_only_the_reason() -> None:
    gated = UnschedulablePods((PodName("shop", "x"),), {}, "it has a scheduling gate", is_left_out=True)
    one = Record("w", "clusterSize", 1.0, Status.OK, "", details=ClusterSizeAnswer(unschedulable=(gated,)))

    [event] = events_of_sizes(None, one)

    assert event.message == "recommendation w: no node is added for this pod: it has a scheduling gate"


def test_a_pod_has_an_event_once_no_group_can_hold_it_and_none_while_it_waits_for_a_further_round() -> None:
    refused = record(3, "x")
    answer = answer_of(refused)
    assert answer is not None
    waiting = tuple(replace(alike, is_left_out=True) for alike in answer.unschedulable)
    waits = replace(refused, details=replace(answer, unschedulable=waiting))

    assert list(events_of_sizes(None, waits)) == []
    assert [str(event.target) for event in events_of_sizes(waits, refused)] == ["Pod shop/x"]


def test_a_pod_that_does_not_exist_has_no_event() -> None:
    one = record(3, "x", "y")
    answer = answer_of(one)
    assert answer is not None
    expected = frozenset({PodName("shop", "x"), PodName("shop", "x-b"), PodName("shop", "y")})

    [event] = events_of_sizes(None, replace(one, details=replace(answer, expected=expected)))

    assert str(event.target) == "Pod shop/y-b"


def test_a_decision_has_a_bounded_number_of_events() -> None:
    assert len(list(events_of_sizes(None, record(3, *(f"p{number}" for number in range(500)))))) == 10


def test_the_event_of_a_pod_does_not_quote_the_provider_of_a_group() -> None:
    denied = "cannot be made: arn:aws:iam::123456789012:role/nodes is not authorized"
    broken = replace(group("broken"), problem=f"PermissionError: {denied}")
    groups = [group("out-of-stock"), group("small", max_size=0), broken]
    memory = ClusterSizeMemory(back_offs={"out-of-stock": BackOff(NOW + 60, 300.0, NOW - 240, denied)})
    scaled = decided(situation(groups, pods=pods(1), memory=memory))
    answer = ClusterSizeAnswer(unschedulable=scaled.unschedulable)

    [event] = events_of_sizes(None, Record("w", "clusterSize", 1.0, Status.OK, "", details=answer))

    assert denied in scaled.reasons["out-of-stock"]
    assert denied in scaled.reasons["broken"]
    assert "arn:" not in event.message
    assert "out-of-stock: it cannot grow at present: the page says why" in event.message
    assert "small: its maximum of 0 nodes is reached" in event.message
