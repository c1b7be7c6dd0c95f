"""One recommendation with `forEach` becomes one decision for each target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.expansion import EachTarget, Expansion, listed_targets
from recommender.decisions.inputs import Inputs
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import Brakes, RecommendationPolicy
from recommender.decisions.record import Status, TargetReference
from recommender.decisions.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.calculation import Calculate
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.loop import Decided

NOW = 1_000_000.0
POLICY = RecommendationPolicy("chat", "predictive")


def target(name: str) -> TargetReference:
    return TargetReference("apps/v1", "Deployment", "shop", name)


def load(value: float, time: float = NOW) -> Observed[LoadInput]:
    return Observed(LoadInput(Prediction(PredictedLoad(value, value, time), "headroom", "")), time)


def remembered(replicas: int, age: float) -> Memory:
    return Memory(last=LastValue(replicas, NOW - age, NOW - age))


def one_replica_for_each_unit(of: TargetReference | None) -> Calculate:
    def calculate(inputs: Inputs, _memory: Memory, _now: float) -> Calculation:
        loads = inputs.loads["chat"]
        found = loads if isinstance(loads, Unknown) else loads[of]
        if isinstance(found, Unknown):
            raise InputMissingError(found.reason, is_refused=found.is_refused)
        if found.value.prediction.load.now < 0:
            raise ZeroDivisionError("one by nothing")
        return Calculation(Replicas(int(found.value.prediction.load.now)), found.time)

    return calculate


def decided(
    loads: LoadInputs | Unknown,
    by_target: dict[TargetReference, Memory] | None = None,
    *,
    max_targets: int = 10,
    policy: RecommendationPolicy = POLICY,
) -> Decided:
    memory = Memory(by_target=by_target or {})
    expansion = Expansion(policy, EachTarget(one_replica_for_each_unit, max_targets))
    listed = listed_targets(loads, memory.by_target, max_targets, NOW)
    return expansion.decide(listed, Inputs(loads={"chat": loads}), memory, NOW, {})


def kept_by(found: Decided) -> Mapping[TargetReference, Memory]:
    assert found.memory is not None
    return found.memory.by_target


def shown(found: Decided) -> dict[str, tuple[str, int | None]]:
    records = [each.record for each in found.decisions]
    return {
        record.each.name if record.each else record.message: (record.status.value, record.replicas)
        for record in records
    }


def test_each_series_becomes_a_record_of_its_target() -> None:
    found = decided({target("b"): load(4.0), target("a"): load(3.0)})
    assert shown(found) == {"a": ("ok", 3), "b": ("ok", 4)}
    records = [each.record for each in found.decisions]
    assert [record.name for record in records] == ["chat", "chat"]
    assert [[str(each.target) for each in record.targets] for record in records] == [
        ["Deployment shop/a"],
        ["Deployment shop/b"],
    ]
    assert {each.name: memory.last.replicas for each, memory in kept_by(found).items() if memory.last} == {
        "a": 3,
        "b": 4,
    }


def test_a_target_that_fails_does_not_affect_others() -> None:
    found = decided({target("a"): load(-1.0), target("b"): Unknown("a sample is NaN"), target("c"): load(5.0)})
    assert shown(found) == {"a": ("error", None), "b": ("stale", None), "c": ("ok", 5)}
    assert found.decisions[1].record.message == "a sample is NaN"


@pytest.mark.parametrize(
    ("age", "status", "is_kept"),
    [
        (30.0, ("held", 7), True),
        (90.0, ("stale", None), True),
        (3700.0, None, True),
        (86_000.0, None, True),
        (86_500.0, None, False),
        (-50.0, ("stale", None), True),
        (-3500.0, ("stale", None), True),
        (-86_400.0, None, False),
    ],
)
def test_a_target_without_a_series_is_held_then_stale_then_forgotten(
    age: float, status: tuple[str, int | None] | None, *, is_kept: bool
) -> None:
    found = decided({target("a"): load(3.0)}, {target("gone"): remembered(7, age)})
    assert shown(found).get("gone") == status
    assert (target("gone") in kept_by(found)) == is_kept


def test_an_unknown_load_holds_recent_targets_and_makes_old_ones_stale() -> None:
    memories = {
        target("fresh"): remembered(3, 30.0),
        target("old"): remembered(4, 400.0),
        target("ended"): remembered(5, 5000.0),
    }
    found = decided(Unknown("Prometheus does not answer"), memories)
    assert shown(found) == {"fresh": ("held", 3), "old": ("stale", None)}
    assert kept_by(found) == memories


@pytest.mark.parametrize(
    ("loads", "sizes"),
    [
        (Unknown("Prometheus does not answer"), {"a": ("ok", 9), "gone": ("ok", 9)}),
        ({target("a"): Unknown("a sample is NaN")}, {"a": ("ok", 9), "gone": ("held", 4)}),
    ],
)
def test_a_calculation_without_load_decides_unless_the_series_has_ended(
    loads: LoadInputs | Unknown, sizes: dict[str, tuple[str, int]]
) -> None:
    memory = Memory(by_target={target("a"): remembered(3, 30.0), target("gone"): remembered(4, 30.0)})
    expansion = Expansion(POLICY, EachTarget(lambda _: lambda _inputs, _memory, now: Calculation(Replicas(9), now)))
    listed = listed_targets(loads, memory.by_target, 10, NOW)
    assert shown(expansion.decide(listed, Inputs(loads={"chat": loads}), memory, NOW, {})) == sizes


def test_a_target_dated_far_ahead_by_a_wrong_clock_does_not_hide_others() -> None:
    known = {target("ahead"): remembered(9, -86_400.0), target("a"): remembered(3, 30.0)}
    assert shown(decided(Unknown("Prometheus does not answer"), known)) == {"a": ("held", 3)}


def test_an_outage_of_more_than_an_hour_still_lists_the_targets_known_at_its_start() -> None:
    memories = {target("a"): remembered(3, 90_000.0), target("ended"): remembered(5, 99_000.0)}
    found = decided(Unknown("Prometheus does not answer"), memories)
    assert shown(found) == {"a": ("stale", None)}
    assert kept_by(found) == memories


@pytest.mark.parametrize(
    ("loads", "message"),
    [
        (Unknown("Prometheus does not answer"), "Prometheus does not answer"),
        ({}, "the query of the load has no series"),
    ],
)
def test_a_recommendation_without_targets_reports_the_reason(loads: LoadInputs | Unknown, message: str) -> None:
    assert shown(decided(loads)) == {message: ("stale", None)}


def test_more_targets_than_allowed_are_left_out_and_counted() -> None:
    loads: LoadInputs = {target(f"web-{number}"): load(2.0) for number in range(5)}
    found = decided(loads, {target("gone"): remembered(7, 30.0)}, max_targets=3)
    assert list(shown(found)) == ["2 of 5 targets are left out: forEach.max is 3", "web-0", "web-1", "web-2"]
    assert found.decisions[0].record.status is Status.ERROR


def test_known_targets_and_those_with_a_load_come_first_if_there_are_too_many() -> None:
    loads: LoadInputs = {
        **{target(f"a{each}"): Unknown("one of too many") for each in range(3)},
        target("web"): load(4.0),
        target("known"): Unknown("its load is NaN"),
    }
    found = decided(loads, {target("known"): remembered(7, 5.0)}, max_targets=2)

    assert set(shown(found)) == {"3 of 5 targets are left out: forEach.max is 2", "known", "web"}


def flood(namespace: str, number: int) -> list[TargetReference]:
    return [replace(target(f"x{each}"), namespace=namespace) for each in range(number)]


@pytest.mark.parametrize("loaded", [True, False])
def test_a_namespace_with_many_new_targets_leaves_room_for_others(loaded: bool) -> None:  # noqa: FBT001
    loads: LoadInputs = {each: load(1.0) if loaded else Unknown("NaN") for each in [*flood("aaa", 9), target("web")]}
    assert "web" in shown(decided(loads, max_targets=3))


def test_ended_targets_of_one_namespace_do_not_hide_those_of_another() -> None:
    ended = {each: remembered(1, 10.0) for each in flood("aaa", 9)}
    found = decided({target("a"): load(1.0)}, {**ended, target("web"): remembered(7, 60.0)}, max_targets=4)
    assert "web" in shown(found)


def test_targets_that_ended_last_are_listed_if_there_is_no_room_for_all() -> None:
    ended = {target(f"z{age}"): remembered(1, float(age)) for age in (50, 40, 30, 20, 10)}
    assert set(shown(decided({target("a"): load(1.0)}, ended, max_targets=3))) == {"a", "z10", "z20"}


def test_memories_of_one_namespace_take_no_room_from_those_of_another() -> None:
    web, hidden = target("web"), {each: remembered(1, 4000.0) for each in flood("aaa", 9)}
    found = decided({target("a"): load(1.0)}, {**hidden, web: remembered(7, 5000.0)}, max_targets=4)
    assert web in kept_by(found)
    assert len(kept_by(found)) == 5


def test_changes_are_remembered_only_if_a_brake_reads_them() -> None:
    before = {target("a"): remembered(7, 10.0)}
    (memory,) = kept_by(decided({target("a"): load(3.0)}, before)).values()
    assert memory.changes == ()
    braked = replace(POLICY, brakes=Brakes(max_changes_per_hour=5))
    (memory,) = kept_by(decided({target("a"): load(3.0)}, before, policy=braked)).values()
    assert memory.changes == (NOW,)


def test_ten_thousand_targets_are_decided_together() -> None:
    loads: LoadInputs = {target(f"web-{number}"): load(float(number % 7)) for number in range(10_000)}
    found = decided(loads, max_targets=10_000)
    assert len(found.decisions) == len(kept_by(found)) == 10_000
    assert [each.record.replicas for each in found.decisions[:1]] == [0]
