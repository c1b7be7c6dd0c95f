from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.hpa.behaviour import LimitReason
from adapter.foundation.hpa.decision import AbleReason, ActiveReason
from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory, PastRecommendation, ScaleEvent
from adapter.foundation.hpa.pods import Pod, PodPhase, PodSample, Readiness
from adapter.foundation.hpa.proposals import HpaWorkload, PodSamples, Totals, Unavailable
from adapter.foundation.hpa.rules import DEFAULT_SCALE_DOWN, DEFAULT_SCALE_UP, Behaviour
from adapter.foundation.hpa.spec import (
    AverageUtilization,
    AverageValue,
    ExternalMetric,
    HPASpec,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    Settings,
    Value,
)

if TYPE_CHECKING:
    from adapter.foundation.hpa.proposals import Observation
    from adapter.foundation.hpa.spec import MetricSpec

CONNECTIONS: Final = PodsMetric("connections", AverageValue(100_000))
QUEUE: Final = ExternalMetric("queue", AverageValue(10_000))
PLAIN: Final = HPASpec(metrics=(CONNECTIONS,), min_replicas=2, max_replicas=20)


def samples(*per_pod: int) -> PodSamples:
    return PodSamples({f"web-{number}": PodSample(milli) for number, milli in enumerate(per_pod)})


def workload(replicas: int) -> HpaWorkload:
    ready = Readiness(ready=True, since=0.0)
    pods = tuple(Pod(f"web-{number}", started_at=0.0, readiness=ready) for number in range(replicas))
    return HpaWorkload(spec_replicas=replicas, status_replicas=replicas, pods=pods)


def test_a_pods_metric_scales_to_its_average() -> None:
    decision = evaluate(PLAIN, workload(2), [samples(150_000, 130_000)], now=0.0)
    assert (decision.desired, decision.reason) == (3, LimitReason.DESIRED_WITHIN_RANGE)
    assert [(step.step, step.value) for step in decision.steps] == [
        ("metric/pods/connections", 3),
        ("largest", 3),
        ("stabilized", 3),
        ("limited", 3),
    ]
    assert "average 140" in decision.proposals[0].detail
    assert decision.message.startswith("replicas 2 -> 3: metric/pods/connections is above its target (ratio 1.4")


def test_an_external_metric_divides_its_total_by_the_target() -> None:
    spec = HPASpec(metrics=(QUEUE,), max_replicas=20)
    decision = evaluate(spec, HpaWorkload(2, 2), [Totals((20_000, 15_001))], now=0.0)
    assert decision.desired == 4
    assert "average 17501m" in decision.proposals[0].detail


def test_the_largest_of_several_metrics_wins() -> None:
    spec = replace(PLAIN, metrics=(CONNECTIONS, QUEUE))
    decision = evaluate(spec, workload(3), [samples(100_000, 100_000, 100_000), Totals((55_000,))], now=0.0)
    assert decision.desired == 6
    assert "metric/external/queue is above" in decision.message


def test_a_failing_metric_lets_the_others_scale_up() -> None:
    spec = replace(PLAIN, metrics=(CONNECTIONS, QUEUE))
    decision = evaluate(spec, workload(2), [Unavailable("503"), Totals((35_000,))], now=0.0)
    assert (decision.desired, decision.reason) == (4, LimitReason.DESIRED_WITHIN_RANGE)


def test_the_only_metric_that_fails_is_named_with_its_cause() -> None:
    decision = evaluate(PLAIN, workload(2), [Unavailable("503 from the adapter")], now=0.0)
    assert (decision.desired, decision.message) == (2, "the metric connections failed: 503 from the adapter")


