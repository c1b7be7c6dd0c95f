"""The cases of Trimaran's plugins TargetLoadPacking, LoadVariationRiskBalancing, LowRiskOverCommitment and Peaks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adapter.foundation.objects.pod_requests import (
    ContainerResources,
    ContainerSpec,
    PodResources,
    PodSpecResources,
    pod_resources,
)
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    PeaksArgs,
    PowerModel,
    TargetLoadPackingArgs,
)
from adapter.nodes.scores.loads import load_variation_risk_balancing as lvrb
from adapter.nodes.scores.loads import low_risk_overcommitment as lroc
from adapter.nodes.scores.loads import peaks
from adapter.nodes.scores.loads import target_load_packing as tlp
from tests.adapter.nodes.scores.builder import CASES, CPU, GPU, MEMORY, MIB, Node, columns, listed, pod, ratios, rows

REPORT_SECONDS = 60
MODEL = PowerModel(471.7412504314313, -91.50493019588365, -0.07186049052516227)


def by_id(group: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", CASES[group], ids=lambda case: case["id"])


def containers(case: dict[str, Any]) -> PodResources:
    return PodResources(
        containers=tuple(
            ContainerResources(item.get("requests_cpu"), item.get("limits_cpu")) for item in case["containers"]
        ),
        overhead_cpu_milli=case["overhead_cpu"],
    )


def packing_args(case: dict[str, Any]) -> TargetLoadPackingArgs:
    config = case["config"]
    return TargetLoadPackingArgs(
        config["targetUtilization"], config["defaultRequestsMilli"], config["defaultRequestsMultiplier"]
    )


@by_id("target_load_packing")
def test_target_load_packing_scores_as_the_plugin(case: dict[str, Any]) -> None:
    args = packing_args(case)
    recent = sum(
        tlp.predicted_cpu_milli(containers(item), args)
        for item in case["recent_pods"]
        if case["window_end"] - item["bound_at"] < REPORT_SECONDS
    )
    node = Node(
        capacity={"cpu": case["node"]["cpu"]},
        mean=ratios(case["metrics"], "AVG", "Latest"),
        recent_cpu_prediction=recent,
    )
    wanted = pod()
    wanted = type(wanted)(resources=containers(case["pod"]))
    assert listed(tlp.score(wanted, columns(node), rows(1), args)) == [case["expected"]]


@pytest.mark.parametrize(
    ("target", "scores"),
    [
        (40.0, [40, 55, 70, 78, 85, 99, 100, 39, 33, 27, 17, 7, 0, 0]),
        (50.0, [50, 60, 70, 75, 80, 89, 90, 91, 100, 40, 25, 10, 0, 0]),
    ],
)
def test_target_load_packing_drops_at_the_target(target: float, scores: list[int]) -> None:
    percents = [0, 10, 20, 25, 30, 39, 40, 41, 50, 60, 75, 90, 100, 101]
    nodes = [Node(f"n{i}", {"cpu": 1000}, mean={CPU: percent / 100}) for i, percent in enumerate(percents)]
    result = tlp.score(pod(), columns(*nodes), rows(len(nodes)), TargetLoadPackingArgs(target))
    assert listed(result) == scores


def test_target_load_packing_uses_capacity_and_not_allocatable() -> None:
    node = Node(capacity={"cpu": 4000}, allocatable={"cpu": 2000}, mean={CPU: 0.4})
    assert listed(tlp.score(pod(), columns(node), rows(1), TargetLoadPackingArgs())) == [100]


@by_id("lvrb_compute_score")
def test_risk_balancing_computes_scores_as_the_plugin(case: dict[str, Any]) -> None:
    stats = resource_stats(case["resource_stats"])
    assert round(lvrb.risk_score(stats, case["margin"], case["sensitivity"]).item()) == case["expected"]


@by_id("mu_sigma")
def test_mean_and_deviation_are_limited_to_the_capacity(case: dict[str, Any]) -> None:
    mean, deviation = lvrb.mean_and_deviation(resource_stats(case["resource_stats"]))
    assert {"mu": mean.item(), "sigma": deviation.item()} == case["expected"]


def resource_stats(stats: dict[str, float]) -> lvrb.ResourceStats:
    # A share of no capacity is nothing; the capacity makes the score 0.
    whole = stats["capacity"] or 1
    return lvrb.ResourceStats(
        np.array([stats["usedAvg"] / whole]),
        np.array([stats["usedStdev"] / whole]),
        stats["req"],
        np.array([stats["capacity"]]),
    )


@by_id("lvrb_score")
@pytest.mark.parametrize("unit", [1, MIB])
def test_risk_balancing_scores_as_the_plugin_in_any_unit_of_memory(case: dict[str, Any], unit: int) -> None:
    node = Node(
        capacity={"cpu": case["node"]["cpu"], "memory": case["node"]["memory"] / unit},
        mean=ratios(case["metrics"], "AVG"),
        std=ratios(case["metrics"], "STD"),
    )
    request = {"cpu": case["pod_request"]["cpu"], "memory": case["pod_request"]["memory"] // unit}
    result = lvrb.score(pod(request), columns(node), rows(1), LoadVariationRiskBalancingArgs())
    assert listed(result) == [case["expected"]]


@by_id("lvrb_kep_example")
def test_risk_balancing_halves_the_sum_unlike_the_proposal(case: dict[str, Any]) -> None:
    cpu, memory = case["capacity"]["cpu_cores"], case["capacity"]["mem_gb"]
    mean, std = case["used_mean"], case["used_std"]
    node = Node(
        capacity={"cpu": cpu * 1000, "memory": memory * 1e9},
        mean={CPU: mean["cpu"] / cpu, MEMORY: mean["mem"] / memory},
        std={CPU: std["cpu"] / cpu, MEMORY: std["mem"] / memory},
    )
    request = {"cpu": int(case["pod"]["cpu_cores"] * 1000), "memory": int(case["pod"]["mem_gb"] * 1e9)}
    result = lvrb.score(pod(request), columns(node), rows(1), LoadVariationRiskBalancingArgs())
    assert listed(result) == [case["code_formula_expected_final"]]


@by_id("resource_stats")
def test_only_the_other_resource_counts_if_one_has_no_metrics(case: dict[str, Any]) -> None:
    node = Node(
        capacity={"cpu": case["node"]["cpu"], "memory": case["node"]["memory"]},
        mean=ratios(case["metrics"], "AVG"),
        std=ratios(case["metrics"], "STD"),
    )
    one_resource = LoadVariationRiskBalancingArgs(resources=(CPU,))
    assert listed(lvrb.score(pod(case["pod_request"]), columns(node), rows(1), one_resource)) == [None]
    # Memory: (0.2 + 1 MiB / 1 GiB + 0.1) / 2.
    both = LoadVariationRiskBalancingArgs()
    assert listed(lvrb.score(pod(case["pod_request"]), columns(node), rows(1), both)) == [85]


@pytest.mark.parametrize(
    ("sensitivity", "std", "expected"),
    [(0.0, 0.5, 75), (0.0, 1.0, 25), (2.0, 0.25, 50), (1.0, 0.5, 50)],
)
def test_the_exponent_of_the_deviation_is_the_inverse_of_the_sensitivity(
    sensitivity: float, std: float, expected: int
) -> None:
    node = Node(capacity={"cpu": 1000}, mean={CPU: 0.5}, std={CPU: std})
    args = LoadVariationRiskBalancingArgs(safe_variance_sensitivity=sensitivity)
    assert listed(lvrb.score(pod(), columns(node), rows(1), args)) == [expected]


def test_risk_balancing_takes_gpus_into_account_if_they_are_configured() -> None:
    hot = Node("hot", {"cpu": 1000}, mean={CPU: 0.0, GPU: 0.5}, std={CPU: 0.0, GPU: 0.1}, gpu_left=(1000,) * 5)
    none = Node("none", {"cpu": 1000}, mean={CPU: 0.0}, std={CPU: 0.0})
    args = LoadVariationRiskBalancingArgs(resources=(CPU, GPU))
    table = columns(hot, none)
    # One of five GPUs more: (0.5 + 0.2 + 0.1) / 2.
    assert listed(lvrb.score(pod(gpu_count=1, gpu_milli=1000), table, rows(2), args)) == [60, 100]
    assert listed(lvrb.score(pod(), table, rows(2), args)) == [70, 100]


def test_the_reason_of_risk_balancing_names_requests_only_for_resources_that_pods_request() -> None:
    node = Node(capacity={"cpu": 1000}, mean={CPU: 0.5, LoadResource.DISK: 0.5}, std={CPU: 0.1, LoadResource.DISK: 0.1})
    args = LoadVariationRiskBalancingArgs(resources=(CPU, LoadResource.DISK))
    assert lvrb.score(pod(), columns(node), rows(1), args).reason(0) == (
        "cpu is at 50% with the requests of this and recent pods and deviates by 10%; "
        "disk is at 50% and deviates by 10%"
    )


def test_risk_balancing_adds_the_gpus_of_recent_pods() -> None:
    """Several pods with GPUs that come at once must not all go to the node whose load does not show them yet."""
    free = Node("free", {"cpu": 1000}, mean={GPU: 0.1}, std={GPU: 0.1}, gpu_left=(1000,) * 5)
    taken = replace(free, name="taken", recent_requests={GPU: 2})
    without = replace(free, name="without", gpu_left=())
    args, table = LoadVariationRiskBalancingArgs(resources=(GPU,)), columns(free, taken, without)
    # One of five GPUs more, and three: (0.1 + 0.2 + 0.1) / 2, (0.1 + 0.6 + 0.1) / 2.
    assert listed(lvrb.score(pod(gpu_count=1, gpu_milli=1000), table, rows(3), args)) == [80, 60, 0]
    assert listed(lvrb.score(pod(), table, rows(3), args)) == [90, 70, 90]


@by_id("lroc_compute_risk")
def test_the_risk_of_overcommitment_is_that_of_the_plugin(case: dict[str, Any]) -> None:
    resource = METRICS[case["resource"]]
    committed = lroc.Commitment(
        *(
            np.array([float(case[key])])
            for key in ("capacity", "nodeRequest", "nodeLimit", "nodeRequestMinusPod", "nodeLimitMinusPod")
        )
    )
    mean, std = (np.array([ratios(case["metrics"], operator)[resource]]) for operator in ("AVG", "STD"))
    load = lroc.load_risk(committed, mean, std, case["smoothingWindowSize"])
    risk = lroc.compute_risk(committed, load, np.array([case["riskLimitWeight"]]))
    assert risk.total.item() == case["expected_risk"]


METRICS = {"cpu": CPU, "memory": MEMORY}


@pytest.mark.parametrize(
    ("mean", "std", "requested", "limits", "pod_limit", "expected"),
    [
        # The worked example of the plugin's tests: memory 0.25, CPU 0.5.
        ({CPU: 0.8, MEMORY: 0.25}, {CPU: 0.0, MEMORY: 0.0}, {"cpu": 1000}, {"cpu": 2000}, (1000, 6144), 50),
        # No metrics of CPU: its load is no risk.
        ({MEMORY: 0.25}, {MEMORY: 0.0}, {"cpu": 1000}, {"cpu": 2000}, (1000, 6144), 75),
        ({}, {}, {"cpu": 1000}, {"cpu": 2000}, (1000, 6144), None),
        # The beta distribution (2, 2) after smoothing: half of the load is above half of the capacity.
        ({CPU: 0.5, MEMORY: 0.0}, {CPU: 0.1}, {"cpu": 2000}, {"cpu": 4000}, (0, 2048), 75),
    ],
)
def test_overcommitment_scores_the_larger_risk(
    mean: dict[Any, float],
    std: dict[Any, float],
    requested: dict[str, float],
    limits: dict[str, float],
    pod_limit: tuple[int, int],
    expected: int | None,
) -> None:
    node = Node(capacity={"cpu": 4000, "memory": 4096}, requested=requested, limits=limits, mean=mean, std=std)
    wanted = pod({"cpu": pod_limit[0], "memory": 2048}, {"cpu": pod_limit[0], "memory": pod_limit[1]})
    result = lroc.score(wanted, columns(node), rows(1), LowRiskOverCommitmentArgs())
    assert listed(result) == [expected]


@pytest.mark.parametrize(
    ("cpu", "weight", "expected"), [(1000, 0.5, 50), (1000, 0.3, 70), (1000, 1.0, 0), (0, 0.5, 100)]
)
def test_without_capacity_only_the_limits_are_a_risk(cpu: int, weight: float, expected: int) -> None:
    """The numbers are those of the plugin's own code."""
    node = Node(capacity={"cpu": 0, "memory": 4096}, mean={CPU: 0.9, MEMORY: 0.0}, std={CPU: 0.1, MEMORY: 0.0})
    args = LowRiskOverCommitmentArgs(risk_limit_weights={"cpu": weight, "memory": weight})
    assert listed(lroc.score(pod({"cpu": cpu, "memory": 1024}), columns(node), rows(1), args)) == [expected]


