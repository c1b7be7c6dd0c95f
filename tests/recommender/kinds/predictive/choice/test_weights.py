"""Weights follow losses, and the mixture's loss is near that of the best expert, also when that changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.choice.weights import after_losses, shared

RATE, SHARE = 0.5, 0.01
PRIOR = np.full(3, 1 / 3)


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=200))
def test_the_mixture_loses_little_more_than_the_best_expert(losses: list[list[float]]) -> None:
    weights, lost = PRIOR, 0.0
    for each in losses:
        found = np.array(each)
        lost += float(weights @ found)
        weights = shared(after_losses(weights, found, RATE), PRIOR, SHARE)
        assert abs(weights.sum() - 1) < 1e-9
    best = float(np.array(losses).sum(axis=0).min())
    # Each step keeps at least (1 - share) of the best one's weight, so its part of the bound grows by -log(1 - share).
    allowed = (np.log(3) - len(losses) * np.log1p(-SHARE)) / RATE + RATE * len(losses) / 8
    assert lost <= best + allowed + 1e-9


def test_an_expert_that_was_wrong_for_long_comes_back_within_days() -> None:
    weights = PRIOR
    for _ in range(2000):
        weights = shared(after_losses(weights, np.array([0.0, 1.0, 1.0]), RATE), PRIOR, SHARE)
    assert weights[0] > 0.95
    for _ in range(30):
        weights = shared(after_losses(weights, np.array([1.0, 0.0, 1.0]), RATE), PRIOR, SHARE)
    assert weights[1] > 0.8


def test_one_that_comes_in_starts_with_its_prior_and_one_that_goes_out_has_nothing() -> None:
    np.testing.assert_allclose(shared(np.array([0.2, 0.0, 0.8]), np.array([0.25, 0.25, 0.5]), 0.0), [0.15, 0.25, 0.6])
    np.testing.assert_allclose(shared(np.array([0.2, 0.4, 0.4]), np.array([0.5, 0.0, 0.5]), 0.0), [1 / 3, 0, 2 / 3])


def test_losses_of_any_size_leave_weights_that_add_up() -> None:
    found = after_losses(np.array([0.5, 0.5, 0.0]), np.array([1e6, -1e6, 0.0]), RATE)
    np.testing.assert_allclose(found, [0.0, 1.0, 0.0])
