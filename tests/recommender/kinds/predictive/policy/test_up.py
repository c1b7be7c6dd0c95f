from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.decisions.calculation import CalculationError
from recommender.decisions.loads.control_delays import ControlDelays, Delay, DelaySource, delay_of
from recommender.decisions.loads.load_inputs import PodConnections
from recommender.kinds.predictive.policy.free_slots import count_slots, pods_for
from recommender.kinds.predictive.policy.load_situation import LoadForecast, LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import Sized, size_of
from recommender.kinds.predictive.predictive_settings import ModelName
from tests.recommender.kinds.predictive.policy.policy_harness import (
    LIMIT,
    NOW,
    forecast,
    gently,
    ready,
    settings,
    sticky,
    unready,
)

if TYPE_CHECKING:
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

Pods = tuple[PodConnections, ...]


def sized(policy: PredictiveSettings, situation: LoadSituation) -> Sized:
    return size_of(policy, situation, PolicyMemory(), NOW)


@pytest.mark.parametrize(
    ("load", "upper", "replicas", "binding"),
    [
        (180_000.0, 210_000.0, 9, "quantile/forecast"),
        (210_000.0, 180_000.0, 9, "reactive/load"),
        (0.0, 0.0, 1, "min"),
        (25_000.0, 25_000.0, 1, "quantile/forecast"),
        (25_001.0, 25_000.0, 2, "reactive/load"),
    ],
)
def test_the_size_serves_the_larger_of_forecast_and_load(
    load: float, upper: float, replicas: int, binding: str
) -> None:
    found = sized(settings(), LoadSituation(load, forecast(upper)))
    assert (found.replicas, found.binding) == (replicas, binding)


def test_the_record_lists_the_steps_of_the_calculation() -> None:
    found = sized(settings(max_replicas=8), LoadSituation(180_000.0, forecast(210_000.0)))
    assert [(step.step, step.value, step.detail) for step in found.steps] == [
        ("quantile/forecast", 9, "ceil(210000 / 25000), in 120 s"),
        ("reactive/load", 8, "ceil(180000 / 25000)"),
        ("largest", 9, "forecast 9, load 8"),
        ("max", 8, "max 8"),
    ]


@pytest.mark.parametrize("missing", [None, LoadForecast(1.0, float("nan"), "quantile")])
def test_without_a_forecast_plain_headroom_is_used(missing: LoadForecast | None) -> None:
    found = sized(settings(headroom_ratio=0.2), LoadSituation(100_000.0, missing))
    assert (found.replicas, found.binding) == (5, "headroom/forecast")
    assert "there is no forecast" in found.note


@pytest.mark.parametrize("changes", [{"scale_down": gently()}, {"connections": sticky().connections}])
def test_the_reserve_is_the_headroom_on_the_observed_load(changes: dict[str, object]) -> None:
    found = sized(settings(headroom_ratio=0.1, **changes), LoadSituation(100_000.0, forecast(90_000.0)))
    assert (found.replicas, found.binding) == (5, "reserve/load")


@pytest.mark.parametrize(
    ("model", "written", "replicas"),
    [
        ("polynomial", None, 4),
        ("linear", None, 4),
        ("holt-winters", None, 4),
        ("state-space", None, 4),
        ("seasonal", None, 8),
        ("quantile", None, 8),
        ("quantile", 1.5, 3),
        ("polynomial", 3.0, 6),
    ],
)
def test_growth_is_capped_for_models_that_extrapolate(model: str, written: float | None, replicas: int) -> None:
    configured = settings(max_growth=written, model=ModelName(model))
    found = sized(configured, LoadSituation(50_000.0, forecast(200_000.0, model)))
    assert found.replicas == replicas
    assert (found.binding == "maxGrowth") == (replicas != 8)


@pytest.mark.parametrize(("model", "replicas"), [("seasonal", 8), ("quantile", 8), ("linear", 1)])
def test_after_a_night_without_load_only_extrapolating_models_are_capped(model: str, replicas: int) -> None:
    found = sized(settings(model=ModelName(model)), LoadSituation(0.0, forecast(200_000.0, model)))
    assert found.replicas == replicas


def test_the_default_growth_cap_of_the_leading_model_does_not_apply_to_a_mixture() -> None:
    found = sized(settings(model=ModelName.AUTO), LoadSituation(50_000.0, forecast(200_000.0, "linear")))
    assert found.replicas == 8


def test_growth_from_zero_load_may_reach_one_replica() -> None:
    configured = settings(min_replicas=0, model=ModelName.LINEAR)
    found = sized(configured, LoadSituation(0.0, forecast(80_000.0, "linear")))
    assert found.replicas == 1


