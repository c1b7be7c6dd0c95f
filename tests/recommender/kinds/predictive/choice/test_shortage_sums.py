"""Sums of cost and shortage over stretches of the past, and what lies between the policies that were simulated."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.choice.decided import DecidedWeights, with_beginner
from recommender.kinds.predictive.choice.experts import SCALES, Experts
from recommender.kinds.predictive.choice.options import BEGINNER
from recommender.kinds.predictive.choice.shortage_sums import Family, Period, ShortageScales
from recommender.kinds.predictive.simulation.serving import FleetSettings

PERIOD = Period(
    np.array([0.0, 1.0, 3.0]),
    np.array(
        [
            [[10.0, 6.0, 3.0], [20.0, 2.0, 1.0], [40.0, 0.0, 0.0]],
            [[5.0, 4.0, 4.0], [5.0, 4.0, 4.0], [9.0, 0.0, 0.0]],
        ]
    ),
)
"""Two families: each number costs more than the one before, and the first two cost the same."""


@pytest.mark.parametrize(
    ("number", "sums"),
    [
        pytest.param(-1.0, [10.0, 6.0, 3.0], id="below the first"),
        pytest.param(0.5, [15.0, 4.0, 2.0], id="between two"),
        pytest.param(1.0, [20.0, 2.0, 1.0], id="simulated"),
        pytest.param(2.0, [30.0, 1.0, 0.5], id="between two that are farther apart"),
        pytest.param(3.0, [40.0, 0.0, 0.0], id="the last"),
        pytest.param(9.0, [40.0, 0.0, 0.0], id="above the last"),
    ],
)
def test_sums_are_interpolated_between_simulated_policies(number: float, sums: list[float]) -> None:
    assert PERIOD.at(number)[0].tolist() == sums
    assert PERIOD.at(np.array([[number, 0.0], [0.0, number]]))[0, 0].tolist() == sums


@pytest.mark.parametrize(
    ("costs", "numbers"),
    [
        pytest.param([15.0, 7.0], [0.5, 2.0], id="between two"),
        pytest.param([20.0, 9.0], [1.0, 3.0], id="simulated"),
        pytest.param([10.0, 5.0], [0.0, 1.0], id="the last of those with this cost"),
        pytest.param([1.0, 1.0], [0.0, 0.0], id="all cost more"),
        pytest.param([99.0, 99.0], [3.0, 3.0], id="all cost less"),
    ],
)
def test_the_policy_of_a_cost_is_interpolated_between_simulated_policies(
    costs: list[float], numbers: list[float]
) -> None:
    assert PERIOD.at_cost(np.array(costs)).tolist() == numbers
    assert PERIOD.at_cost(np.array([costs, costs])).tolist() == [numbers, numbers]


def test_a_policy_that_costs_the_same_for_every_number_has_the_last_number_from_its_cost_on() -> None:
    free = Period(np.array([0.0, 1.0, 2.0]), np.full((1, 3, 3), 5.0))
    assert [free.at_cost(np.array([cost])).tolist() for cost in (4.0, 5.0, 6.0)] == [[0.0], [2.0], [2.0]]


def test_each_expert_is_judged_from_its_own_beginning() -> None:
    decided = np.arange(5.0)[:, np.newaxis, np.newaxis]
    sums = np.broadcast_to((decided * np.array([[1.0, 10.0]]))[..., np.newaxis, np.newaxis], (5, 1, 2, 2, 3))
    family = Family(np.array([0.0, 1.0]), sums)
    assert family.stretch(np.array([[1, 3]]), 4).sums[0, :, 0, 0].tolist() == [3.0, 10.0]
    assert family.stretch(1, 4).sums[0, :, 0, 0].tolist() == [3.0, 30.0]


def test_sums_are_those_up_to_each_decision() -> None:
    load, fleet = np.array([10.0, np.nan, 20.0, 30.0]), FleetSettings(60.0, 60.0, 10.0)
    scales = ShortageScales(load, np.full(4, np.inf), fleet, every=2)
    assert scales.load_replicas().tolist() == [1.0, 3.0]
    later = ShortageScales(load, scales.limits, fleet, every=2, first=1)
    assert later.load_replicas().tolist() == [1.0, 6.0]
    assert (scales.seconds_between, later.seconds_between) == (120.0, 120.0)


def test_the_share_of_forecasts_at_their_bound_counts_from_the_beginning_of_each_expert() -> None:
    """Decisions are three steps apart; the first expert is at its bound at every step, the other at every third."""
    bound = np.arange(1, 5)[:, np.newaxis, np.newaxis] * np.array([[3.0, 1.0]])
    experts = Experts(("a", "b"), np.array([[0, 1]]), Family(SCALES, np.zeros((4, 1, 2, len(SCALES), 3))), bound)
    begins = np.broadcast_to(np.array([[0, 1]]), (4, 1, 2))
    assert experts.bound_ratios(begins, every=3)[3, 0].tolist() == pytest.approx([1.0, 1 / 3])
    assert experts.bound_ratios(begins, every=3)[0, 0, 0] == 0.0


@pytest.mark.parametrize(
    ("begins", "began", "newest"),
    [
        pytest.param([0, 7, 9], 0, 7, id="comes now"),
        pytest.param([0, 8, 9], 0, 0, id="comes with the next decision"),
        pytest.param([0, 9, 2], 0, 0, id="only the beginner has come since"),
        pytest.param([-5, 9, 9], -3, -3, id="before the series"),
    ],
)
def test_the_newest_model_is_the_last_one_that_has_joined_besides_the_beginner(
    begins: list[int], began: int, newest: int
) -> None:
    names, sums = ("a", "b", BEGINNER), np.zeros((8, 1, 3, len(SCALES), 3))
    experts = Experts(names, np.array([begins]), Family(SCALES, sums), np.zeros((8, 1, 3)))
    assert experts.newest(7, np.array([began])).tolist() == [newest]


def test_the_beginner_acts_unscaled_until_a_model_has_been_judged() -> None:
    """In the second series, a model has been judged."""
    weights = np.array([[[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]])
    decided = DecidedWeights(weights, weights, np.full((1, 2, 2), 0.3), np.full((1, 2), 0.1), np.zeros((1, 2), bool))
    found = with_beginner(decided, ("a", BEGINNER))
    assert found.acting.tolist() == [[[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]]
    assert found.sizes.tolist() == [[[0.3, 1.0], [0.3, 0.3]]]
    assert with_beginner(decided, ("a", "b")) is decided
