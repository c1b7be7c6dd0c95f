from __future__ import annotations

import pytest

from recommender.kinds.predictive.policy.load_situation import LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of
from recommender.kinds.predictive.predictive_settings import Override, Schedule
from tests.recommender.kinds.predictive.policy.policy_harness import NOW, forecast, gently, polls, settings, sizes

ALWAYS = Schedule("* * * * *", "UTC", 3600.0, 7)
GATED = {"freeze_unless": 'up{job="backend"}'}


@pytest.mark.parametrize(
    ("changes", "load", "replicas", "binding"),
    [
        ({"min_replicas": 3}, 0.0, 3, "min"),
        ({"max_replicas": 4}, 250_000.0, 4, "max"),
        ({"schedules": (ALWAYS,)}, 0.0, 7, "schedule"),
        ({"schedules": (ALWAYS,)}, 250_000.0, 10, "quantile/forecast"),
        ({"override": Override(2, NOW + 1)}, 250_000.0, 2, "override"),
        ({"override": Override(20, NOW + 1)}, 250_000.0, 20, "override"),
        ({"override": Override(20, NOW)}, 250_000.0, 10, "quantile/forecast"),
        # Each overrules those before it.
        ({"schedules": (ALWAYS,), "override": Override(2, NOW + 1)}, 0.0, 2, "override"),
        ({"override": Override(2, NOW + 1), "min_replicas": 3}, 0.0, 3, "min"),
        ({"override": Override(20, NOW + 1), "max_replicas": 4}, 0.0, 4, "max"),
        ({"schedules": (ALWAYS,), "max_replicas": 4}, 0.0, 4, "max"),
    ],
)
def test_bounds_schedules_and_overrides_overrule_the_forecast(
    changes: dict[str, object], load: float, replicas: int, binding: str
) -> None:
    found = size_of(settings(**changes), LoadSituation(load, forecast(load)), PolicyMemory(), NOW)
    assert (found.replicas, found.binding) == (replicas, binding)


def test_after_an_override_capacity_decays_gradually() -> None:
    policy = settings(scale_down=gently(), override=Override(100, NOW + 10))
    assert sizes(polls(policy, [0.0, 0.0, 0.0])) == [100, 95, 91]


@pytest.mark.parametrize("gate", [None, 0.0, float("nan")])
def test_the_last_size_is_kept_while_the_freeze_query_is_not_true(gate: float | None) -> None:
    policy = settings(**GATED)
    open_gate = LoadSituation(250_000.0, forecast(250_000.0), gate=1.0)
    before = size_of(policy, open_gate, PolicyMemory(), NOW)
    for load in (0.0, 2_500_000.0):
        closed = LoadSituation(load, forecast(load), gate=gate)
        found = size_of(policy, closed, before.memory, NOW + 600)
        assert found.replicas == 10
        assert found.hold.startswith("the query of freezeUnless")


@pytest.mark.parametrize("load", [None, float("nan"), float("inf")])
def test_the_last_size_is_kept_while_the_load_is_unknown(load: float | None) -> None:
    before = polls(settings(), [250_000.0])[-1]
    found = size_of(settings(), LoadSituation(load, forecast(0.0)), before.memory, NOW + 600)
    assert (found.replicas, found.binding) == (10, "held")
    assert found.hold == "the load is unknown: 10 is kept"


def test_the_last_published_size_is_kept() -> None:
    before = polls(settings(), [250_000.0])[-1]
    situation = LoadSituation(None, current_replicas=30, last_replicas=12)
    assert size_of(settings(), situation, before.memory, NOW + 10).replicas == 12
    assert size_of(settings(), LoadSituation(None, current_replicas=30), PolicyMemory(), NOW).replicas == 30


def test_bounds_hold_while_the_size_is_frozen() -> None:
    before = polls(settings(), [250_000.0])[-1]
    frozen = LoadSituation(None)
    for changes, replicas in (
        ({"max_replicas": 4}, 4),
        ({"schedules": (Schedule("* * * * *", "UTC", 60.0, 12),)}, 12),
        ({"override": Override(3, NOW + 60)}, 3),
    ):
        assert size_of(settings(**changes), frozen, before.memory, NOW + 10).replicas == replicas


def test_without_a_load_or_an_earlier_size_there_is_no_size() -> None:
    found = size_of(settings(), LoadSituation(None), PolicyMemory(), NOW)
    assert (found.replicas, found.steps, found.binding) == (None, (), None)
    assert found.hold == "the load is unknown, and no earlier size is known"


def test_an_override_needs_neither_load_nor_memory() -> None:
    found = size_of(settings(override=Override(3, NOW + 60)), LoadSituation(None), PolicyMemory(), NOW)
    assert (found.replicas, found.binding) == (3, "override")


def test_capacity_does_not_collapse_after_a_freeze() -> None:
    policy = settings(scale_down=gently(), **GATED)
    memory = PolicyMemory()
    found = []
    for second in range(0, 620, 10):
        load = 2_500_000.0 if second == 0 else 0.0
        gate = 0.0 if 0 < second < 600 else 1.0
        found.append(size_of(policy, LoadSituation(load, forecast(load), gate=gate), memory, NOW + second))
        memory = found[-1].memory
    assert sizes(found)[1:] == [100] * 59 + [95, 91]