def test_overcommitment_gives_best_effort_pods_0_everywhere() -> None:
    node = Node(capacity={"cpu": 4000, "memory": 4096}, mean={CPU: 0.1}, std={CPU: 0.0})
    assert listed(lroc.score(pod(), columns(node), rows(1), LowRiskOverCommitmentArgs())) == [0]


@by_id("node_requests_limits")
def test_requests_and_limits_of_nodes_are_those_of_the_plugin(case: dict[str, Any]) -> None:
    existing = [effective(item) for item in case["existing_pods"]]
    wanted = effective(case["pod"])
    node = Node(
        capacity=case["node"],
        requested={key: sum(item.requests[key] for item in existing) for key in METRICS},
        limits={key: sum(max(item.limits[key], item.requests[key]) for item in existing) for key in METRICS},
    )
    found = [
        lroc.commitment(pod(wanted.requests, wanted.limits), columns(node), rows(1), resource)
        for resource in (CPU, MEMORY)
    ]
    assert {
        "NodeRequest": [item.requested.item() for item in found],
        "NodeLimit": [item.limits.item() for item in found],
        "NodeRequestMinusPod": [item.requested_without_pod.item() for item in found],
        "NodeLimitMinusPod": [item.limits_without_pod.item() for item in found],
        "Nodecapacity": [item.capacity.item() for item in found],
    } == case["expected"]


