"""The rules of scale-down, compared with Cluster Autoscaler's own tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.constraints import LocalVolume, PodScheduling
from adapter.foundation.cluster.values.workloads import DisruptionBudget
from adapter.foundation.objects.selectors import EVERYTHING
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from recommender.kinds.cluster_size.model.taints import TO_BE_DELETED_TAINT
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_down.annotations import SCALE_DOWN_DISABLED
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainOutcome, DrainRules, ignores_budgets
from recommender.kinds.cluster_size.scale_down.eligibility import utilization_options
from recommender.kinds.cluster_size.scale_down.removal_budgets import GroupRemoval, within_budgets
from recommender.kinds.cluster_size.scale_down.unneeded_times import unneeded_limit
from recommender.kinds.cluster_size.scale_down.utilization import UtilizationError, UtilizationOptions, node_utilization
from tests.recommender.kinds.cluster_size.builders import READY, controller, node, pod
from tests.recommender.kinds.cluster_size.cases import Case, cases
from tests.recommender.kinds.cluster_size.scale_down.harness import NOW, Harness, group, kept, waits, workloads_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod

OUTCOMES = {
    DrainOutcome.MOVE: "move",
    DrainOutcome.SKIP: "skip",
    DrainOutcome.DAEMON_SET: "daemonset",
    DrainOutcome.WAIT: "wait",
}
API_VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1", "CustomDaemonSet": "crd/v1"}
MIRROR = {"kubernetes.io/config.mirror": "some-key"}


def case_node(
    name: str,
    stated: Mapping[str, Any],
    *,
    taints: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    conditions: Mapping[str, str] = READY,
) -> ClusterNode:
    return node(
        name,
        f"{stated['cpu_milli']}m",
        str(stated["memory"]),
        extended={"nvidia.com/gpu": str(stated["gpu"])} if stated.get("gpu") else None,
        taints=taints,
        annotations=annotations,
        conditions=conditions,
    )


def case_pod(name: str, stated: Mapping[str, Any], on: str) -> ClusterPod:
    cpu, memory, gpu = stated.get("cpu_milli"), stated.get("memory"), stated.get("gpu")
    kind = "DaemonSet" if stated.get("daemonset") else stated.get("controller")
    return pod(
        name,
        f"{cpu}m" if cpu else "",
        str(memory) if memory else "",
        node=on,
        namespace=stated.get("namespace", "default"),
        controller=controller("owner", kind, API_VERSIONS.get(kind, "apps/v1")) if kind else None,
        extended={"nvidia.com/gpu": str(gpu)} if gpu else None,
        annotations=dict(stated.get("annotations", {})) | (MIRROR if stated.get("mirror") else {}),
        phase=stated.get("phase", ""),
        restart_policy=stated.get("restart_policy", "Always"),
        scheduling=PodScheduling(local_volumes=tuple(map(local_volume, stated.get("volumes", ())))),
        deleted=NOW - stated["terminating_since_s"] if "terminating_since_s" in stated else None,
        grace_seconds=stated.get("grace_s", 30),
        created=NOW,
    )


def local_volume(text: str) -> tuple[str, LocalVolume]:
    kind, _, name = text.partition(":")
    return name or "volume", LocalVolume(kind)


@pytest.mark.parametrize("case", cases("utilization"))
def test_utilisation(case: Case) -> None:
    stated = case.input
    pods = [case_pod(f"p{number}", one, "n") for number, one in enumerate(stated["pods"])]
    info = Snapshot([case_node("n", stated["allocatable"])], pods).nodes["n"]
    options = UtilizationOptions(
        NOW, ignore_daemon_sets=stated["ignore_daemonsets"], ignore_mirror_pods=stated["ignore_mirror"]
    )
    assert node_utilization(info, options).ratio == pytest.approx(case.expected["utilization"], abs=0.01)


@pytest.mark.parametrize("case", cases("eligibility"))
def test_eligibility(case: Case) -> None:
    stated, options = case.input["node"], case.input["options"]
    taints = [f"{TO_BE_DELETED_TAINT}:NoSchedule"] if stated.get("being_deleted") else []
    annotations = {SCALE_DOWN_DISABLED: "true"} if stated.get("disabled_annotation") else {}
    conditions = READY if stated["ready"] else {"Ready": "False"}
    one = case_node("regular", stated, taints=taints, annotations=annotations, conditions=conditions)
    target = node("target", "64", "64Gi")
    harness = Harness(
        nodes=(one, target),
        pods=tuple(
            case_pod(f"p{number}", {"controller": "ReplicaSet"} | pod_, "regular")
            for number, pod_ in enumerate(case.input["pods"])
        ),
        groups=(group("g", ["regular"]),),
        settings=ScaleDownSettings(
            utilization_threshold_ratio=options["threshold"],
            ignore_daemon_sets_utilization=options["ignore_daemonsets"],
            unready_enabled=options["scale_down_unready"],
        ),
    )
    assert kept(harness.decide()).get("regular", "unneeded") == case.expected["result"]


@pytest.mark.parametrize("case", cases("removable_reason"))
def test_reasons_to_keep_an_unneeded_node_equal_those_of_the_peer(case: Case) -> None:
    stated = case.input
    annotations = {SCALE_DOWN_DISABLED: "true"} if stated["disabled_annotation"] else {}
    one = node("n", conditions=READY if stated["ready"] else {"Ready": "False"}, annotations=annotations)
    own = group("g", ["n"] if stated["autoscaled"] else [], least=stated["min_size"], size=stated["target_size"])
    harness = Harness(
        nodes=(one,),
        groups=(own,),
        waits=True,
        settings=ScaleDownSettings(
            unneeded_seconds=stated["unneeded_threshold_s"], unready_seconds=stated["unready_threshold_s"]
        ),
        memory=ClusterSizeMemory(unneeded_since={"n": NOW - stated["unneeded_for_s"]}),
    )
    decision = harness.decide()
    assert {**kept(decision), **waits(decision)}.get("n", "") == case.expected["reason"]


@pytest.mark.parametrize("case", cases("unneeded_limit"))
def test_the_search_for_unneeded_nodes_has_the_limit_of_the_peer(case: Case) -> None:
    stated = case.input
    limit = unneeded_limit(
        stated["previously_unneeded"],
        stated["max_parallelism"],
        stated["unneeded_time_s"],
        stated["update_interval_s"],
    )
    assert min(limit, stated["nodes"]) == case.expected["unneeded"]


@pytest.mark.parametrize("case", cases("scale_down_crop"))
def test_removals_are_cropped_to_the_parallelism(case: Case) -> None:
    stated = case.input
    wanted = {kind: [removal(one, kind) for one in stated[kind]] for kind in ("empty", "drain")}
    going = within_budgets(
        wanted["empty"],
        wanted["drain"],
        stated["max_parallelism"] - stated["empty_in_progress"] - stated["drain_in_progress"],
        stated["max_drain_parallelism"] - stated["drain_in_progress"],
    )
    found = {kind: {one.group: len({*one.nodes} & {*going}) for one in groups} for kind, groups in wanted.items()}
    assert {kind: {name: count for name, count in its.items() if count} for kind, its in found.items()} == case.expected
    assert len(going) == len(set(going))


@pytest.mark.parametrize("kind", ["empty", "drained"])
@pytest.mark.parametrize(("in_progress", "chosen"), [(0, 5), (4, 0), (9, 0)])
def test_a_whole_group_exceeds_the_budgets_only_while_some_of_them_is_left(
    kind: str, in_progress: int, chosen: int
) -> None:
    """Cluster Autoscaler lets a second group go if the first one has more than used up the budgets."""
    whole = GroupRemoval(
        "whole", tuple(f"n{number}" for number in range(5)), is_whole=True, target_size=5, registered=5
    )
    left = 4 - in_progress
    going = within_budgets([whole] if kind == "empty" else [], [whole] if kind == "drained" else [], left, left)
    assert len(going) == chosen


def removal(stated: Mapping[str, Any], prefix: str) -> GroupRemoval:
    names = tuple(f"{prefix}-{stated['group']}-{number}" for number in range(stated["nodes"]))
    return GroupRemoval(stated["group"], names, stated["atomic"], stated["size"], stated["size"])


@pytest.mark.parametrize("case", cases("simulate_removal"))
def test_simulation_of_one_removal(case: Case) -> None:
    stated = case.input
    nodes = tuple(case_node(name, stated["allocatable"]) for name in stated["cluster"])
    pods = tuple(
        case_pod(f"{name}-{number}", one, name)
        for name, listed in stated["cluster"].items()
        for number, one in enumerate(listed)
    )
    decision = Harness(nodes, pods, groups=(group("g", [stated["node"]]),)).decide()
    found = {one.node: ("removable", one.moved_pods) for one in decision.removals}
    found |= {name: (reason, 0) for name, reason in kept(decision).items()}
    assert found[stated["node"]] == (case.expected["result"], case.expected["pods_to_move"])


@pytest.mark.parametrize("case", cases("drainability"))
def test_rules_about_pods(case: Case) -> None:
    one = case_pod("p", case.input["pod"], "n")
    allowed = case.input["options"].get("pdb_disruptions_allowed")
    budgets = () if allowed is None else (DisruptionBudget(one.namespace, "budget", EVERYTHING, allowed),)
    disruptions = RemainingDisruptions(budgets)
    found = DrainRules(ScaleDownSettings(), workloads_of([one]), disruptions, NOW).judge(one)
    outcome = OUTCOMES.get(found.outcome) or f"block:{found.reason}"
    if outcome == "move" and not ignores_budgets(one) and disruptions.refusal([one]):
        outcome = "block:NotEnoughPdb"
    assert outcome == case.expected["outcome"]


def test_an_option_of_a_group_replaces_the_setting_for_all() -> None:
    one = node("n", "1", "1Gi")
    busy = pod("p", "600m", "", node="n", controller="web")
    lenient = group("g", ["n"], options=GroupOptions(utilization_threshold_ratio=0.7))
    assert kept(Harness((one, node("t")), (busy,), (lenient, group("t", ["t"], least=1))).decide()) == {
        "t": "NodeGroupMinSizeReached"
    }


@pytest.mark.parametrize(
    ("own", "common", "expected"),
    [(None, True, True), (None, False, False), (True, False, True), (False, True, False)],
)
def test_a_group_may_count_daemon_sets_otherwise_than_all(*, own: bool | None, common: bool, expected: bool) -> None:
    one = group("g", ["n"], options=GroupOptions(ignore_daemon_sets_utilization=own))
    found = utilization_options(one, ScaleDownSettings(ignore_daemon_sets_utilization=common), NOW)
    assert found.ignore_daemon_sets is expected


@pytest.mark.parametrize(
    ("resource", "offered", "expected"),
    [
        ("nvidia.com/gpu", "0", 0.0),
        ("nvidia.com/mig-1g.5gb", "4", 0.5),
        ("habana.ai/gaudi", "4", 0.5),
        ("microsoft.com/directx", "4", 0.5),
        ("example.com/licence", "4", 0.75),
    ],
)
def test_a_node_with_gpus_is_judged_by_them_alone(resource: str, offered: str, expected: float) -> None:
    one = node("n", extended={resource: "4"}, allocatable={resource: offered})
    busy = pod("p", "3", node="n", extended={resource: "2"})
    assert node_utilization(Snapshot([one], [busy]).nodes["n"], UtilizationOptions(NOW)).ratio == expected


def test_a_node_that_has_lost_its_gpus_is_judged_by_cpu_and_memory() -> None:
    one = node("n", extended={"nvidia.com/gpu": "0"})
    found = node_utilization(Snapshot([one], [pod("p", "3", node="n")]).nodes["n"], UtilizationOptions(NOW))
    assert (found.ratio, found.resource, found.is_of_gpu) == (0.75, "cpu", False)


@pytest.mark.parametrize("gpus", [None, {"nvidia.com/gpu": "4"}], ids=["cpu", "gpus"])
@pytest.mark.parametrize(("cpu_ratio", "gpu_ratio"), [(0.3, 0.2), (0.2, 0.3)])
def test_gpus_have_a_threshold_of_their_own(gpus: dict[str, str] | None, cpu_ratio: float, gpu_ratio: float) -> None:
    """A quarter of the node is requested."""
    busy = pod("p", "1", "", node="n", controller="web", extended=gpus and {"nvidia.com/gpu": "1"})
    settings = ScaleDownSettings(utilization_threshold_ratio=cpu_ratio, gpu_utilization_threshold_ratio=gpu_ratio)
    nodes = node("n", extended=gpus), node("t", extended=gpus)
    groups = group("g", ["n"]), group("t", ["t"], least=1)
    is_kept = "n" in kept(Harness(nodes, (busy,), groups, settings=settings).decide())
    assert is_kept is ((gpu_ratio if gpus else cpu_ratio) < 0.25)


def test_the_gpus_of_a_labelled_node_count_for_every_vendor() -> None:
    one = node("n", labels={"cluster-api/accelerator": "gaudi"}, extended={"habana.ai/gaudi": "8"})
    busy = pod("p", "1", node="n", extended={"habana.ai/gaudi": "8"})
    assert node_utilization(Snapshot([one], [busy]).nodes["n"], UtilizationOptions(NOW)).ratio == 1.0


@pytest.mark.parametrize(
    ("labels", "ratio"),
    [
        ({"cluster-api/accelerator": "nvidia-t4"}, 0.0),
        ({"nvidia.com/gpu.present": "false"}, 0.75),
        ({"accelerator": "none"}, 0.75),
        ({}, 0.75),
    ],
)
def test_a_node_that_lacks_the_gpus_of_its_label_uses_none(labels: dict[str, str], ratio: float) -> None:
    one = node("n", labels=labels)
    busy = pod("p", "3", node="n")
    assert node_utilization(Snapshot([one], [busy]).nodes["n"], UtilizationOptions(NOW)).ratio == ratio


def test_requests_for_resources_that_a_node_lacks_make_its_utilisation_unknown() -> None:
    agent = pod("agent", "4", node="n", controller=controller("agent", "DaemonSet"))
    one = Snapshot([node("n")], [agent]).nodes["n"]
    with pytest.raises(UtilizationError, match="request all the cpu"):
        node_utilization(one, UtilizationOptions(NOW, ignore_daemon_sets=True))


@pytest.mark.parametrize(
    ("deleted", "ratio"), [(NOW, 0.75), (NOW - 60.0, 0.75), (NOW - 61.0, 0.0)], ids=["now", "ending", "long overdue"]
)
def test_a_pod_that_ends_uses_its_node_until_its_end_is_long_overdue(deleted: float, ratio: float) -> None:
    ending = pod("p", "3", "", node="n", controller="web", deleted=deleted)
    assert node_utilization(Snapshot([node("n")], [ending]).nodes["n"], UtilizationOptions(NOW)).ratio == ratio


def test_gpus_that_a_node_offers_beyond_its_stated_capacity_count() -> None:
    one = node("n", allocatable={"nvidia.com/gpu": "4"})
    busy = pod("p", "3", node="n", extended={"nvidia.com/gpu": "2"})
    assert node_utilization(Snapshot([one], [busy]).nodes["n"], UtilizationOptions(NOW)).ratio == 0.5