def test_a_failing_metric_keeps_the_others_from_scaling_down() -> None:
    spec = replace(PLAIN, metrics=(QUEUE, CONNECTIONS))
    decision = evaluate(spec, workload(5), [Totals((20_000,)), Unavailable("503 from the adapter")], now=0.0)
    assert decision.desired == 5
    assert decision.reason is ActiveReason.FAILED_GET_PODS_METRIC
    assert decision.message == "1 of 2 metrics failed, first connections: 503 from the adapter"
    assert [step.value for step in decision.steps] == [2, None, 5]


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (CONNECTIONS, ActiveReason.FAILED_GET_PODS_METRIC),
        (QUEUE, ActiveReason.FAILED_GET_EXTERNAL_METRIC),
        (ObjectMetric("hits", Value(1000)), ActiveReason.FAILED_GET_OBJECT_METRIC),
        (ResourceMetric("cpu", AverageUtilization(80)), ActiveReason.FAILED_GET_RESOURCE_METRIC),
        (ResourceMetric("cpu", AverageValue(80), "app"), ActiveReason.FAILED_GET_CONTAINER_RESOURCE_METRIC),
    ],
)
def test_without_a_usable_metric_replicas_and_history_do_not_change(metric: MetricSpec, reason: ActiveReason) -> None:
    spec = replace(PLAIN, metrics=(metric,))
    history = HpaHistory((PastRecommendation(7, -1.0),))
    decision = evaluate(spec, workload(5), [Unavailable("gone")], history, now=0.0)
    assert (decision.desired, decision.reason) == (5, reason)
    assert decision.history == history


@pytest.mark.parametrize(
    ("metric", "observation", "why"),
    [
        (CONNECTIONS, samples(), "no sample came for any pod"),
        (QUEUE, Totals(()), "no series came"),
        (ObjectMetric("hits", Value(1000)), Totals((1, 2)), "2 values came for one object"),
        (ResourceMetric("cpu", AverageUtilization(80)), samples(1, 1, 1), "a pod has no request"),
    ],
)
def test_an_unusable_metric_is_reported_with_the_reason(metric: MetricSpec, observation: Observation, why: str) -> None:
    decision = evaluate(replace(PLAIN, metrics=(metric,)), workload(3), [observation], now=0.0)
    assert decision.proposals[0].replicas is None
    assert why in decision.message


def test_a_selector_without_pods_is_a_failure_for_metrics_that_count_pods() -> None:
    for metric, observation in (
        (CONNECTIONS, samples(1)),
        (ObjectMetric("hits", Value(1000)), Totals((5000,))),
    ):
        decision = evaluate(replace(PLAIN, metrics=(metric,)), HpaWorkload(3, 3), [observation], now=0.0)
        assert decision.proposals[0].replicas is None


def test_replicas_set_to_zero_by_hand_turn_autoscaling_off() -> None:
    decision = evaluate(PLAIN, workload(0), [samples()], now=0.0)
    assert (decision.desired, decision.reason) == (0, ActiveReason.SCALING_DISABLED)


def test_if_min_replicas_is_zero_load_starts_the_first_replica() -> None:
    spec = HPASpec(metrics=(QUEUE,), min_replicas=0, max_replicas=20)
    assert evaluate(spec, HpaWorkload(0, 0), [Totals((1,))], now=0.0).desired == 1
    assert evaluate(spec, HpaWorkload(0, 0), [Totals((0,))], now=0.0).desired == 0


def test_since_kubernetes_1_36_zero_replicas_grow_only_if_the_controller_made_them_zero() -> None:
    spec = HPASpec(metrics=(QUEUE,), min_replicas=0, max_replicas=20)
    busy = [Totals((25_000,))]
    by_hand = evaluate(spec, HpaWorkload(0, 0), busy, now=0.0, scaled_to_zero=False)
    assert (by_hand.desired, by_hand.reason) == (0, ActiveReason.SCALING_DISABLED)
    assert evaluate(spec, HpaWorkload(0, 0), busy, now=0.0, scaled_to_zero=True).desired == 3


