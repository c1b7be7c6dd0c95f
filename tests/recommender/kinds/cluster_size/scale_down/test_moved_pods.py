"""Where the pods of removed nodes go, as long as other removable nodes wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.pod_places import PodMove, PodName
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import Harness, due, group, kept, waits

DELAYED = {"delay-deletion.cluster-autoscaler.kubernetes.io/storage": "yes"}
NEAR_LEADER = PodScheduling(
    affinity=(PodTerm(HOSTNAME_LABEL, parse_selector("app=leader"), frozenset({"default"})),),
)


@pytest.mark.parametrize(("delay", "gone"), [({}, ["a", "b"]), (DELAYED, [])], ids=["none waits", "the first waits"])
def test_a_node_stays_if_its_pods_fit_only_once_a_node_that_waits_is_gone(
    delay: dict[str, str], gone: list[str]
) -> None:
    """The follower must run beside the leader, which has room for it only on the node that it would move to."""
    harness = Harness(
        nodes=(node("a", "1", annotations=delay), node("b"), node("stays", "64", "256Gi")),
        pods=(
            pod("leader", "600m", "1Gi", node="a", labels={"app": "leader"}, controller="web"),
            pod("follower", "2500m", "1Gi", node="b", controller="web", scheduling=NEAR_LEADER),
        ),
        groups=(group("g", ["a", "b"]),),
        settings=ScaleDownSettings(utilization_threshold_ratio=0.7),
    )
    decision = harness.decide()
    assert due(decision) == gone
    if delay:
        assert waits(decision) == {"a": "DeletionDelayed", "b": "NoPlaceToMovePods"}


def test_pods_are_moved_to_the_fullest_node_that_has_room_for_them() -> None:
    harness = Harness(
        nodes=(node("a"), node("full"), node("fuller"), node("fullest")),
        pods=(
            pod("moves", "1", "1Gi", node="a", controller="web"),
            pod("p", "2100m", "1Gi", node="full", controller="web"),
            pod("q", "2500m", "1Gi", node="fuller", controller="web"),
            pod("r", "3500m", "1Gi", node="fullest", controller="web"),
        ),
    )
    removal = harness.decide().removals[0]
    assert (removal.node, removal.moves) == ("a", (PodMove(PodName("default", "moves"), "fuller"),))


def test_no_pod_is_moved_to_a_node_that_its_provider_is_deleting() -> None:
    """Nothing else shows that the node goes: it has no taint yet."""
    harness = Harness(
        nodes=(node("a"), node("going", "64")),
        pods=(pod("web", "1", "1Gi", node="a", controller="web"), pod("p", "1", node="going", controller="web")),
        groups=(group("g", ["a", "going"]),),
    )
    assert due(replace(harness, groups=(group("g", ["a"]),)).decide()) == ["a"]
    going = replace(harness, groups=(group("g", ["a", "going"], deleting=["going"]),))
    assert kept(going.decide()) == {"a": "NoPlaceToMovePods", "going": "CurrentlyBeingDeleted"}


def test_no_pod_is_moved_to_a_node_that_is_not_ready() -> None:
    harness = Harness(
        nodes=(node("a"), node("lost", "64", conditions={"Ready": "Unknown"})),
        pods=(pod("web", "1", "1Gi", node="a", controller="web"),),
        groups=(group("g", ["a"]),),
    )
    assert kept(harness.decide()) == {"a": "NoPlaceToMovePods", "lost": "NotAutoscaled"}