def effective(item: dict[str, Any]) -> PodResources:
    """Return the larger of the sum of the containers and the init container."""
    requests, limits = (
        {
            key: max(item["init"][kind][index], sum(each[kind][index] for each in item["containers"]))
            for index, key in enumerate(METRICS)
        }
        for kind in ("req", "lim")
    )
    return PodResources(requests=requests, limits=limits)


@by_id("peaks")
def test_the_rise_in_power_is_that_of_the_plugin(case: dict[str, Any]) -> None:
    model = PowerModel(**case["power_model"])
    used = ratios(case["metrics"], "Latest")[CPU] * 100
    after = used + 100 * case["pod"]["requests_cpu"] / case["node"]["cpu"]
    raw = peaks.power_rise(*(np.array([value]) for value in (model.k1, model.k2, used, after))).item()
    expected = case["expected_approx"] if case["expected"] is None else case["expected"]
    assert raw == pytest.approx(expected, rel=1e-9)
    assert raw == int(raw)


def test_peaks_prefers_busy_nodes_and_gives_no_score_without_metrics_or_model() -> None:
    used = {"n0": 0.0, "n20": 0.2, "n50": 0.5, "n80": 0.8, "full": 0.95, "strange": 0.1}
    nodes = [Node(name, {"cpu": 1000}, mean={CPU: ratio}) for name, ratio in used.items()]
    nodes.append(Node("silent", {"cpu": 1000}))
    models = {node.name: MODEL for node in nodes if node.name != "strange"}
    result = peaks.score(pod({"cpu": 100}), columns(*nodes), rows(7), PeaksArgs(models))
    assert listed(result) == [0, 77, 98, 100, 0, None, None]


