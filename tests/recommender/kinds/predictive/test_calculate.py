from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.calculation import InputMissingError
from recommender.decisions.inputs import Inputs, TargetState
from recommender.decisions.loads.control_delays import ControlDelays, Delay, DelaySource
from recommender.decisions.loads.load_inputs import LoadInput, PodConnections
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.decisions.record import Status, TargetReference
from recommender.kinds.predictive.calculate import calculate_predictive
from recommender.kinds.predictive.policy.memory import SessionMemory, restore_memory
from recommender.kinds.predictive.predictive_settings import (
    Connections,
    Override,
    PredictiveSettings,
    ScaleDown,
    Schedule,
)

NOW = 1_000_000.0
GATEWAY = TargetReference("apps/v1", "Deployment", "chat", "gateway")
OTHER = TargetReference("apps/v1", "Deployment", "chat", "other")


def settings(**changes: Any) -> PredictiveSettings:  # noqa: ANN401 - the fields of a dataclass
    return replace(PredictiveSettings(load="x", load_per_replica=100.0, horizon_seconds=120.0), **changes)


def load(now: float, predicted: float | None = None, **changes: Any) -> Observed[LoadInput]:  # noqa: ANN401 - likewise
    quantiles = {} if predicted is None else {"0.5": now, "0.95": predicted}
    at = None if predicted is None else NOW + 150
    prediction = Prediction(PredictedLoad(now, predicted, at, quantiles), "quantile", "it was short least")
    return Observed(LoadInput(prediction, **changes), NOW - 5)


def inputs(observed: Observed[LoadInput] | Unknown, **changes: Any) -> Inputs:  # noqa: ANN401 - likewise
    return Inputs(loads={"chat": {None: observed}}, **changes)


def test_the_predicted_load_decides_while_it_exceeds_the_present_load() -> None:
    found = calculate_predictive(settings(), "chat")(inputs(load(850.0, 1210.0)), Memory(), NOW)
    assert (found.replicas, found.binding, found.confirmed) == (13, "quantile/forecast", NOW - 5)
    assert found.inputs == {"load": 850.0, "predicted": 1210.0}
    assert isinstance(found.details, Prediction)
    assert found.details.model == "quantile"


def test_limited_growth_is_a_step_of_the_record() -> None:
    found = load(40.0, 48.0)
    prediction = replace(found.value.prediction, before_growth_limit=390.0)
    given = Observed(LoadInput(prediction), found.time)
    size = calculate_predictive(settings(max_growth=1.2), "chat")(inputs(given), Memory(), NOW)

    assert [(each.step, each.value) for each in size.steps] == [
        ("quantile/forecast", 4),
        ("maxGrowth", 1),
        ("reactive/load", 1),
        ("largest", 1),
    ]
    assert size.inputs == {"load": 40.0, "predicted": 48.0}


@pytest.mark.parametrize(
    ("published", "before", "steps"),
    [
        (
            1470.0,
            1600.0,
            [
                ("quantile/forecast", 16, "ceil(1600 / 100), in 120 s"),
                ("maxGrowth", 15, "at most 1.5 times the mean load of the last minutes"),
            ],
        ),
        (1300.0, None, [("quantile/forecast", 13, "ceil(1300 / 100), in 120 s")]),
        (
            900.0,
            1600.0,
            [
                ("quantile/forecast", 16, "ceil(1600 / 100), in 120 s"),
                ("maxGrowth", 9, "at most 1.5 times the load 600"),
            ],
        ),
    ],
)
def test_a_low_sample_never_lowers_the_size_below_the_published_forecast(
    published: float, before: float | None, steps: list[tuple[str, int, str]]
) -> None:
    found = load(600.0, published)
    given = Observed(LoadInput(replace(found.value.prediction, before_growth_limit=before)), found.time)
    size = calculate_predictive(settings(max_growth=1.5), "chat")(inputs(given), Memory(), NOW)

    assert [(each.step, each.value, each.detail) for each in size.steps[:-2]] == steps
    assert size.replicas == steps[-1][1]


def test_a_forecast_below_the_present_load_does_not_lower_the_size() -> None:
    found = calculate_predictive(settings(), "chat")(inputs(load(850.0, 100.0)), Memory(), NOW)
    assert (found.replicas, found.binding) == (9, "reactive/load")