DELAYS: Final = ControlDelays(
    Delay(15.0, DelaySource.MEASURED), Delay(10.0, DelaySource.MEASURED), Delay(15.0, DelaySource.ASSUMED)
)


def test_the_forecast_step_explains_its_horizon() -> None:
    found = sized(settings(), LoadSituation(1.0, forecast(1.0), delays=DELAYS))
    assert found.steps[0].detail.endswith(
        "in 160 s: start-up 120 s, scrape 15 s measured, refresh 10 s measured, HPA 15 s assumed"
    )


@pytest.mark.parametrize(
    ("measured", "seconds", "source"),
    [
        ((), 30.0, "assumed"),
        ((12.0, 13.0, 14.0, 15.0), 30.0, "assumed"),
        ((12.0, 13.0, 14.0, 15.0, 90.0), 90.0, "measured"),
        (tuple(float(second) for second in range(1, 11)), 9.0, "measured"),
        ((5.0, float("nan"), -3.0, 5.0, 5.0, 5.0, 5.0), 5.0, "measured"),
    ],
)
def test_a_delay_is_measured_if_there_are_five_samples_and_assumed_otherwise(
    measured: tuple[float, ...], seconds: float, source: str
) -> None:
    found = delay_of(measured, 30.0)
    assert (found.seconds, found.source.value) == (seconds, source)


@pytest.mark.parametrize(
    ("pods", "load", "upper", "replicas"),
    [
        # Totals say 3. The two pods are full, so that the 10,000 that come need a pod of their own: 2 + 1.
        (ready(25_000, 25_000), 50_000.0, 60_000.0, 3),
        # Totals say 4 for 75,000 + 20,000, and one of the four pods counts as full because it has no sample.
        (ready(25_000, 25_000, 25_000, None), 75_000.0, 95_000.0, 5),
        # A pod that is over its limit has no room for the others.
        (ready(40_000, 5_000), 45_000.0, 50_000.0, 2),
        # Two pods start already: they are not requested again.
        ((*ready(25_000, 25_000), *unready(None, 0)), 50_000.0, 90_000.0, 4),
        # One of them has been trying for more than twice the start-up time.
        ((*ready(25_000, 25_000), *unready(None, seconds=241.0)), 50_000.0, 60_000.0, 4),
        # A pod at its limit is not ready, and holds what it has until it falls below 95%.
        (unready(25_000, 24_000), 49_000.0, 60_000.0, 3),
        # All pods are full, and nothing more is expected: a Service without endpoints.
        (unready(25_000, 25_000), 50_000.0, 50_000.0, 3),
        # Enough room.
        (ready(20_000, 10_000), 30_000.0, 40_000.0, 2),
    ],
)
def test_free_slots_on_ready_pods_count(pods: Pods, load: float, upper: float, replicas: int) -> None:
    assert sized(sticky(), LoadSituation(load, forecast(upper), pods)).replicas == replicas


@pytest.mark.parametrize(("seconds", "replicas"), [(320.0, 3), (321.0, 4)])
def test_a_pod_is_expected_to_start_for_twice_its_start_up_and_the_delays_before_it(
    seconds: float, replicas: int
) -> None:
    pods = (*ready(25_000, 25_000), *unready(None, seconds=seconds))
    found = sized(sticky(), LoadSituation(50_000.0, forecast(60_000.0), pods, delays=DELAYS))
    assert found.replicas == replicas


def test_the_reserve_keeps_the_last_slots_free() -> None:
    pods = (*ready(24_000), *unready(24_000, 24_000))
    found = sized(sticky(headroom_ratio=0.03), LoadSituation(72_000.0, forecast(72_000.0), pods))
    assert (found.replicas, found.binding) == (4, "connections")
    assert "1000 free slots on ready pods for 2160 connections" in found.steps[-1].detail


def test_pods_are_removed_only_if_the_others_have_room() -> None:
    # 12,500 connections fit one pod, but the pod without a sample counts as full.
    found = sized(sticky(), LoadSituation(12_500.0, forecast(12_500.0), ready(None, 12_500, 0)))
    assert (found.replicas, found.binding) == (2, "connections")


def test_extra_pods_follow_the_published_rule() -> None:
    slots = count_slots(ready(*[20_000] * 10), LIMIT, 120.0)
    assert pods_for(slots, LIMIT, arrivals=60_000.0, reserve=0.0) == 10 + 3
    assert pods_for(slots, LIMIT, arrivals=50_000.0, reserve=0.0) == 10
    assert pods_for(slots, LIMIT, arrivals=60_000.0, reserve=20_000.0) == 10 + 4


