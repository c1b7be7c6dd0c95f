from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures, measure
from recommender.kinds.predictive.simulation.serving import Fleet, FleetSettings, changed_steps

SETTINGS = FleetSettings(step_seconds=900.0, startup_seconds=0.0, load_per_replica=10.0)


def measures_of(load: list[float], asked: list[float], serving: list[float], judged: list[bool]) -> Measures:
    fleet = Fleet(np.array(asked), np.array(serving), changed_steps(np.array(asked)))
    return measure(JudgedLoad(np.array(load), np.array(judged, dtype=bool), SETTINGS), fleet)


def test_measures_match_a_table_computed_by_hand() -> None:
    # needed 1, 2, 4, 3; serving 2, 2, 3, 4
    found = measures_of([10, 20, 40, 30], [2, 3, 4, 4], [2, 2, 3, 4], [True] * 4)
    assert found.replica_hours == (2 + 3 + 4 + 4) / 4
    assert found.tau_under_percent == 25
    assert found.theta_under_percent == pytest.approx(100 * (1 / 4) / 4)
    assert found.tau_over_percent == 50
    assert found.theta_over_percent == pytest.approx(100 * (1 / 1 + 1 / 3) / 4)
    assert found.lost_load_ratio == pytest.approx(10 / 100)
    assert (found.changes, found.worst_shortage_replicas) == (2, 1)


def test_steps_that_are_not_judged_or_unknown_do_not_count() -> None:
    found = measures_of([500, 20, math.nan, 30], [9, 2, 9, 4], [1, 2, 1, 4], [False, True, True, True])
    assert found == Measures(
        replica_hours=1.5,
        tau_under_percent=0,
        theta_under_percent=0,
        tau_over_percent=50,
        theta_over_percent=100 * (1 / 3) / 2,
        lost_load_ratio=0,
        changes=2,
        worst_shortage_replicas=0,
    )


@pytest.mark.parametrize("load", [[math.nan, math.nan], []])
def test_without_a_known_step_nothing_is_measured(load: list[float]) -> None:
    found = measures_of(load, [2.0] * len(load), [2.0] * len(load), [True] * len(load))
    assert found == Measures(0, 0, 0, 0, 0, 0, 0, 0)


def test_zero_load_has_no_lost_load() -> None:
    assert measures_of([0, 0], [2, 2], [2, 2], [True, True]).lost_load_ratio == 0


@given(st.lists(st.tuples(st.floats(0, 500), st.integers(1, 40)), min_size=1, max_size=40))
def test_measures_match_a_loop_over_the_steps(steps: list[tuple[float, int]]) -> None:
    load, serving = [each[0] for each in steps], [float(each[1]) for each in steps]
    found = measures_of(load, serving, serving, [True] * len(steps))
    under = over = lost = 0.0
    for value, replicas in zip(load, serving, strict=True):
        needed = max(1, math.ceil(value / 10 - 1e-9))
        under += max(needed - replicas, 0) / needed
        over += max(replicas - needed, 0) / needed
        lost += max(value - 10 * replicas, 0)
    assert found.theta_under_percent == pytest.approx(100 * under / len(steps))
    assert found.theta_over_percent == pytest.approx(100 * over / len(steps))
    assert found.lost_load_ratio == pytest.approx(lost / sum(load) if sum(load) else 0)
