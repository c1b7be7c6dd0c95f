from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.simulation.serving import (
    FleetSettings,
    desired_replicas,
    needed_replicas,
    simulate,
    sliding_maximum,
)


def settings_of(step: float, startup: float, *, least: int = 2, most: int | None = None) -> FleetSettings:
    return FleetSettings(step, startup, load_per_replica=10.0, min_replicas=least, max_replicas=most)


@pytest.mark.parametrize(
    ("load", "needed"),
    [(0.0, 1), (0.1, 1), (10.0, 1), (10.1, 2), (0.1 + 0.2, 1), (20.000000000001, 2), (math.nan, None)],
)
def test_at_least_one_replica_is_needed_and_rounding_errors_need_none(load: float, needed: int | None) -> None:
    found = needed_replicas(np.array([load]), 10.0)[0]
    assert math.isnan(found) if needed is None else found == needed


def test_a_step_without_a_capacity_keeps_the_last_one() -> None:
    capacity = np.array([math.nan, 11.0, math.nan, 30.0, math.nan])
    assert desired_replicas(capacity, 10.0).tolist() == [0, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("step", "startup", "lag"), [(60, 180, 4), (60, 181, 5), (300, 180, 2), (10, 180, 19), (1800, 1800, 2), (60, 0, 1)]
)
def test_a_pod_serves_after_its_start_up_and_one_step(step: float, startup: float, lag: int) -> None:
    desired = np.array([2.0] * 5 + [7.0] * 40)
    serving = simulate(desired, settings_of(step, startup)).serving
    assert int(np.argmax(serving == 7)) == 5 + lag


def test_after_the_window_capacity_goes_down_at_once() -> None:
    fleet = simulate(np.array([7.0, *[2.0] * 9]), settings_of(60, 180))
    assert fleet.asked.tolist() == [7] * 5 + [2] * 5
    assert fleet.serving.tolist() == fleet.asked.tolist()
    assert fleet.changes.tolist() == [0] * 5 + [1] + [0] * 4


def test_desired_replicas_stay_within_the_bounds() -> None:
    fleet = simulate(np.array([0.0, 5.0, 50.0]), settings_of(600, 0, least=3, most=9))
    assert fleet.asked.tolist() == [3, 5, 9]


def test_other_scale_down_limits_replace_the_window() -> None:
    fleet = simulate(np.array([9.0, 2.0, 2.0]), settings_of(60, 0), lambda bounded, _settings: bounded)
    assert fleet.asked.tolist() == [9, 2, 2]


def naive(desired: list[float], settings: FleetSettings) -> tuple[list[float], list[float]]:
    """Follow the definition step by step: return the requested and the serving replicas of each step."""
    bounded = [min(max(each, settings.min_replicas), settings.max_replicas or math.inf) for each in desired]
    asked = [max(bounded[max(0, at - settings.down_window_steps + 1) : at + 1]) for at in range(len(desired))]
    lag = math.ceil(settings.startup_seconds / settings.step_seconds) + 1
    # A replica serves if it has been requested in each step since it began to start.
    return asked, [min(asked[max(0, at - lag) : at + 1]) for at in range(len(desired))]


@given(
    st.lists(st.integers(0, 30).map(float), min_size=1, max_size=60),
    st.sampled_from([10.0, 60.0, 300.0, 1800.0]),
    st.sampled_from([0.0, 30.0, 180.0, 600.0]),
    st.one_of(st.none(), st.integers(3, 20)),
)
def test_the_simulation_matches_its_definition(
    desired: list[float], step: float, startup: float, most: int | None
) -> None:
    settings = settings_of(step, startup, most=most)
    fleet = simulate(np.array(desired), settings)
    assert (fleet.asked.tolist(), fleet.serving.tolist()) == naive(desired, settings)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=40), st.integers(1, 60))
def test_a_sliding_maximum_is_the_largest_of_the_window(values: list[float], steps: int) -> None:
    expected = [max(values[max(0, at - steps + 1) : at + 1]) for at in range(len(values))]
    assert sliding_maximum(np.array(values), steps).tolist() == expected