def test_a_reserve_without_arrivals_adds_only_the_missing_slots() -> None:
    slots = count_slots(ready(*[20_000] * 10), LIMIT, 120.0)
    assert pods_for(slots, LIMIT, arrivals=0.0, reserve=60_000.0) == 10 + 1
    assert pods_for(slots, LIMIT, arrivals=-30_000.0, reserve=50_000.0) == 10
    assert pods_for(slots, LIMIT, arrivals=0.0, reserve=24_000.0) == 10 - 1


def test_a_rounding_error_of_the_reserve_adds_no_pod() -> None:
    full = count_slots(ready(*[99] * 100), 100, 120.0)
    assert pods_for(full, 100, arrivals=100.0, reserve=10_000 * 0.07) == 100 + 7


def test_a_target_without_pods_that_needs_no_room_gets_none() -> None:
    assert pods_for(count_slots((), LIMIT, 120.0), LIMIT, arrivals=0.0, reserve=0.0) == 0


@pytest.mark.parametrize(
    ("policy", "pods", "is_noted"),
    [(sticky(), None, True), (sticky(), ready(1), False), (settings(), None, False)],
)
def test_pods_whose_connections_are_unknown_are_noted(
    policy: PredictiveSettings, pods: Pods | None, *, is_noted: bool
) -> None:
    found = sized(policy, LoadSituation(1.0, forecast(1.0), pods))
    assert ("the connections of the pods are unknown" in found.note) is is_noted


SOME_FULL: Final = (*ready(*[25_000 - 1] * 9), *unready(25_000))


@pytest.mark.parametrize(
    ("policy", "pods", "replicas"),
    [
        (sticky(overshoot_ratio=0.2), None, 10),
        (sticky(overshoot_ratio=0.2), ready(1, 2), 10),
        (settings(overshoot_ratio=0.2), SOME_FULL, 10),
        (sticky(overshoot_ratio=0.2), SOME_FULL, 12),
    ],
    ids=["unknown pods", "none is full", "connections are not configured", "a full pod"],
)
def test_overshoot_needs_full_pods(policy: PredictiveSettings, pods: Pods | None, replicas: int) -> None:
    found = sized(policy, LoadSituation(250_000.0, forecast(250_000.0), pods))
    assert (found.replicas, found.binding == "overshoot") == (replicas, replicas > 10)


def test_overshoot_is_off_by_default() -> None:
    assert sized(sticky(), LoadSituation(250_000.0, forecast(250_000.0), SOME_FULL)).binding != "overshoot"


def test_a_size_never_exceeds_the_largest_value_of_the_api() -> None:
    assert sized(settings(), LoadSituation(1e300, forecast(1e300))).replicas == 2**31 - 1


def test_without_load_per_replica_there_is_no_size() -> None:
    with pytest.raises(CalculationError, match="loadPerReplica"):
        sized(settings(load_per_replica=None), LoadSituation(1.0))


pods_of_all_kinds = st.lists(
    st.builds(
        PodConnections,
        st.none() | st.floats(0, 1.2 * LIMIT),
        is_ready=st.booleans(),
        unready_seconds=st.none() | st.floats(0, 600),
    ),
    max_size=12,
).map(tuple)


@given(pods_of_all_kinds, st.floats(0, 500_000), st.floats(0, 500_000), st.none() | st.integers(1, 30))
@examples(max_examples=60)
def test_the_load_and_its_reserve_are_served_whatever_the_pods_report(
    pods: Pods, load: float, upper: float, most: int | None
) -> None:
    policy = sticky(headroom_ratio=0.1, max_replicas=most)
    replicas = sized(policy, LoadSituation(load, forecast(upper), pods)).replicas
    assert replicas is not None
    assert replicas * LIMIT >= 1.1 * load * (1 - 1e-9) or replicas == most
    slots = count_slots(pods, LIMIT, 120.0)
    if slots.occupied and slots.free <= 0:
        assert replicas > slots.occupied or replicas == most


@given(st.floats(0, 1.2 * LIMIT), pods_of_all_kinds, st.floats(0, 500_000), st.floats(0, 500_000))
@examples(max_examples=60)
def test_a_pod_without_a_sample_never_means_fewer_replicas(
    connections: float, others: Pods, load: float, upper: float
) -> None:
    with_sample, unknown = (
        sized(sticky(), LoadSituation(load, forecast(upper), (PodConnections(each, is_ready=True), *others))).replicas
        for each in (connections, None)
    )
    assert with_sample is not None
    assert unknown is not None
    assert unknown >= with_sample
