"""The evidence that models are better than headroom, which grows quickly for a model that is far ahead (pure).

Source: Koolen and van Erven, "Second-order Quantile Methods for Experts and Combinatorial Games", COLT 2015; the
inequality is that of Cesa-Bianchi, Mansour and Stoltz, "Improved second-order bounds for prediction with expert
advice", Machine Learning 66 (2007). With the gain `r` of a model over headroom, `exp(c r - c² r²)` is at most `1 + c r`
where `c r` is -1/2 or more. So if no model gains anything on average, none of these weights is expected to grow,
whatever the rate `c`. Their mean over several rates need not know which rate is right: a large one for small gains that
hardly vary, a small one for gains that vary a lot. Without the second term, the weight of a model without any gain
grows. A rare loss that is far beyond the gains counts for less than the inequality requires; the record of past actions
(`own_record`) makes up for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.weights import after_losses, odds_of_models

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

RATES: Final = np.array([0.5, 1.0, 2.0, 4.0])
_LEAST_GAIN: Final = -5.0
"""Gains below this value count as this value: a single large loss refutes a model anyway."""


def paired_weights(weights: FloatArray) -> FloatArray:
    """Return weights of pairs of a model and a rate, of shape (…, experts x rates + 1), headroom last."""
    models = np.repeat(weights[..., :-1] / len(RATES), len(RATES), axis=-1)
    return np.concatenate([models, weights[..., -1:]], axis=-1)


def after_gains(evidence: FloatArray, losses: FloatArray) -> FloatArray:
    """Return the weights of pairs after each expert's loss relative to headroom's; losses of shape (…, experts + 1)."""
    gains = np.maximum(-losses[..., :-1, np.newaxis] * RATES, _LEAST_GAIN)
    found = np.zeros(evidence.shape)
    found[..., :-1] = (np.square(gains) - gains).reshape(*gains.shape[:-2], -1)
    return after_losses(evidence, found, 1.0)


def weights_of_both(weights: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return the weights of experts by both counts, shape (…, experts + 1), from `weights` and those of pairs.

    Headroom has the smaller of its two weights, so that the larger odds count: the weights give larger odds after a few
    large gains, as with steps of half an hour; the evidence after many small ones. Models have the mean of their shares
    by each count.
    """
    headroom = np.minimum(weights[..., -1:], evidence[..., -1:])
    pairs = evidence[..., :-1].reshape(*evidence.shape[:-1], -1, len(RATES)).sum(axis=-1)
    shares = (_shares(weights[..., :-1]) + _shares(pairs)) / 2
    return np.concatenate([(1 - headroom) * shares, headroom], axis=-1)


def _shares(weights: FloatArray) -> FloatArray:
    """Return the shares of models in the sum of their weights; 0 if none has a weight."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def growth_of_odds(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return by what factor the odds of all models against headroom have grown, shape (…); 1 without a model.

    Both have the shape (…, experts), with headroom last.
    """
    return np.where(before[..., :-1].any(axis=-1), odds_of_models(after, before), 1.0)


def by_rate(evidence: FloatArray) -> FloatArray:
    """Return the weights of one series, shape (rates, experts + 1); the weight of headroom is in the first row."""
    models = evidence[:-1].reshape(-1, len(RATES)).T
    rest = np.concatenate([evidence[-1:], np.zeros(len(RATES) - 1)])
    return np.concatenate([models, rest[:, np.newaxis]], axis=1)


def of_rates(rows: FloatArray) -> FloatArray:
    """Return the weights of pairs from what `by_rate` returned."""
    return np.concatenate([rows[:, :-1].T.ravel(), rows[:1, -1]])
