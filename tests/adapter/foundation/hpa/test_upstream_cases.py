"""The numeric cases of the HPA controller's own tests, run through this project's arithmetic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.hpa.arithmetic import Tolerances
from adapter.foundation.hpa.behaviour import limit, limit_by_default, limit_rate, stabilize, stabilize_by_default
from adapter.foundation.hpa.evaluation import largest_usable
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, ScaleEvent
from adapter.foundation.hpa.pods import Pod, PodPhase, PodSample, PodState, PodUsage, Readiness, classify
from adapter.foundation.hpa.replicas import UnusableMetricError, average_replicas, utilization_replicas
from adapter.foundation.hpa.rules import (
    DEFAULT_SCALE_DOWN,
    DEFAULT_SCALE_UP,
    Behaviour,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
    Windows,
)
from adapter.foundation.hpa.spec import Settings
from adapter.foundation.hpa.totals import average_value_replicas, value_replicas

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

CASES: Final = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))["cases"]
NOW: Final = 100_000.0


def tolerances(given: Json) -> Tolerances:
    return Tolerances(up=given["tol_up"], down=given["tol_down"])


def pods(given: Json) -> list[PodUsage]:
    return [PodUsage(PodState(pod["state"]), pod.get("usage"), pod.get("request")) for pod in given["pods"]]


def resource_utilization(given: Json) -> Json:
    found = utilization_replicas(given["current"], given["target_pct"], pods(given), tolerances(given))
    return {
        "replicas": found.replicas,
        "utilization_pct": found.utilization_percent,
        "raw_milli": found.average_milli,
    }


def pods_average(given: Json) -> Json:
    found = average_replicas(given["current"], given["target"], pods(given), tolerances(given))
    return {"replicas": found.replicas, "average_milli": found.average_milli}


def value_metric(given: Json) -> Json:
    ready, usage, target = given["ready"], given["usage"], given["target"]
    return {"replicas": value_replicas(given["current"], ready, usage, target, tolerances(given))}


def average_metric(given: Json) -> Json:
    found = average_value_replicas(given["status_replicas"], given["usage"], given["target"], tolerances(given))
    return {"replicas": found.replicas, "average_milli": found.average_milli}


def group_pod(given: Json) -> Json:
    about, metric = given["pod"], given["metric"]
    readiness = Readiness(about["ready"], about["since"]) if "ready" in about else None
    pod = Pod(
        name="web-0",
        phase=PodPhase(about["phase"]),
        deleted=about.get("deleted", False),
        started_at=about.get("start"),
        readiness=readiness,
    )
    sample = PodSample(1, metric["ts"], metric["window"]) if metric else None
    settings = Settings(
        cpu_initialization_seconds=given["cpu_init_s"],
        initial_readiness_delay_seconds=given["readiness_delay_s"],
    )
    return {"state": classify(pod, sample, given["now"], settings, cpu=given["cpu"])}


def clamp_no_behavior(given: Json) -> Json:
    found = limit_by_default(given["current"], given["desired"], given["min"], given["max"])
    return {"replicas": found.replicas, "reason": found.reason}


def remembered(given: Json) -> HpaHistory:
    return HpaHistory(tuple(PastRecommendation(replicas, NOW - age) for replicas, age in given["recommendations"]))


def stabilize_simple(given: Json) -> Json:
    return {"replicas": stabilize_by_default(given["desired"], remembered(given), given["window_s"], NOW).replicas}


def stabilize_both_ways(given: Json) -> Json:
    windows = Windows(up=given["up_window_s"], down=given["down_window_s"])
    return {"replicas": stabilize(given["current"], given["desired"], windows, remembered(given), NOW).replicas}


def rules(given: Json | None, default: ScalingRules) -> ScalingRules:
    if given is None:
        return default
    policies = (ScalingPolicy(PolicyType(p["type"]), p["value"], p["period"]) for p in given["policies"])
    return ScalingRules(policies=tuple(policies), select=SelectPolicy(given["select"]))


def events(given: list[list[float]]) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(int(change), NOW - age) for change, age in given)


def clamp_behavior(given: Json) -> Json:
    behaviour = Behaviour(rules(given["up"], DEFAULT_SCALE_UP), rules(given["down"], DEFAULT_SCALE_DOWN))
    history = HpaHistory((), events(given["up_events"]), events(given["down_events"]))
    rate = limit_rate(given["current"], given["desired"], behaviour, history, NOW)
    found = limit(given["current"], given["desired"], given["min"], given["max"], rate)
    return {"replicas": found.replicas, "reason": found.reason}


def combine(given: Json) -> Json:
    return {"replicas": largest_usable(given["proposals"], given["spec_replicas"])}


KINDS: Final[dict[str, Callable[[Json], Json]]] = {
    "resource_utilization": resource_utilization,
    "pods_average": pods_average,
    "value_metric": value_metric,
    "average_metric": average_metric,
    "group_pod": group_pod,
    "clamp_no_behavior": clamp_no_behavior,
    "stabilize_simple": stabilize_simple,
    "stabilize": stabilize_both_ways,
    "clamp_behavior": clamp_behavior,
    "combine": combine,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_each_case_gives_the_result_of_the_controller(case: Json) -> None:
    compute = KINDS[case["kind"]]
    if case["expected"].get("error"):
        with pytest.raises(UnusableMetricError):
            compute(case["input"])
        return
    found = compute(case["input"])
    assert {key: found[key] for key in case["expected"]} == case["expected"]


def test_every_case_names_its_source() -> None:
    assert len(CASES) >= 70
    assert all(case["source"] for case in CASES)