def test_peaks_gives_no_score_if_the_power_model_has_no_finite_result() -> None:
    table = columns(*(Node(name, {"cpu": 1000}, mean={CPU: 0.5}) for name in ("steep", "usual", "flat")))
    models = {"steep": PowerModel(0.0, 1.0, 1000.0), "usual": MODEL, "flat": PowerModel(100.0, 0.0, 0.0)}
    assert listed(peaks.score(pod({"cpu": 100}), table, rows(3), PeaksArgs(models))) == [None, 0, 100]


def test_peaks_normalises_over_the_nodes_of_the_request() -> None:
    table = columns(*(Node(f"n{used}", {"cpu": 1000}, mean={CPU: used / 100}) for used in (0, 20, 50, 80)))
    args = PeaksArgs(dict.fromkeys(table.names, MODEL))
    request = np.array([2, 1])
    assert listed(peaks.score(pod({"cpu": 100}), table, request, args)) == [100, 0]
    assert listed(peaks.score(pod(), table, request, args)) == [0, 0]
    assert listed(peaks.score(pod({"cpu": 100}), table, request[:1], args)) == [100]
    assert listed(peaks.score(pod({"cpu": 100}), table, request[:0], args)) == []


def test_peaks_avoids_a_full_node_even_if_power_rises_nowhere() -> None:
    table = columns(*(Node(name, {"cpu": 1000}, mean={CPU: used}) for name, used in (("full", 0.95), ("free", 0.5))))
    flat = PeaksArgs(dict.fromkeys(table.names, PowerModel(100.0, 0.0, 0.0)))
    assert listed(peaks.score(pod({"cpu": 100}), table, rows(2), flat)) == [0, 100]


