"""When nodes are removed, which of them, and what the others wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.answer import ScaleUp
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeTemplate, ProviderReference
from recommender.kinds.cluster_size.model.memory import LATE, Absence, ClusterSizeMemory, RequestedNodes
from recommender.kinds.cluster_size.model.pod_places import PodName
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings, SizeLimits
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import NOTHING, NOW, Harness, due, group, kept, waits

MINUTE = 60.0
HOUR = 3600.0
WHOLE = GroupOptions(zero_or_max=True)


def empty(count: int, *, waits: bool = True, since: float | None = 11 * MINUTE) -> Harness:
    """Return nodes without pods, unneeded for longer than required, and one node that must stay."""
    names = [f"n{number:02}" for number in range(count)]
    unneeded = {} if since is None else dict.fromkeys(names, NOW - since)
    return Harness(
        nodes=tuple(map(node, names)),
        groups=(group("g", names),),
        waits=waits,
        memory=ClusterSizeMemory(unneeded_since=unneeded),
    )


def drained(count: int, cpu: str = "1") -> Harness:
    """Return nodes with one pod each, all of which fit on one node that stays."""
    harness = empty(count)
    pods = tuple(pod(f"p-{one.name}", cpu, "1Gi", node=one.name, controller="web") for one in harness.nodes)
    return replace(harness, nodes=(*harness.nodes, node("stays", "64", "256Gi")), pods=pods)


def test_without_waiting_all_removable_nodes_are_due_at_once() -> None:
    decision = empty(20, waits=False).decide()
    assert len(due(decision)) == 20
    assert {one.unneeded_seconds for one in decision.removals} == {None}
    assert decision.unneeded_since == {}


def test_a_timer_starts_at_the_first_decision_and_must_exceed_its_time() -> None:
    harness = empty(1, since=None)
    first = harness.decide()
    assert waits(first) == {"n00": "NotUnneededLongEnough"}
    at_limit = harness.after(10 * MINUTE, first).decide()
    assert waits(at_limit) == {"n00": "NotUnneededLongEnough"}
    assert [one.unneeded_seconds for one in at_limit.removals] == [600.0]
    assert due(harness.after(10 * MINUTE + 1, first).decide()) == ["n00"]


def test_a_timer_restarts_after_the_node_was_needed() -> None:
    harness = empty(1)
    busy = replace(harness, pods=(pod("p", "3", node="n00", controller="web"),)).decide()
    assert busy.unneeded_since == {}
    assert waits(harness.after(MINUTE, busy).decide()) == {"n00": "NotUnneededLongEnough"}


@pytest.mark.parametrize(
    ("until", "waited"),
    [
        pytest.param(NOW, MINUTE, id="just-over"),
        pytest.param(NOW - 5 * MINUTE, 6 * MINUTE, id="over-for-a-while"),
    ],
)
def test_a_timer_stops_during_an_absence(until: float, waited: float) -> None:
    """A node that was unneeded for a minute before an outage may have been needed during it."""
    absence = Absence(NOW - HOUR, until)
    memory = ClusterSizeMemory(unneeded_since={"n00": NOW - HOUR - MINUTE}, absences=(absence,))
    harness = replace(empty(1), memory=memory)
    decision = harness.decide()
    assert waits(decision) == {"n00": "NotUnneededLongEnough"}
    assert [one.unneeded_seconds for one in decision.removals] == [waited]
    again = replace(harness, now=NOW + 10 * MINUTE - waited + 1).decide()
    assert due(again) == ["n00"]
    assert "unneeded for 10m1s" in again.removals[0].reason


def test_timers_restart_after_too_many_nodes_were_not_ready() -> None:
    harness = replace(empty(1, since=None), nodes=(node("n00", conditions={"Ready": "Unknown"}),))
    held = harness.decide(ScaleUp({}, hold="6 of 10 nodes are not ready"))
    for _ in range(3):
        harness = harness.after(10 * MINUTE, held)
        held = harness.decide(ScaleUp({}, hold="6 of 10 nodes are not ready"))
    healthy = harness.after(MINUTE, held)
    assert waits(healthy.decide()) == {"n00": "NotUnreadyLongEnough"}
    assert due(healthy.after(20 * MINUTE + 1, healthy.decide()).decide()) == ["n00"]


def test_a_timer_that_starts_in_the_future_counts_from_now() -> None:
    decision = empty(1, since=-3600.0).decide()
    assert decision.unneeded_since == {"n00": NOW}
    assert [one.unneeded_seconds for one in decision.removals] == [0.0]


@pytest.mark.parametrize(("minutes", "expected"), [(19, "NotUnreadyLongEnough"), (21, None)])
def test_a_node_that_is_not_ready_waits_longer(minutes: int, expected: str | None) -> None:
    harness = empty(1, since=minutes * MINUTE)
    unready = replace(harness, nodes=(node("n00", conditions={"Ready": "Unknown"}),))
    assert waits(unready.decide()).get("n00") == expected


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (ClusterSizeMemory(last_scale_up=NOW - 599), "nodes were added 9m59s ago, and delayAfterAdd is 10m0s"),
        (ClusterSizeMemory(last_failure=NOW - 60), "a removal failed 1m0s ago, and delayAfterFailure is 3m0s"),
        (ClusterSizeMemory(last_delete=NOW - 5), "a node was removed 5s ago, and delayAfterDelete is 1m0s"),
        (
            ClusterSizeMemory(last_scale_up=NOW - 9, last_delete=NOW - 5, last_failure=NOW - 7),
            "nodes were added 9s ago, and delayAfterAdd is 10m0s",
        ),
        (
            ClusterSizeMemory(last_scale_up=NOW - 599, last_delete=NOW - 5, last_failure=NOW - 7),
            "a removal failed 7s ago, and delayAfterFailure is 3m0s",
        ),
        (ClusterSizeMemory(last_scale_up=NOW + 99), "nodes were added 0s ago, and delayAfterAdd is 10m0s"),
    ],
)
def test_a_recent_change_holds_removals_while_timers_continue(memory: ClusterSizeMemory, text: str) -> None:
    harness = empty(1)
    settings = ScaleDownSettings(delay_after_delete_seconds=60)
    held = replace(
        harness, settings=settings, memory=structs.replace(memory, unneeded_since=harness.memory.unneeded_since)
    )
    decision = held.decide()
    assert [(one.is_due, one.reason) for one in decision.removals] == [(False, f"InCooldown: {text}")]
    assert decision.hold == f"InCooldown: {text}"
    assert decision.unneeded_since == harness.memory.unneeded_since


@pytest.mark.parametrize("at", [NOW - 600, NOW - 9999])
def test_a_cool_down_ends(at: float) -> None:
    harness = empty(1)
    assert due(replace(harness, memory=structs.replace(harness.memory, last_scale_up=at)).decide()) == ["n00"]


@pytest.mark.parametrize(
    ("scaled", "expected"),
    [
        (
            ScaleUp({"g": 2}),
            "ScaleUpNeeded: new nodes are needed (2 of g), and no node is removed before they are there",
        ),
        (ScaleUp({}, hold="4 of 6 nodes are not ready"), "ScaleUpHeld: 4 of 6 nodes are not ready"),
        (
            ScaleUp({}, new_pods=(PodName("shop", "web"),)),
            "YoungPendingPods: 1 pending pod, such as shop/web, may still need the node",
        ),
    ],
)
@pytest.mark.parametrize("waits", [True, False])
def test_needed_nodes_a_held_scale_up_and_young_pods_hold_removals(
    scaled: ScaleUp, expected: str, *, waits: bool
) -> None:
    decision = empty(1, waits=waits).decide(scaled)
    assert [(one.is_due, one.reason) for one in decision.removals] == [(False, expected)]


def test_requested_nodes_that_have_not_arrived_hold_removals_if_sizes_are_written() -> None:
    harness = empty(1)
    asked = replace(harness, memory=structs.replace(harness.memory, requested={"g": RequestedNodes(2, NOW)}))
    assert due(asked.decide()) == ["n00"]
    writing = replace(asked, writes_sizes=True)
    assert waits(writing.decide()) == {"n00": "UpcomingNodes"}
    late = structs.replace(asked.memory, requested={"g": RequestedNodes(2, LATE)})
    assert due(replace(writing, memory=late).decide()) == ["n00"]
    failed = replace(group("g", ["n00"]), failures=("no stock",))
    assert due(replace(writing, groups=(failed,)).decide()) == ["n00"]


def test_room_that_scale_up_gave_to_a_pending_pod_is_not_reused() -> None:
    harness = Harness((node("a"), node("b")), groups=(group("g", ["a"]),))
    snapshot = harness.snapshot()
    snapshot.place(pod("pending", "1", "1Gi"), "a")
    snapshot.place(pod("large", "3500m", "1Gi"), "b")
    decision = harness.decide(NOTHING, snapshot)
    assert kept(decision)["a"] == "NoPlaceToMovePods"


def test_pods_of_two_nodes_never_use_the_same_room() -> None:
    pods = tuple(pod(f"p-{name}", "1500m", "1Gi", node=name, controller="web") for name in "ab")
    harness = Harness(
        (node("a"), node("b"), node("c")),
        (*pods, pod("q", "2500m", "1Gi", node="c", controller="web")),
        (group("g", ["a", "b"]),),
    )
    decision = harness.decide()
    assert due(decision) == ["a"]
    assert kept(decision) == {"b": "NoPlaceToMovePods", "c": "NotAutoscaled"}


def test_empty_nodes_are_removed_first_and_then_the_least_used() -> None:
    harness = drained(3)
    settings = replace(harness.settings, max_drain_parallelism=10)
    more = replace(
        harness, pods=(*harness.pods[1:], pod("x", "500m", "1Gi", node="n02", controller="web")), settings=settings
    )
    assert [one.node for one in more.decide().removals] == ["n00", "n01", "n02"]


def test_nodes_beyond_the_parallelism_wait() -> None:
    assert waits(empty(12).decide()) == {"n10": "ParallelismReached", "n11": "ParallelismReached"}
    assert waits(drained(3).decide()) == {"n01": "ParallelismReached", "n02": "ParallelismReached"}


@pytest.mark.parametrize("provider", [None, ProviderReference("externalGRPC")])
@pytest.mark.parametrize("size", [11, 10], ids=["not-lowered-yet", "lowered-already"])
def test_a_node_that_is_being_deleted_counts_once(size: int, provider: ProviderReference | None) -> None:
    names = [one.name for one in empty(11).nodes]
    its = replace(group("g", names, size=size, deleting=["n00"]), provider=provider)
    assert waits(replace(empty(11), groups=(its,)).decide()) == {"n10": "ParallelismReached"}


def test_no_more_unneeded_nodes_are_searched_than_can_be_removed_in_time() -> None:
    harness = empty(40, since=None)
    decision = harness.decide()
    assert len(decision.removals) == 20
    assert set(kept(decision).values()) == {"UnneededLimitReached"}


def test_deletions_in_progress_count_against_parallelism_and_sizes() -> None:
    harness = drained(3)
    names = [one.name for one in harness.nodes if one.name != "stays"]
    going = replace(harness, groups=(group("g", names, deleting=["n00"]),))
    decision = going.decide()
    assert kept(decision)["n00"] == "CurrentlyBeingDeleted"
    assert waits(decision) == {"n01": "ParallelismReached", "n02": "ParallelismReached"}
    least = replace(going, groups=(group("g", names, deleting=["n00"], least=2),)).decide()
    assert kept(least)["n01"] == "NodeGroupMinSizeReached"


def test_pods_that_end_with_a_node_on_its_way_out_keep_no_other_node_from_being_drained() -> None:
    harness = drained(2)
    names = [one.name for one in harness.nodes if one.name != "stays"]
    ending = (
        pod("of-a-dead-node", node="n00", controller="web", deleted=NOW - 61),
        pod("mirror", node="n00", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("agent", node="n00", controller=controller("agent", "DaemonSet")),
        pod("done", node="n00", controller="web", phase="Succeeded"),
    )
    going = replace(harness, pods=(*ending, *harness.pods[1:]), groups=(group("g", names, deleting=["n00"]),))
    assert due(going.decide()) == ["n01"]


def test_minimum_sizes_of_groups_and_of_the_cluster_are_both_kept() -> None:
    names = [f"n{number:02}" for number in range(5)]
    assert len(due(replace(empty(5, waits=False), groups=(group("g", names, least=2),)).decide())) == 3
    virtual = node("virtual", "10k", labels={"type": "virtual-kubelet"})
    cluster = replace(empty(5, waits=False), nodes=(*empty(5).nodes, virtual))
    cores = replace(cluster, limits=SizeLimits(min_cores=9)).decide()
    assert len(due(cores)) == 2
    assert set(kept(cores).values()) == {"MinimalResourceLimitExceeded", "NotAutoscaled"}
    memory = replace(empty(5, waits=False), limits=SizeLimits(min_memory_bytes=64 << 30)).decide()
    assert len(due(memory)) == 1


def test_an_all_or_nothing_group_is_removed_as_a_whole_or_not_at_all() -> None:
    names = [f"n{number:02}" for number in range(12)]
    whole = replace(empty(12), groups=(group("g", names, options=WHOLE),))
    assert len(due(whole.decide())) == 12
    busy = replace(whole, pods=(pod("p", "3", node="n03", controller="web"),)).decide()
    assert set(kept(busy).values()) == {"AtomicScaleDownFailed", "NotUnderutilized"}
    assert busy.removals == ()
    late = replace(whole, memory=ClusterSizeMemory(unneeded_since={**whole.memory.unneeded_since, "n05": NOW}))
    decision = late.decide()
    assert due(decision) == []
    assert "n05 cannot be removed yet" in decision.removals[0].reason


def test_a_node_whose_pods_did_not_fit_is_simulated_again_after_five_minutes() -> None:
    harness = replace(drained(1), nodes=(node("n00"), node("stays", "500m")), groups=(group("g", ["n00"]),))
    first = harness.decide()
    assert kept(first)["n00"] == "NoPlaceToMovePods"
    assert first.unremovable_until == {"n00": NOW + 300}
    larger = replace(harness, nodes=(node("n00"), node("stays", "64")))
    assert kept(larger.after(299, first).decide())["n00"] == "RecentlyUnremovable"
    assert waits(larger.after(301, first).decide()) == {"n00": "NotUnneededLongEnough"}


def test_annotations_of_nodes_prevent_or_delay_their_removal() -> None:
    disabled = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    delayed = {"delay-deletion.cluster-autoscaler.kubernetes.io/storage": "yes"}
    harness = Harness((node("a", annotations=disabled), node("b", annotations=delayed)))
    decision = harness.decide()
    assert kept(decision) == {"a": "ScaleDownDisabledAnnotation"}
    assert waits(decision) == {"b": "DeletionDelayed"}


def test_an_annotation_that_delays_a_deletion_does_not_delay_the_drain_of_a_node() -> None:
    delayed = {"delay-deletion.cluster-autoscaler.kubernetes.io/storage": "yes"}
    harness = Harness((node("b", annotations=delayed),), waits=False)
    deleted = replace(group("g", ["b"]), provider=ProviderReference("plugin/cloud", deletes_nodes=True))
    assert due(replace(harness, groups=(deleted,)).decide()) == ["b"]
    sized = replace(deleted, provider=ProviderReference("plugin/cloud"))
    assert waits(replace(harness, groups=(sized,)).decide()) == {"b": "DeletionDelayed"}


def test_savings_are_stated_if_all_groups_have_a_price() -> None:
    harness = Harness((node("a"), node("b")), groups=(group("x", ["a"], price=0.5), group("y", ["b"], price=0.25)))
    assert [one.saved_per_hour for one in harness.decide().removals] == [0.5, 0.25]
    partly = replace(harness, groups=(harness.groups[0], group("y", ["b"])))
    assert [one.saved_per_hour for one in partly.decide().removals] == [None, None]


def test_disabled_scale_down_is_stated_once_and_removes_nothing() -> None:
    decision = replace(empty(3), settings=ScaleDownSettings(enabled=False)).decide()
    assert (decision.removals, decision.kept) == ((), ())
    assert decision.hold == "scaleDown.enabled is false: no node is removed"


def test_a_decision_leaves_the_snapshot_unchanged() -> None:
    harness = drained(3)
    snapshot = harness.snapshot()
    harness.decide(NOTHING, snapshot)
    assert {name: set(info.pods) for name, info in snapshot.nodes.items()} == {
        name: set(info.pods) for name, info in Snapshot(harness.nodes, harness.pods).nodes.items()
    }


def test_a_waiting_node_does_not_block_the_removal_of_others() -> None:
    harness = drained(2)
    memory = ClusterSizeMemory(unneeded_since={"n00": NOW - 11 * MINUTE, "n01": NOW})
    decision = replace(harness, memory=memory).decide()
    assert due(decision) == ["n00"]
    assert waits(decision) == {"n01": "NotUnneededLongEnough"}


def test_a_starting_node_takes_no_pods_from_removed_nodes() -> None:
    harness = drained(1)
    starting = replace(node("stays", "64", "256Gi", conditions={"Ready": "False"}), created=NOW - MINUTE)
    ready = replace(starting, name="template", conditions={"Ready": "True"})
    members = group("g", ["n00", "stays"], template=NodeTemplate(ready))
    pods = (*harness.pods, pod("waits-for-it", "40", controller="web"))
    its = replace(harness, nodes=(harness.nodes[0], starting), groups=(members,), pods=pods)
    answer = decide_size(its.situation(), its.sizes())
    assert [one.node for one in answer.removals] == []
    assert {one.node: one.reason.partition(":")[0] for one in answer.kept}["n00"] == "NoPlaceToMovePods"


def test_a_starting_node_is_kept() -> None:
    starting = replace(node("n00", conditions={"Ready": "False"}), created=NOW - 11 * MINUTE)
    ready = replace(starting, name="template", conditions={"Ready": "True"})
    its = replace(empty(1), nodes=(starting,), groups=(group("g", ["n00"], template=NodeTemplate(ready)),))
    answer = decide_size(its.situation(), its.sizes())
    assert [(one.node, one.reason) for one in answer.kept] == [("n00", "NodeStarting: it is not ready yet")]


@pytest.mark.parametrize(
    ("annotations", "taints", "expected"),
    [
        ({"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}, (), "ScaleDownDisabledAnnotation"),
        ({}, ("ToBeDeletedByClusterAutoscaler:NoSchedule",), "CurrentlyBeingDeleted"),
    ],
)
def test_a_starting_node_is_kept_for_its_own_annotations_and_taints(
    annotations: dict[str, str], taints: tuple[str, ...], expected: str
) -> None:
    stated = node("n00", conditions={"Ready": "False"}, annotations=annotations, taints=taints)
    starting = replace(stated, created=NOW - MINUTE)
    members = group("g", ["n00"], template=NodeTemplate(node("template")))
    its = replace(empty(1), nodes=(starting,), groups=(members,))
    assert kept(decide_size(its.situation(), its.sizes())) == {"n00": expected}


def test_a_pod_that_delays_itself_for_years_keeps_no_nodes() -> None:
    delay = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "87600h"}
    kept_back = pod("forever", "900", namespace="evil", annotations=delay, created=NOW - 10)
    its = empty(1)
    members = replace(its.groups[0], template=NodeTemplate(node("template")))
    its = replace(its, groups=(members,), pods=(kept_back,))
    answer = decide_size(its.situation(), its.sizes())
    assert answer.waiting == (PodName("evil", "forever"),)
    assert [one.node for one in answer.removals if one.is_due] == ["n00"]


@pytest.mark.parametrize(
    ("deleting", "sizes"),
    [
        pytest.param((), "has 3 nodes, and its minimum is 3", id="none"),
        pytest.param(("n00",), "has 3 nodes, of which 1 is being deleted, and its minimum is 3", id="one"),
        pytest.param(("n00", "n01"), "has 3 nodes, of which 2 are being deleted, and its minimum is 3", id="two"),
    ],
)
def test_a_group_at_its_minimum_states_how_many_of_its_nodes_are_being_deleted(
    deleting: tuple[str, ...], sizes: str
) -> None:
    names = ("n00", "n01", "n02")
    harness = replace(empty(3), groups=(group("g", names, least=3, deleting=deleting),))
    found = {one.node: one.reason for one in harness.decide().kept}
    assert found["n02"] == f"NodeGroupMinSizeReached: the node group g {sizes}"