def test_without_a_forecast_plain_headroom_is_used_and_noted() -> None:
    found = calculate_predictive(settings(headroom_ratio=0.2), "chat")(inputs(load(850.0)), Memory(), NOW)
    assert found.replicas == 11
    assert "there is no forecast" in found.note


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Inputs(), "has not been queried yet"),
        (Inputs(loads={"chat": Unknown("Prometheus is away")}), "Prometheus is away"),
        (Inputs(loads={"chat": {None: Unknown("the value is NaN")}}), "the value is NaN"),
        (Inputs(loads={"chat": {OTHER: load(1.0)}}), "no series for this target any more"),
    ],
)
def test_an_unknown_load_is_a_missing_input(given: Inputs, reason: str) -> None:
    with pytest.raises(InputMissingError, match=reason):
        calculate_predictive(settings(), "chat")(given, Memory(), NOW)


def test_an_override_needs_no_load() -> None:
    overridden = settings(override=Override(7, NOW + 60))
    found = calculate_predictive(overridden, "chat")(inputs(Unknown("Prometheus is away")), Memory(), NOW)
    assert (found.replicas, found.confirmed) == (7, NOW)
    assert "Prometheus is away" in found.note


@pytest.mark.parametrize("gate", [NOW, NOW - 90])
def test_an_override_holds_while_an_input_is_too_old(gate: float) -> None:
    overridden = settings(override=Override(7, NOW + 60), freeze_unless="up")
    old = replace(load(100.0), time=NOW - 90)
    given = inputs(old if gate == NOW else load(100.0), queries={"up": Observed(1.0, gate)})
    policy, memory = RecommendationPolicy("chat", "predictive"), Memory(last=LastValue(20, NOW - 300, NOW - 300))
    found = decide(policy, calculate_predictive(overridden, "chat"), given, memory, NOW).record
    assert (found.status, found.replicas, found.details) == (Status.OK, 7, None)
    assert "an input is 90 s old" in found.message


ALWAYS = Schedule("* * * * *", "UTC", 3600.0, 12)
UNUSABLE = [Unknown("Prometheus is away"), replace(load(100.0), time=NOW - 90)]


@pytest.mark.parametrize("unusable", UNUSABLE)
def test_a_schedule_raises_the_size_while_the_load_is_unknown(unusable: Observed[LoadInput] | Unknown) -> None:
    policy, known = RecommendationPolicy("chat", "predictive"), {GATEWAY: Observed(TargetState(5), NOW)}
    calculate = calculate_predictive(settings(schedules=(ALWAYS,)), "chat", targets=(GATEWAY,))
    memory = Memory(last=LastValue(5, NOW - 300, NOW - 300))
    for _ in range(2):
        decision = decide(policy, calculate, inputs(unusable, targets=known), memory, NOW)
        found, memory = decision.record, decision.memory
        assert (found.status, found.replicas) == (Status.OK, 12)
        assert found.message.startswith("its load is not used")


@pytest.mark.parametrize(("last", "present"), [(20, 5), (5, 20), (None, None)])
def test_a_schedule_alone_gives_no_size_if_more_replicas_may_be_needed(last: int | None, present: int | None) -> None:
    known = {} if present is None else {GATEWAY: Observed(TargetState(present), NOW)}
    memory = Memory() if last is None else Memory(last=LastValue(last, NOW, NOW))
    calculate = calculate_predictive(settings(schedules=(ALWAYS,)), "chat", targets=(GATEWAY,))
    with pytest.raises(InputMissingError, match="Prometheus is away"):
        calculate(inputs(Unknown("Prometheus is away"), targets=known), memory, NOW)


@pytest.mark.parametrize("gap", [10.0, 50.0, 70.0, 130.0])
@pytest.mark.parametrize("writes_sizes", [False, True])
def test_a_schedule_gives_no_less_than_the_last_size_however_long_the_load_is_unknown(
    gap: float,
    writes_sizes: bool,  # noqa: FBT001 - a parameter of the product
) -> None:
    policy = RecommendationPolicy("chat", "predictive", targets=(GATEWAY,))
    known = {GATEWAY: Observed(TargetState(20), NOW)}
    scheduled = settings(headroom_ratio=0.0, schedules=(replace(ALWAYS, min_replicas=30),))
    calculate = calculate_predictive(scheduled, "chat", targets=(GATEWAY,), writes_sizes=writes_sizes)
    memory = decide(policy, calculate, inputs(load(4000.0), targets=known), Memory(), NOW).memory
    assert memory.last is not None
    assert memory.last.replicas == 40
    with pytest.raises(InputMissingError, match="Prometheus is away"):
        calculate(inputs(Unknown("Prometheus is away"), targets=known), memory, NOW + gap)


