"""Requests of users of Cluster Autoscaler and Karpenter that the removal of nodes meets."""

from __future__ import annotations

from dataclasses import replace

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, SpreadConstraint
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.answer import ScaleUp
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeTemplate
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import NOW, Harness, due, group, kept, waits

SMALL = NodeTemplate(node("small-template", "4", "16Gi"))


def test_several_half_full_nodes_are_considered_together__autoscaler_1629() -> None:
    names = ["a", "b", "c"]
    pods = tuple(pod(f"p-{name}", "2500m", node=name, controller="web") for name in names)
    groups = (group("old", names, price=0.2), group("new", [], price=0.3, template=NodeTemplate(node("t", "8"))))
    advice = Harness(tuple(map(node, names)), pods, groups).decide().advice
    assert [(one.kind, one.nodes) for one in advice] == [("consolidate", ("a", "b", "c"))]


def test_a_group_has_a_threshold_of_its_own__autoscaler_1137() -> None:
    busy = tuple(pod(f"p-{name}", "2400m", node=name, controller="web") for name in "ab")
    groups = (group("a", ["a"], options=GroupOptions(utilization_threshold_ratio=0.7)), group("b", ["b"]))
    decision = Harness((node("a"), node("b"), node("c", "16")), busy, groups).decide()
    assert due(decision) == ["a"]
    assert kept(decision)["b"] == "NotUnderutilized"


def test_the_reason_says_that_requests_count_not_usage__autoscaler_4440() -> None:
    decision = Harness((node("a"),), (pod("p", "3", node="a", controller="web"),)).decide()
    assert decision.kept[0].reason == "NotUnderutilized: 75% of cpu is requested, more than the threshold of 50%"


def test_daemon_sets_do_not_keep_an_empty_node__autoscaler_6791() -> None:
    agent = pod("agent", "2200m", node="a", controller=controller("agent", "DaemonSet"))
    harness = Harness((node("a"),), (agent,))
    assert kept(harness.decide()) == {"a": "NotUnderutilized"}
    assert due(replace(harness, settings=ScaleDownSettings(ignore_daemon_sets_utilization=True)).decide()) == ["a"]


def test_unneeded_time_survives_a_restart__autoscaler_7873() -> None:
    """After nine of ten minutes the process restarts with only its memory; two minutes later the node is removed."""
    remembered = ClusterSizeMemory(unneeded_since={"a": NOW - 540})
    restarted = Harness((node("a"),), memory=remembered, waits=True)
    assert waits(restarted.decide()) == {"a": "NotUnneededLongEnough"}
    assert due(replace(restarted, now=NOW + 120).decide()) == ["a"]


def test_no_node_is_removed_while_others_are_added__autoscaler_5531() -> None:
    assert waits(Harness((node("a"),)).decide(ScaleUp({"g": 1}))) == {"a": "ScaleUpNeeded"}


def test_a_removal_that_would_leave_a_pod_pending_because_of_spreading_is_not_made__autoscaler_9287() -> None:
    spread = PodScheduling(spread=(SpreadConstraint(HOSTNAME_LABEL, 1, parse_selector("app=web")),))
    pods = tuple(
        pod(f"p-{name}", node=name, labels={"app": "web"}, controller="web", scheduling=spread) for name in "abc"
    )
    assert kept(Harness(tuple(map(node, "abc")), pods, (group("g", ["a"]),)).decide())["a"] == "NoPlaceToMovePods"


def test_the_removal_of_a_node_is_simulated_and_explained__karpenter_711() -> None:
    bare = pod("debug", node="a", namespace="shop")
    decision = Harness((node("a"), node("b")), (bare,), (group("g", ["a"]),)).decide()
    assert decision.kept[0].reason == "NotReplicated: shop/debug has no controller that would recreate it"
    assert str(decision.kept[0].pod) == "shop/debug"


def test_a_replacement_without_gain_is_not_advised__karpenter_provider_aws_8536() -> None:
    groups = (group("a", ["a"], price=0.2), group("b", [], price=0.2, template=SMALL))
    assert Harness((node("a"),), (pod("p", "3", node="a", controller="web"),), groups).decide().advice == ()


def test_two_cheap_nodes_may_replace_three__karpenter_3175() -> None:
    names = ["a", "b", "c"]
    pods = tuple(
        pod(f"p-{name}-{number}", "1500m", node=name, controller="web") for name in names for number in range(2)
    )
    cheap = group("new", [], price=0.25, template=NodeTemplate(node("t", "5")))
    advice = Harness(tuple(map(node, names)), pods, (group("old", names, price=0.2), cheap)).decide().advice
    assert [(one.kind, one.nodes) for one in advice] == [("consolidate", ("a", "b", "c"))]
    assert "2 new nodes of new instead of a, b, c" in advice[0].detail
