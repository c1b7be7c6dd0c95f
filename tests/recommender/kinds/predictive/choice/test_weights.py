"""Weights follow losses, and the mixture's loss stays near that of the best expert, even when that expert changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.choice.weights import (
    BILL,
    CONFIGURED,
    REFUTED,
    UNPROVEN,
    acting_weights,
    after_losses,
    headroom_in,
    odds_of_models,
    prior_weights,
    proof_levels,
    shared_weights,
    weighted_medians,
)

RATE, SHARE = 0.5, 0.01
PRIOR = np.full(3, 1 / 3)


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=200))
def test_the_mixture_loses_little_more_than_the_best_expert(losses: list[list[float]]) -> None:
    weights, lost = PRIOR, 0.0
    for each in losses:
        found = np.array(each)
        lost += float(weights @ found)
        weights = shared_weights(after_losses(weights, found, RATE), PRIOR, SHARE)
        assert abs(weights.sum() - 1) < 1e-9
    best = float(np.array(losses).sum(axis=0).min())
    # Each step keeps at least (1 - share) of the best one's weight, so its part of the bound grows by -log(1 - share).
    allowed = (np.log(3) - len(losses) * np.log1p(-SHARE)) / RATE + RATE * len(losses) / 8
    assert lost <= best + allowed + 1e-9


def test_an_expert_that_was_wrong_for_long_leads_again_within_days() -> None:
    weights = PRIOR
    for _ in range(2000):
        weights = shared_weights(after_losses(weights, np.array([0.0, 1.0, 1.0]), RATE), PRIOR, SHARE)
    assert weights[0] > 0.95
    for _ in range(30):
        weights = shared_weights(after_losses(weights, np.array([1.0, 0.0, 1.0]), RATE), PRIOR, SHARE)
    assert weights[1] > 0.8


def test_a_new_expert_starts_with_its_prior_and_a_removed_one_has_no_weight() -> None:
    np.testing.assert_allclose(
        shared_weights(np.array([0.2, 0.0, 0.8]), np.array([0.25, 0.25, 0.5]), 0.0), [0.15, 0.25, 0.6]
    )
    np.testing.assert_allclose(
        shared_weights(np.array([0.2, 0.4, 0.4]), np.array([0.5, 0.0, 0.5]), 0.0), [1 / 3, 0, 2 / 3]
    )
    np.testing.assert_allclose(shared_weights(np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.0, 0.5]), 0.0), [0.5, 0, 0.5])


def test_losses_of_any_size_leave_weights_that_sum_to_one() -> None:
    found = after_losses(np.array([0.5, 0.5, 0.0]), np.array([1e6, -1e6, 0.0]), RATE)
    np.testing.assert_allclose(found, [0.0, 1.0, 0.0])
    found = after_losses(np.array([0.5, 0.5, 0.0]), np.array([1e6, 1e6, 0.0]), RATE)
    np.testing.assert_allclose(found, [0.5, 0.5, 0.0])


@pytest.mark.parametrize(
    ("level", "odds", "tried", "expected"),
    [
        pytest.param(UNPROVEN, 5.0, 0.1, BILL, id="proven at the cost of the bill"),
        pytest.param(UNPROVEN, 4.9, 4.9, UNPROVEN, id="proven at neither cost"),
        pytest.param(UNPROVEN, 2.3, 5.0, BILL, id="proven at the configured cost, and half of it at the other"),
        pytest.param(
            UNPROVEN, 2.2, 5.0, CONFIGURED, id="proven at the configured cost, and less than half at the other"
        ),
        pytest.param(UNPROVEN, 0.1, 5.0, CONFIGURED, id="proven there, with a loss at the cost of the bill"),
        pytest.param(UNPROVEN, 0.0, 0.0, UNPROVEN, id="no model takes part"),
        pytest.param(CONFIGURED, 4.9, 0.3, CONFIGURED, id="a part is lost again at the configured cost"),
        pytest.param(CONFIGURED, 2.3, 5.0, BILL, id="half of the proof has come at the cost of the bill"),
        pytest.param(CONFIGURED, 5.0, 0.1, BILL, id="proven at the cost of the bill as well"),
        pytest.param(CONFIGURED, 4.9, 0.1, UNPROVEN, id="all is lost again at the configured cost"),
        pytest.param(BILL, 0.3, 0.0, BILL, id="a part is lost again"),
        pytest.param(BILL, 0.1, 50.0, REFUTED, id="all is lost again, whatever it was at the configured cost"),
        pytest.param(REFUTED, 2.2, 50.0, REFUTED, id="the bill stays when models are proven at the configured cost"),
        pytest.param(REFUTED, 5.0, 0.1, BILL, id="proven once more at the cost of the bill"),
    ],
)
def test_models_act_at_the_cost_at_which_they_are_proven_until_they_are_refuted(
    level: int, odds: float, tried: float, expected: int
) -> None:
    found = proof_levels(np.array([level]), np.array([odds]), np.array([tried]), enough=5.0)
    assert found.tolist() == [expected]


def test_odds_of_all_models_are_relative_to_their_prior() -> None:
    prior = np.array([[0.25, 0.25, 0.5], [0.0, 0.0, 1.0]])
    weights = np.array([[0.6, 0.2, 0.2], [0.0, 0.0, 1.0]])
    assert odds_of_models(weights, prior).tolist() == pytest.approx([4.0, 0.0])


def test_models_that_take_part_share_what_headroom_leaves() -> None:
    takes_part = np.array([[True, False, True], [False, False, False]])
    np.testing.assert_allclose(prior_weights(takes_part, 0.6), [[0.2, 0.0, 0.2, 0.6], [0.0, 0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("level", "acting"),
    [
        pytest.param(UNPROVEN, [0.0, 0.0, 0.0, 1.0], id="unproven"),
        pytest.param(CONFIGURED, [0.75, 0.0, 0.0, 0.25], id="proven at the configured cost"),
        pytest.param(BILL, [0.75, 0.0, 0.0, 0.25], id="proven at the cost of the bill"),
        pytest.param(REFUTED, [0.0, 0.0, 0.0, 1.0], id="refuted"),
    ],
)
def test_proven_models_act_with_weights_above_their_prior_and_the_least(level: int, acting: list[float]) -> None:
    weights, prior = np.array([[0.6, 0.15, 0.05, 0.2]]), np.array([[0.25, 0.15, 0.02, 0.58]])
    np.testing.assert_allclose(acting_weights(weights, prior, np.array([level]), least=0.05), [acting])


def test_headroom_acts_alone_in_the_marked_series() -> None:
    acting = np.array([[0.5, 0.2, 0.3], [0.5, 0.2, 0.3]])
    assert headroom_in(np.array([True, False]), acting).tolist() == [[0.0, 0.0, 1.0], [0.5, 0.2, 0.3]]


@pytest.mark.parametrize(
    ("values", "weights", "median"),
    [
        pytest.param([0.3, 0.1, 0.2], [1.0, 1.0, 1.0], 0.2, id="the middle one of equal weights"),
        pytest.param([0.1, 0.3], [1.0, 1.0], 0.2, id="between two"),
        pytest.param([0.3, 0.1], [0.25, 0.75], 0.15, id="nearer to the larger weight"),
        pytest.param([0.1, 9.0, 0.1], [0.45, 0.1, 0.45], 0.1, id="a single expensive one raises nothing"),
        pytest.param([0.1, 0.4, 0.2], [0.0, 0.0, 1.0], 0.2, id="one alone"),
        pytest.param([0.3], [1.0], 0.3, id="one expert"),
    ],
)
def test_the_weighted_median_of_experts(values: list[float], weights: list[float], median: float) -> None:
    found = weighted_medians(np.array([values, values]), np.array([weights, weights]))
    np.testing.assert_allclose(found, [median, median])