@pytest.mark.parametrize("behaviour", [None, Behaviour()], ids=["default", "behaviour"])
def test_a_minimum_that_was_raised_ends_the_zero_of_the_controller(behaviour: Behaviour | None) -> None:
    raised = HPASpec(metrics=(QUEUE,), min_replicas=2, max_replicas=20, behaviour=behaviour)
    idle = evaluate(raised, HpaWorkload(0, 0), [Totals((0,))], now=0.0, scaled_to_zero=True)
    assert (idle.desired, idle.reason) == (2, LimitReason.TOO_FEW_REPLICAS)
    assert evaluate(raised, HpaWorkload(0, 0), [Totals((35_000,))], now=0.0, scaled_to_zero=True).desired == 4
    assert evaluate(raised, HpaWorkload(0, 0), [Unavailable("down")], now=0.0, scaled_to_zero=True).desired == 0
    assert evaluate(raised, HpaWorkload(0, 0), [Totals((0,))], now=0.0, scaled_to_zero=False).desired == 0


@pytest.mark.parametrize(
    ("current", "desired", "reason"),
    [(25, 20, LimitReason.TOO_MANY_REPLICAS), (1, 2, LimitReason.TOO_FEW_REPLICAS)],
)
def test_outside_its_range_an_hpa_evaluates_no_metric(current: int, desired: int, reason: LimitReason) -> None:
    decision = evaluate(PLAIN, workload(current), [Unavailable("down")], now=0.0)
    assert (decision.desired, decision.reason, decision.proposals) == (desired, reason, ())


def test_a_controller_that_has_just_started_treats_the_current_size_as_recommended() -> None:
    first = evaluate(PLAIN, workload(10), [samples(*[10_000] * 10)], now=0.0)
    assert (first.desired, first.reason) == (10, AbleReason.SCALE_DOWN_STABILIZED)
    later = evaluate(PLAIN, workload(10), [samples(*[10_000] * 10)], first.history, now=301.0)
    assert (later.desired, later.reason) == (2, LimitReason.TOO_FEW_REPLICAS)


def test_without_a_behaviour_one_evaluation_at_most_doubles_the_replicas() -> None:
    decision = evaluate(PLAIN, workload(3), [samples(900_000, 900_000, 900_000)], now=0.0)
    assert (decision.desired, decision.reason) == (6, LimitReason.SCALE_UP_LIMIT)
    assert decision.history.ups == ()


def test_the_tolerance_of_the_behaviour_overrides_that_of_the_controller() -> None:
    load = [samples(105_000, 105_000, 105_000)]
    exact = Behaviour(scale_up=replace(DEFAULT_SCALE_UP, tolerance=0.0))
    assert evaluate(PLAIN, workload(3), load, now=0.0).desired == 3
    assert evaluate(replace(PLAIN, behaviour=exact), workload(3), load, now=0.0).desired == 4


def test_a_window_that_is_not_set_is_that_of_the_controller() -> None:
    spec = replace(PLAIN, behaviour=Behaviour(), settings=Settings(downscale_stabilization_seconds=30.0))
    assert (spec.windows.up, spec.windows.down) == (0.0, 30.0)
    short = Behaviour(scale_down=replace(DEFAULT_SCALE_DOWN, stabilization_window_seconds=5))
    assert replace(spec, behaviour=short).windows.down == 5


def test_a_change_is_added_to_the_history() -> None:
    spec = replace(PLAIN, behaviour=Behaviour())
    decision = evaluate(spec, workload(2), [samples(150_000, 130_000)], now=7.0)
    assert decision.history.ups == (ScaleEvent(1, 7.0),)
    assert [past.replicas for past in decision.history.recommendations] == [2, 3]


def test_deleted_and_finished_pods_do_not_count() -> None:
    pods = (Pod("web-0"), Pod("web-1"), Pod("web-2", deleted=True), Pod("web-3", phase=PodPhase.SUCCEEDED))
    observed = samples(300_000, 100_000, 900_000, 900_000)
    decision = evaluate(PLAIN, HpaWorkload(2, 2, pods), [observed], now=0.0)
    assert decision.desired == 4
    assert "average 200" in decision.proposals[0].detail


