"""How far the paid cost moves towards that of the bill, and what is known of models at that cost."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.choice.options import DEFAULT_OPTIONS
from recommender.kinds.predictive.choice.payment import needed_odds, paid_ratio, part_of_way, weights_between

OLD, YOUNG = np.array([False]), np.array([True])


@pytest.mark.parametrize(
    ("wanted", "mean", "excess", "paid"),
    [
        pytest.param(0.15, 0.1, 0.0, 0.15, id="what is wanted"),
        pytest.param(0.9, 0.1, 0.0, 0.2, id="at most twice the mean"),
        pytest.param(0.1, 0.9, 0.0, 0.45, id="at least half of it"),
        pytest.param(0.5, 0.0, 0.0, 0.02, id="a little after nothing"),
        pytest.param(0.15, 0.1, 1.0, 0.1, id="the mean while the record is worse"),
        pytest.param(0.2, 0.1, DEFAULT_OPTIONS.unpaid_ratio / 2, 0.15, id="half of the way at half of the limit"),
    ],
)
def test_the_paid_cost_moves_towards_the_wanted_cost_as_far_as_the_record_allows(
    wanted: float, mean: float, excess: float, paid: float
) -> None:
    found = paid_ratio(np.array([wanted]), np.array([mean]), np.array([excess]), OLD, DEFAULT_OPTIONS)
    assert found[0] == pytest.approx(paid)


def test_in_the_first_week_the_wanted_cost_is_paid_in_full() -> None:
    assert paid_ratio(np.array([0.9]), np.array([0.1]), np.zeros(1), YOUNG, DEFAULT_OPTIONS)[0] == 0.9


def test_the_part_of_the_way_to_the_bill_is_between_0_and_1() -> None:
    paid, configured, bill = np.array([0.1, 0.3, 0.5, 0.9, 0.1]), np.full(5, 0.1), np.array([0.5] * 4 + [0.1])
    np.testing.assert_allclose(part_of_way(paid, configured, bill), [0.0, 0.5, 1.0, 1.0, 1.0])


def test_the_needed_odds_fall_from_half_a_proof_to_its_reversal() -> None:
    np.testing.assert_allclose(needed_odds(np.array([0.0, 1 / 3, 1.0]), 5.0), [np.sqrt(5.0), 1.0, 0.2])


def test_weights_between_two_costs_are_interpolated() -> None:
    tried, weights = np.array([[0.8, 0.0, 0.2]]), np.array([[0.2, 0.0, 0.8]])
    for part, expected in ((0.0, [0.8, 0.0, 0.2]), (0.5, [0.5, 0.0, 0.5]), (1.0, [0.2, 0.0, 0.8])):
        np.testing.assert_allclose(weights_between(tried, weights, np.array([part])), [expected])
