from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.kinds.predictive.policy.load_situation import LoadForecast, LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of
from recommender.kinds.predictive.predictive_settings import Connections, PredictiveSettings, ScaleDown
from recommender.kinds.predictive.simulation.scale_down_limits import held_steps, scale_down_limits
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, simulate

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

PER_REPLICA = 10.0
CONNECTIONS = Connections(limit=10)
loads = st.lists(st.integers(0, 1000).map(float), min_size=2, max_size=60)


def fleet(step_seconds: float = 60.0, least: int = 1) -> FleetSettings:
    return FleetSettings(step_seconds, 180.0, PER_REPLICA, min_replicas=least)


def asked_replicas(
    desired: FloatArray, load: FloatArray, settings: PredictiveSettings, fleet: FleetSettings
) -> FloatArray:
    """Return the requested replicas for desired ones and the observed load; all have the shape (steps,)."""
    limits = scale_down_limits(settings, load, fleet)
    return simulate(desired, fleet).asked if limits is None else limits.ask(desired, fleet)


def asked(load: FloatArray, settings: PredictiveSettings, step_seconds: float = 60.0) -> list[float]:
    desired = desired_replicas(load, PER_REPLICA)
    found: list[float] = asked_replicas(desired, load, settings, fleet(step_seconds)).tolist()
    return found


def test_without_scale_down_rules_the_simulation_is_unchanged() -> None:
    load, settings = np.array([100.0, 50.0, 10.0] * 20), PredictiveSettings(headroom_ratio=0.1)
    assert scale_down_limits(settings, load, fleet()) is None
    assert asked(load, settings) == simulate(desired_replicas(load, PER_REPLICA), fleet()).asked.tolist()


@pytest.mark.parametrize("step_seconds", [1.0, 10.0, 60.0, 300.0, 1800.0])
def test_decay_is_the_same_for_every_step(step_seconds: float) -> None:
    load = np.array([1000.0] + [0.0] * 30)
    found = asked(load, PredictiveSettings(headroom_ratio=0.0, scale_down=ScaleDown(0.05, 0.0)), step_seconds)
    for place, replicas in enumerate(found):
        assert replicas == max(1, math.ceil(100 * 0.95 ** (place * step_seconds / 10) - 1e-6))


def test_the_load_and_its_reserve_are_always_requested() -> None:
    load = np.array([100.0, 95.0, 81.0, 91.0])
    settings = PredictiveSettings(headroom_ratio=0.1, scale_down=ScaleDown(None, 0.0))
    found = asked_replicas(np.ones(4), load, settings, fleet())
    assert found.tolist() == [11, 11, 9, 11]


def test_a_drop_within_a_minute_is_held() -> None:
    load = np.array([100.0, 100.0, 60.0, 60.0, 60.0, 60.0])
    assert held_steps(CONNECTIONS, load, 60.0).tolist() == [False, False, True, True, False, False]
    assert held_steps(CONNECTIONS, load, 300.0).tolist() == [False] * 6
    settings = PredictiveSettings(headroom_ratio=0.0, scale_down=ScaleDown(None, 0.0), connections=CONNECTIONS)
    assert asked(load, settings) == [10, 10, 10, 10, 6, 6]


def test_unknown_steps_neither_begin_nor_end_a_hold() -> None:
    load = np.array([100.0, 50.0, np.nan, 50.0, np.nan, 50.0])
    assert held_steps(CONNECTIONS, load, 60.0).tolist() == [False, True, True, False, False, False]
    load[2:] = np.nan
    assert held_steps(CONNECTIONS, load, 60.0).tolist() == [False, True, True, False, False, False]


def test_the_size_is_held_while_the_load_is_unknown() -> None:
    load = np.array([1000.0, np.nan, np.nan, np.nan, 0.0])
    settings = PredictiveSettings(headroom_ratio=0.0, scale_down=ScaleDown(0.05, 0.0))
    found = asked_replicas(np.array([100.0, 1.0, 1.0, 1.0, 1.0]), load, settings, fleet(10.0))
    assert found.tolist() == [100, 100, 100, 100, 95]


def test_open_sessions_slow_the_scale_down() -> None:
    settings = PredictiveSettings(headroom_ratio=0.0, scale_down=ScaleDown(0.05, 0.0, 1800.0))
    found = asked(np.array([1000.0] + [10.0] * 30), settings)
    assert found == [math.ceil(100 * math.exp(-60 * step / 1800) - 1e-6) for step in range(31)]
    assert asked(np.array([1000.0] + [0.0] * 30), settings)[5] == math.ceil(100 * 0.95**30)


@given(
    loads,
    st.none()
    | st.builds(
        ScaleDown,
        st.sampled_from([None, 0.05, 0.5]),
        st.sampled_from([0.0, 120.0, 300.0]),
        st.sampled_from([None, 600.0]),
    ),
    st.sampled_from([None, CONNECTIONS]),
    st.sampled_from([10.0, 60.0]),
)
@example([100.0] + [80.0] * 9, None, CONNECTIONS, 60.0)
@examples(max_examples=60)
def test_a_backtest_requests_the_same_sizes_as_production(
    series: list[float], scale_down: ScaleDown | None, connections: Connections | None, step_seconds: float
) -> None:
    settings = PredictiveSettings(load_per_replica=PER_REPLICA, scale_down=scale_down, connections=connections)
    memory, expected = PolicyMemory(), []
    for step, value in enumerate(series):
        situation = LoadSituation(value, LoadForecast(value, 1.2 * value, "quantile"))
        sized = size_of(settings, situation, memory, 1e6 + step * step_seconds)
        memory = sized.memory
        expected.append(sized.replicas)
    load = np.array(series)
    found = asked_replicas(desired_replicas(1.2 * load, PER_REPLICA), load, settings, fleet(step_seconds))
    assert found.tolist() == expected


@given(loads, st.integers(1, 50))
@examples(max_examples=30)
def test_later_loads_do_not_change_earlier_sizes(series: list[float], now: int) -> None:
    settings = PredictiveSettings(scale_down=ScaleDown(0.05, 120.0, 600.0), connections=CONNECTIONS)
    load = np.array(series)
    poisoned = load.copy()
    poisoned[now:] = 1e6
    assert asked(poisoned, settings)[:now] == asked(load, settings)[:now]