def test_polls_every_five_minutes_are_no_gap_while_a_schedule_decides_alone() -> None:
    known = {GATEWAY: Observed(TargetState(12), NOW)}
    scheduled = settings(headroom_ratio=0.0, schedules=(ALWAYS,), scale_down=ScaleDown())
    calculate = calculate_predictive(scheduled, "chat", None, (GATEWAY,), 600.0, writes_sizes=True)
    policy = RecommendationPolicy("chat", "predictive", targets=(GATEWAY,), stale_after_seconds=600.0)
    memory = decide(policy, calculate, inputs(load(1100.0), targets=known), Memory(), NOW).memory
    decision = decide(policy, calculate, inputs(Unknown("Prometheus is away"), targets=known), memory, NOW + 310.0)
    assert decision.record.replicas == 12
    before, after = restore_memory(memory.own), restore_memory(decision.memory.own)
    assert after.desired_sizes == before.desired_sizes


@pytest.mark.parametrize(("outputs", "seconds", "size"), [("metric", 50, 10), ("metric", 70, 10), ("scale", 70, 74)])
def test_a_published_size_does_not_become_what_an_hpa_has_made_of_it(outputs: str, seconds: float, size: int) -> None:
    """An HPA may have grown by another of its metrics, or by its minReplicas."""
    lowered = settings(headroom_ratio=0.0, scale_down=ScaleDown(decay_ratio=0.05))
    calculate = calculate_predictive(lowered, "chat", targets=(GATEWAY,), writes_sizes=outputs == "scale")
    policy = RecommendationPolicy("chat", "predictive", targets=(GATEWAY,))
    memory = decide(policy, calculate, inputs(load(1000.0)), Memory(last=LastValue(10, NOW, NOW)), NOW).memory
    observed, known = replace(load(800.0), time=NOW + seconds), {GATEWAY: Observed(TargetState(100), NOW + seconds)}
    found = decide(policy, calculate, inputs(observed, targets=known), memory, NOW + seconds).record
    assert found.replicas == size


@pytest.mark.parametrize(
    ("states", "remembers"),
    [
        ({GATEWAY: Observed(None, NOW), OTHER: Observed(None, NOW)}, False),
        ({GATEWAY: Observed(None, NOW), OTHER: Unknown("forbidden")}, True),
        ({GATEWAY: Observed(None, NOW)}, False),
        ({}, True),
    ],
    ids=["none exists", "one is unknown", "it is decided alone", "none is looked up"],
)
def test_a_size_is_forgotten_only_if_certainly_no_target_exists(
    states: dict[TargetReference, Any],
    remembers: bool,  # noqa: FBT001 - a column of the table
) -> None:
    targets = (GATEWAY, OTHER)
    calculate = calculate_predictive(settings(), "chat", targets=targets, writes_sizes=True)
    known = {each: Observed(TargetState(20), NOW) for each in targets}
    memory = Memory(own=calculate(inputs(load(2000.0), targets=known), Memory(), NOW).own)
    after = calculate(inputs(load(2000.0), targets=states), memory, NOW + 10.0).own
    assert (restore_memory(after).capacity is not None) == remembers


def test_each_target_of_for_each_has_the_load_of_its_own_series() -> None:
    given = Inputs(loads={"chat": {GATEWAY: load(100.0, 300.0), OTHER: load(100.0, 900.0)}})
    sizes = [calculate_predictive(settings(), "chat", each)(given, Memory(), NOW).replicas for each in (GATEWAY, OTHER)]
    assert sizes == [3, 9]


