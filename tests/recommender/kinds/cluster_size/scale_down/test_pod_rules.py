"""Each rule about pods that keep their node, with its annotations and options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.cluster.values.constraints import LocalVolume, PodScheduling
from adapter.foundation.cluster.values.workloads import DisruptionBudget
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from recommender.kinds.cluster_size.scale_down.decide import scale_down
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from tests.recommender.kinds.cluster_size.builders import controller, node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import (
    NOTHING,
    NOW,
    Harness,
    due,
    group,
    kept,
    workloads_of,
)

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod, ControllerReference

CA: Final = "cluster-autoscaler.kubernetes.io/"
HOUR: Final = 3600.0
SAFE: Final = {CA + "safe-to-evict": "true"}
LISTED: Final = CA + "safe-to-evict-local-volumes"
SCRATCH: Final = PodScheduling(local_volumes=(("scratch", LocalVolume.EMPTY_DIR), ("logs", LocalVolume.HOST_PATH)))
DEFAULTS: Final = ScaleDownSettings()


def harness(one: ClusterPod, settings: ScaleDownSettings = DEFAULTS) -> Harness:
    nodes = (node("n"), node("other"))
    return Harness(nodes, (one,), (group("g", ["n"]),), settings=settings, workloads=workloads_of([one]))


def running(annotations: dict[str, str] | None = None, namespace: str = "shop", created: float = NOW) -> ClusterPod:
    return pod("p", node="n", namespace=namespace, controller="web", annotations=annotations, created=created)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (pod("p", node="n"), "NotReplicated"),
        (pod("p", node="n", controller=controller("x", "Rollout", "argoproj.io/v1")), "NotReplicated"),
        (pod("p", node="n", controller="web", owner_problem="it has two controllers"), "ControllerNotFound"),
        (running(namespace="kube-system"), "UnmovableKubeSystemPod"),
        (running({CA + "safe-to-evict": "false"}), "NotSafeToEvictAnnotation"),
        (running({CA + "safe-to-evict": "false"}, "kube-system", NOW - 2 * HOUR), "NotSafeToEvictAnnotation"),
        (pod("p", node="n", controller="web", scheduling=SCRATCH), "LocalStorageRequested"),
        (
            pod("p", node="n", controller="web", scheduling=SCRATCH, annotations={LISTED: "scratch"}),
            "LocalStorageRequested",
        ),
        (replace(running(), facts=None), "UnexpectedError"),
        (pod("p", "8", node="n", controller="web"), "NotUnderutilized"),
        (pod("p", "2", "9Gi", node="n", controller="web"), "NotUnderutilized"),
    ],
)
def test_a_pod_keeps_its_node(one: ClusterPod, reason: str) -> None:
    decision = harness(one).decide()
    assert kept(decision)["n"] == reason
    assert due(decision) == []


@pytest.mark.parametrize(
    ("one", "moved"),
    [
        (running(), 1),
        (running(namespace="kube-system", created=NOW - 2 * HOUR), 1),
        (pod("p", node="n", annotations=SAFE), 1),
        (pod("p", node="n", namespace="kube-system", annotations=SAFE, scheduling=SCRATCH), 1),
        (
            pod("p", node="n", controller="web", scheduling=SCRATCH, annotations={LISTED: "logs, scratch"}),
            1,
        ),
        (pod("p", node="n", controller=controller("x", "DaemonSet")), 0),
        (pod("p", node="n", controller=controller("x", "Odd"), annotations={CA + "daemonset-pod": "true"}), 0),
        (pod("p", node="n", annotations={"kubernetes.io/config.mirror": "x"}), 0),
        (pod("p", node="n", deleted=NOW - 61, grace_seconds=30), 0),
        (pod("p", node="n", phase="Failed"), 0),
    ],
)
def test_a_pod_allows_the_removal_of_its_node(one: ClusterPod, moved: int) -> None:
    decision = harness(one).decide()
    assert due(decision) == ["n"]
    assert [found.moved_pods for found in decision.removals] == [moved]


@pytest.mark.parametrize(
    ("one", "settings"),
    [
        (running(namespace="kube-system"), ScaleDownSettings(skip_nodes_with_system_pods=False)),
        (running(namespace="kube-system", created=NOW - 60), ScaleDownSettings(system_pod_seconds=30)),
        (
            pod("p", node="n", controller="web", scheduling=SCRATCH),
            ScaleDownSettings(skip_nodes_with_local_storage=False),
        ),
        (
            pod("p", node="n", controller=controller("x", "Rollout")),
            ScaleDownSettings(skip_nodes_with_custom_controller_pods=False),
        ),
    ],
)
def test_an_option_switches_a_rule_off(one: ClusterPod, settings: ScaleDownSettings) -> None:
    assert due(harness(one, settings).decide()) == ["n"]


def test_a_terminating_pod_counts_until_half_a_minute_after_its_grace_period() -> None:
    assert kept(harness(pod("p", node="n", deleted=NOW - 60, grace_seconds=30)).decide())["n"] == "NotReplicated"


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("ReplicaSet", "apps/v1"),
        ("Job", "batch/v1"),
        ("StatefulSet", "apps/v1"),
        ("DaemonSet", "apps/v1"),
        ("ReplicationController", "v1"),
    ],
)
def test_a_controller_that_is_gone_keeps_the_node(kind: str, version: str) -> None:
    orphan = replace(harness(pod("p", node="n", controller=controller("x", kind, version))), workloads=())
    decision = orphan.decide()
    assert kept(decision)["n"] == "ControllerNotFound"
    assert f"default/p is controlled by {kind} default/x" in decision.kept[0].reason


def test_few_replicas_keep_the_node_only_below_the_minimum_replica_count() -> None:
    one = running()
    few = replace(harness(one), workloads=workloads_of([one], replicas=2))
    for least, expected in {2: ["n"], 3: []}.items():
        assert due(replace(few, settings=ScaleDownSettings(min_replica_count=least)).decide()) == expected


def test_a_kept_node_names_its_pod() -> None:
    decision = harness(running({CA + "safe-to-evict": "false"})).decide()
    assert [str(one.pod) for one in decision.kept if one.pod] == ["shop/p"]
    assert decision.kept[0].reason == (
        "NotSafeToEvictAnnotation: shop/p has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: false"
    )


def test_a_pod_that_cannot_be_read_keeps_its_node() -> None:
    one = running()
    assert one.facts is not None
    broken = replace(one, facts=replace(one.facts, problem="spec.affinity cannot be read"))
    decision = harness(broken).decide()
    assert decision.kept[0].reason == "UnexpectedError: shop/p must not be moved: spec.affinity cannot be read"


def test_a_node_waits_for_a_pod_that_must_complete() -> None:
    decision = harness(
        pod("p", node="n", controller="web", annotations={CA + "safe-to-evict": "on-completion"})
    ).decide()
    assert [(one.is_due, one.reason) for one in decision.removals] == [
        (False, "BlockedByOnCompletionPod: default/p must complete before the node is removed")
    ]


def budget(allowed: int, namespace: str = "shop") -> DisruptionBudget:
    return DisruptionBudget(namespace, "budget", EVERYTHING, allowed)


@pytest.mark.parametrize(("allowed", "going"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_pods_of_several_nodes_share_a_budget(allowed: int, going: int) -> None:
    names = ["a", "b", "c"]
    pods = tuple(pod(f"p-{name}", node=name, namespace="shop", controller="web") for name in names)
    shared = Harness((*map(node, names), node("other")), pods, (group("g", names),), budgets=(budget(allowed),))
    decision = shared.decide()
    assert len(due(decision)) == going
    assert list(kept(decision).values()).count("NotEnoughPdb") == 3 - going


def test_pods_of_one_node_share_a_budget() -> None:
    pods = tuple(pod(f"p{number}", node="n", namespace="shop", controller="web") for number in range(2))
    both = Harness((node("n"), node("other")), pods, (group("g", ["n"]),), budgets=(budget(1),))
    assert both.decide().kept[0].reason == (
        "NotEnoughPdb: shop/p1 must not be moved: the PodDisruptionBudget shop/budget allows 1 disruption, "
        "and the node runs 2 of its pods"
    )


def test_a_pod_of_two_budgets_keeps_its_node_since_the_api_server_never_evicts_it() -> None:
    pods = (pod("p", node="n", namespace="shop", controller="web", labels={"app": "web", "team": "a"}),)
    budgets = tuple(DisruptionBudget("shop", name, parse_selector(name), 5) for name in ("app=web", "team=a", "app=db"))
    both = Harness((node("n"), node("other")), pods, (group("g", ["n"]),), budgets=budgets)
    (reason,) = (one.reason for one in both.decide().kept if one.node == "n")
    assert reason == (
        "NotEnoughPdb: shop/p must not be moved: the PodDisruptionBudgets app=web and team=a cover it, and the API "
        "server evicts no pod that more than one covers: change their selectors"
    )
    assert due(replace(both, budgets=budgets[1:]).decide()) == ["n"]


def test_without_known_budgets_only_empty_nodes_are_removed() -> None:
    unknown = Harness(
        (node("n"), node("empty"), node("other")), (running(),), (group("g", ["n", "empty"]),), budgets=None
    )
    decision = unknown.decide()
    assert due(decision) == ["empty"]
    assert "PodDisruptionBudgets are not known" in decision.kept[0].reason


@pytest.mark.parametrize(
    ("selector", "covered"),
    [
        ("app=web", True),
        ("app==web,tier in (a,b)", True),
        ("tier in (a)", True),
        ("!gone", True),
        ("", True),
        ("app=db", False),
        ("app=web,!tier", False),
    ],
)
@pytest.mark.parametrize("namespace", ["shop", "elsewhere"])
def test_a_budget_covers_the_pods_that_it_selects_in_its_namespace(
    selector: str, namespace: str, *, covered: bool
) -> None:
    one = pod("p", node="n", namespace="shop", controller="web", labels={"app": "web", "tier": "a"})
    budgets = (DisruptionBudget(namespace, "budget", parse_selector(selector), 0),)
    assert RemainingDisruptions(budgets).has_budget(one) is (covered and namespace == "shop")


def test_a_budget_without_selector_covers_no_pod() -> None:
    assert not RemainingDisruptions((DisruptionBudget("shop", "budget", None, 0),)).has_budget(running())


def test_without_known_controllers_of_a_kind_those_of_pods_are_assumed_to_exist() -> None:
    """The output of `kubectl get nodes,pods` has no controllers, so otherwise nothing in it could be moved."""
    listed = replace(harness(pod("p", node="n", controller=controller("x", "ReplicaSet", "apps/v1"))), workloads=())
    assumed = replace(listed.situation(), assumed_controllers=frozenset({"ReplicaSet"}))
    decision = scale_down(assumed, listed.sizes(), listed.snapshot(), NOTHING)
    assert due(decision) == ["n"]


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        (controller("web", "ReplicaSet", "evil.io/v1"), "NotReplicated"),
        (controller("web", "DaemonSet", "evil.io/v1"), "NotReplicated"),
        (controller("web", "Job", "evil.io/batch/v1"), "NotReplicated"),
        (replace(controller("web"), uid="made-up"), "ControllerNotFound"),
        (replace(controller("web", "DaemonSet"), uid="made-up"), "ControllerNotFound"),
    ],
    ids=str,
)
def test_pods_with_forged_owners_are_not_moved(owner: ControllerReference, reason: str) -> None:
    """Nothing would recreate such a pod, whatever owner it states."""
    known = workloads_of([pod("q", controller="web"), pod("r", controller=controller("web", "DaemonSet"))])
    one = pod("p", node="n", namespace="default", controller=owner)
    made = Harness((node("n"), node("other")), (one,), (group("g", ["n"]),), settings=DEFAULTS, workloads=known)
    assert kept(made.decide())["n"] == reason
