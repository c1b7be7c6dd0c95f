"""Evidence that a model is better than headroom grows quickly with constant gains, and not without gains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.choice.evidence import (
    RATES,
    after_gains,
    by_rate,
    growth_of_odds,
    of_rates,
    paired_weights,
    weights_of_both,
)
from recommender.kinds.predictive.choice.weights import after_losses, odds_of_models

PRIOR = np.array([0.25, 0.25, 0.5])


def odds_after(gains: list[float], model: int = 0) -> tuple[float, float]:
    """Return the odds by the evidence and by weights after one of two models has had this gain in each decision."""
    evidence, weights = paired_weights(PRIOR), PRIOR
    for gain in gains:
        losses = np.zeros(3)
        losses[model] = -gain
        evidence, weights = after_gains(evidence, losses), after_losses(weights, losses, 1.0)
    return float(odds_of_models(evidence, paired_weights(PRIOR))), float(odds_of_models(weights, PRIOR))


@given(gain=st.floats(0.0, 10.0), lucky=st.floats(0.05, 0.8))
def test_expected_odds_do_not_grow_if_the_mean_gain_is_zero(gain: float, lucky: float) -> None:
    loss = gain * lucky / (1 - lucky)
    after, _ = odds_after([gain])
    otherwise, _ = odds_after([-loss])
    # A loss beyond half of an inverse rate counts a little less than the inequality asks for.
    assert lucky * after + (1 - lucky) * otherwise <= 1 + (1e-9 if loss * RATES.max() <= 0.5 else 0.001)


@pytest.mark.parametrize("gain", [-0.4, 0.1, 0.5])
def test_the_evidence_of_a_model_is_its_mean_over_four_rates(gain: float) -> None:
    by_evidence, _ = odds_after([gain])
    of_model = np.mean([np.exp(rate * gain - (rate * gain) ** 2) for rate in (0.5, 1.0, 2.0, 4.0)])
    assert by_evidence == pytest.approx((of_model + 1) / 2), "the other model has gained nothing"


@pytest.mark.parametrize("model", [0, 1])
def test_many_small_gains_prove_a_model_sooner_than_its_weight(model: int) -> None:
    by_evidence, by_weights = odds_after([0.02] * 100, model)
    assert by_evidence > 5 > by_weights


def test_one_large_gain_adds_little_evidence_but_much_weight() -> None:
    by_evidence, by_weights = odds_after([3.0])
    assert by_evidence < 2 < by_weights


@pytest.mark.parametrize(
    ("weights", "pairs", "expected"),
    [
        pytest.param([0.3, 0.1, 0.6], [0.3, 0.5, 0.2], [0.45, 0.35, 0.2], id="the second count knows more"),
        pytest.param([0.3, 0.5, 0.2], [0.3, 0.1, 0.6], [0.45, 0.35, 0.2], id="the first count knows more"),
        pytest.param([0.4, 0.0, 0.6], [0.8, 0.0, 0.2], [0.8, 0.0, 0.2], id="one model"),
        pytest.param([0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], id="no model"),
    ],
)
def test_headroom_has_the_smaller_of_its_weights_and_models_share_the_rest_by_both_counts(
    weights: list[float], pairs: list[float], expected: list[float]
) -> None:
    evidence = paired_weights(np.array(pairs))
    rising = np.concatenate([np.tile([0.4, 0.8, 1.2, 1.6], 2), [1.0]])
    both = np.array([weights, weights]), np.array([evidence, evidence * rising])
    np.testing.assert_allclose(weights_of_both(*both), [expected, expected])


@given(seed=st.integers(0, 2**32))
def test_the_odds_of_weights_by_both_counts_are_the_larger_odds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, evidence = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(2 * len(RATES) + 1), 5)
    found = weights_of_both(weights, evidence)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)
    both = odds_of_models(weights, PRIOR), odds_of_models(evidence, paired_weights(PRIOR))
    np.testing.assert_allclose(odds_of_models(found, PRIOR), np.maximum(*both))


@given(gain=st.floats(0.0, 10.0), lucky=st.floats(0.05, 0.8), weight=st.floats(0.01, 0.99))
def test_odds_are_expected_to_grow_by_1_whatever_they_were_if_the_mean_gain_is_zero(
    gain: float, lucky: float, weight: float
) -> None:
    """So a proof that begins at any moment is as hard to reach by chance as one from the start (Ville's inequality)."""
    loss, before = gain * lucky / (1 - lucky), paired_weights(np.array([weight, 0.0, 1 - weight]))
    growths = [
        float(growth_of_odds(before, after_gains(before, np.array([-each, 0.0, 0.0])))) for each in (gain, -loss)
    ]
    assert lucky * growths[0] + (1 - lucky) * growths[1] <= 1 + (1e-9 if loss * RATES.max() <= 0.5 else 0.001)


def test_odds_of_no_model_do_not_grow() -> None:
    nothing = paired_weights(np.array([[0.0, 0.0, 1.0]]))
    assert growth_of_odds(nothing, after_gains(nothing, np.zeros((1, 3)))).tolist() == [1.0]


def test_grouping_evidence_by_rate_is_reversible() -> None:
    evidence = np.random.default_rng(0).dirichlet(np.ones(2 * 4 + 1))
    rows = by_rate(evidence)
    assert rows.shape == (4, 3)
    assert rows.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(of_rates(rows), evidence)