def test_the_size_is_held_while_a_query_freezes_it() -> None:
    frozen = settings(freeze_unless="up")
    policy, memory = RecommendationPolicy("chat", "predictive"), Memory(last=LastValue(20, NOW - 10, NOW - 10))
    calculate = calculate_predictive(frozen, "chat")
    for gate in (Observed(0.0, NOW), Unknown("no value")):
        found = decide(policy, calculate, inputs(load(100.0), queries={"up": gate}), memory, NOW).record
        assert (found.status, found.replicas) == (Status.HELD, 20)
        assert "freezeUnless" in found.message
    found = decide(policy, calculate, inputs(load(1950.0), queries={"up": Observed(1.0, NOW)}), memory, NOW).record
    assert found.status is Status.OK


def test_capacity_decays_from_one_decision_to_the_next_through_its_memory() -> None:
    calculate = calculate_predictive(settings(scale_down=ScaleDown(decay_ratio=0.05, window_seconds=0.0)), "chat")
    policy, memory, sizes = RecommendationPolicy("chat", "predictive"), Memory(last=LastValue(20, NOW, NOW)), []
    for poll in range(4):
        decision = decide(policy, calculate, inputs(load(100.0)), memory, NOW + 10.0 * poll)
        memory = decision.memory
        sizes.append(decision.record.replicas)
    assert sizes == [20, 19, 19, 18]


def test_polls_every_five_minutes_are_no_gap_in_which_capacity_hardly_decays() -> None:
    calculate = calculate_predictive(settings(scale_down=ScaleDown(decay_ratio=0.05, window_seconds=0.0)), "chat")
    refresh = Delay(300.0, DelaySource.MEASURED)
    policy, memory, sizes = RecommendationPolicy("chat", "predictive"), Memory(last=LastValue(20, NOW, NOW)), []
    for poll in range(2):
        now = NOW + 300.0 * poll
        observed = replace(load(100.0, delays=ControlDelays(refresh, refresh, refresh)), time=now)
        decision = decide(policy, calculate, inputs(observed), memory, now)
        memory = decision.memory
        sizes.append(decision.record.replicas)
    assert sizes == [20, math.ceil(20 * 0.95**30)]


def test_a_frozen_recommendation_without_memory_keeps_the_present_size() -> None:
    known = {GATEWAY: Observed(TargetState(12), NOW)}
    calculate = calculate_predictive(settings(freeze_unless="up"), "chat", targets=(GATEWAY,))
    assert calculate(inputs(load(100.0), targets=known), Memory(), NOW).replicas == 12


def test_full_pods_need_another_pod_although_the_total_would_fit() -> None:
    pods = (PodConnections(100.0, is_ready=False), PodConnections(100.0, is_ready=False))
    connections = settings(connections=Connections(100), headroom_ratio=0.0)
    found = calculate_predictive(connections, "chat")(inputs(load(200.0, pods=pods)), Memory(), NOW)
    assert (found.replicas, found.binding) == (3, "connections")


def test_a_pod_that_was_full_has_no_room_until_its_readiness_probe_lets_clients_in_again() -> None:
    policy = RecommendationPolicy("chat", "predictive")
    calculate = calculate_predictive(settings(connections=Connections(100), headroom_ratio=0.0), "chat")
    memory, found = Memory(), []
    for poll, held in enumerate((100.0, 97.0, 95.0, 94.0, 97.0)):
        pods = tuple(PodConnections(held, is_ready=held < 100.0, name=name) for name in ("a", "b"))
        given = inputs(replace(load(2 * held, pods=pods), time=NOW + 10 * poll))
        decision = decide(policy, calculate, given, memory, NOW + 10 * poll)
        memory = decision.memory
        found.append(next((each.detail for each in decision.record.steps if each.step == "connections"), ""))
    assert ["2 full" in each for each in found] == [True, True, True, False, False]


def test_sessions_are_measured_on_a_pod_that_was_full_until_it_takes_new_ones() -> None:
    policy = RecommendationPolicy("chat", "predictive")
    calculate = calculate_predictive(settings(connections=Connections(100), scale_down=ScaleDown(None, 0.0)), "chat")
    memory = Memory()
    for poll, held in enumerate((100.0, 99.0, 97.0, 90.0)):
        pods = (PodConnections(held, is_ready=held < 100.0, name="a"),)
        given = inputs(replace(load(held, pods=pods), time=NOW + 10 * poll))
        memory = decide(policy, calculate, given, memory, NOW + 10 * poll).memory
    assert restore_memory(memory.own).sessions == SessionMemory((), 10 * 99.5 + 10 * 98.0, 3.0)