@pytest.mark.parametrize(("per_pod", "replicas"), [(200_000, 2), (50_000, 2)], ids=["up", "down"])
def test_before_kubernetes_1_38_pods_that_have_succeeded_count_as_missing(per_pod: int, replicas: int) -> None:
    ended = tuple(Pod(f"done-{number}", phase=PodPhase.SUCCEEDED) for number in range(2))
    observed = HpaWorkload(2, 2, (Pod("web-0"), Pod("web-1"), *ended))
    older = replace(PLAIN, min_replicas=1, settings=Settings(ignores_succeeded=False))
    values = [samples(per_pod, per_pod)]
    assert evaluate(older, observed, values, now=0.0).proposals[0].replicas == replicas
    assert evaluate(replace(PLAIN, min_replicas=1), observed, values, now=0.0).proposals[0].replicas != replicas


def test_a_pending_pod_counts_as_idle_when_scaling_up() -> None:
    pods = (Pod("web-0"), Pod("web-1"), Pod("web-2", phase=PodPhase.PENDING))
    decision = evaluate(PLAIN, HpaWorkload(3, 3, pods), [samples(200_000, 200_000)], now=0.0)
    assert decision.proposals[0].replicas == 4


def test_utilization_is_reported_in_percent_of_the_requests() -> None:
    cpu = ResourceMetric("cpu", AverageUtilization(50))
    ready = Readiness(ready=True, since=0.0)
    pods = tuple(Pod(f"web-{n}", started_at=0.0, readiness=ready, requests_milli={"cpu": 1000}) for n in range(2))
    observed = PodSamples({f"web-{n}": PodSample(800, timestamp=1000.0) for n in range(2)})
    proposal = evaluate(replace(PLAIN, metrics=(cpu,)), HpaWorkload(2, 2, pods), [observed], now=1000.0).proposals[0]
    assert proposal.replicas == 4
    assert proposal.detail.endswith("average 800m, 80% of the requests")


def test_observations_must_fit_their_metrics() -> None:
    with pytest.raises(ValueError, match="0 observations came for 1 metrics"):
        evaluate(PLAIN, workload(2), [], now=0.0)
    with pytest.raises(TypeError, match="PodsMetric 'connections' takes PodSamples, not Totals"):
        evaluate(PLAIN, workload(2), [Totals((1,))], now=0.0)


@pytest.mark.parametrize(
    ("minimum", "maximum", "metrics", "message"),
    [
        (1, 5, (), "at least one metric"),
        (6, 5, (QUEUE,), "are not a range"),
        (-1, 5, (QUEUE,), "are not a range"),
        (0, 0, (QUEUE,), "are not a range"),
        (0, 5, (CONNECTIONS,), "minReplicas 0 needs"),
    ],
)
def test_a_spec_that_the_api_server_refuses_is_an_error(
    minimum: int, maximum: int, metrics: tuple[MetricSpec, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        HPASpec(metrics=metrics, min_replicas=minimum, max_replicas=maximum)


@pytest.mark.parametrize("kind", [Value, AverageValue, AverageUtilization])
def test_a_target_must_be_above_zero(kind: type[Value | AverageValue | AverageUtilization]) -> None:
    with pytest.raises(ValueError, match="write a number above 0"):
        kind(0)


def test_a_sum_beyond_64_bits_scales_to_the_maximum() -> None:
    largest = 2**63 - 1
    for target in (Value(1000), AverageValue(1000)):
        spec = HPASpec(metrics=(ExternalMetric("queue", target),), max_replicas=3, behaviour=Behaviour())
        decision = evaluate(spec, workload(2), [Totals((largest, largest))], now=0.0)
        assert (decision.desired, decision.proposals[0].replicas) == (3, 2**31 - 1)
        assert f"{largest}m" in decision.proposals[0].detail


def test_a_negative_sum_counts_as_an_overflow_for_average_value_as_in_the_controller() -> None:
    spec = HPASpec(metrics=(QUEUE,), max_replicas=30)
    assert evaluate(spec, HpaWorkload(2, 2), [Totals((-5,))], now=0.0).proposals[0].replicas == 2**31 - 1