def test_the_reason_of_peaks_tells_the_rise_in_power_or_why_there_is_none() -> None:
    used = {"usual": 0.2, "full": 0.95, "strange": 0.2, "silent": float("nan")}
    table = columns(*(Node(name, {"cpu": 1000}, mean={CPU: ratio}) for name, ratio in used.items()))
    models = {name: PowerModel(50.0, 10.0, 0.01) for name in used if name != "strange"}
    result = peaks.score(pod({"cpu": 300}), table, rows(4), PeaksArgs(models))
    assert [result.reason(position) for position in range(4)] == [
        "power rises by 4.27 W from 62 W when CPU goes from 20% to 50%",
        "CPU would be at 125%, which is more than the node has",
        "the node has no power model",
        "the node has no CPU metrics",
    ]


_SIDECAR = ContainerSpec("proxy", {"cpu": "500m", "memory": "1Gi"}, {"cpu": "500m"}, restarts_always=True)
_MAIN = ContainerSpec("main", {"cpu": "300m", "memory": "1Gi"}, {"cpu": "300m"})


@pytest.mark.parametrize(
    ("spec", "plain", "risk"),
    [
        # With the larger of both, as the plugins count a sidecar, it would be 78.
        pytest.param(
            PodSpecResources((_MAIN,), (_SIDECAR,)),
            pod({"cpu": 800, "memory": 2048 * MIB}, {"cpu": 800}),
            76,
            id="a sidecar",
        ),
        pytest.param(
            PodSpecResources((ContainerSpec("main"),), overhead={"cpu": "800m"}),
            pod({"cpu": 800}),
            76,
            id="overhead alone",
        ),
        pytest.param(PodSpecResources((ContainerSpec("main"),)), pod(), 80, id="neither requests nor overhead"),
    ],
)
def test_pod_requests_are_summed_as_in_kube_scheduler(spec: PodSpecResources, plain: PendingPod, risk: int) -> None:
    capacity, held = {"cpu": 10_000, "memory": 8192 * MIB}, {"cpu": 4000, "memory": 2048 * MIB}
    nodes = columns(
        *(
            Node(name, capacity, requested=held, limits={"cpu": 11_000, "memory": 2048 * MIB}, mean={CPU: load})
            for name, load in (("a", 0.4), ("b", 0.8))
        )
    )
    models = PeaksArgs(dict.fromkeys(nodes.names, MODEL))

    def scores(wanted: PendingPod) -> list[list[float | None]]:
        return [
            listed(lvrb.score(wanted, nodes, rows(2), LoadVariationRiskBalancingArgs(resources=(CPU,)))),
            listed(lroc.score(wanted, nodes, rows(2), LowRiskOverCommitmentArgs())),
            listed(peaks.score(wanted, nodes, rows(2), models)),
        ]

    found = scores(PendingPod(resources=pod_resources(spec)))
    assert found == scores(plain)
    (first, *_), overcommitment, power = found
    assert (first, any(overcommitment), any(power)) == (risk, risk < 80, risk < 80)
