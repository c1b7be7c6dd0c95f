"""Weights of experts, learned from each expert's losses: the fixed share forecaster.

Source: Herbster and Warmuth, "Tracking the Best Expert", Machine Learning 32 (1998); as in section 5.2 of Cesa-Bianchi
and Lugosi, "Prediction, Learning, and Games" (2006). With losses between 0 and 1 of n experts, T decisions and m
changes of the best expert, the mixture loses at most about `((m + 1) ln n + m ln(T / m)) / rate + rate T / 8` more than
the best sequence of experts, without knowing which expert is right, nor when that changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.arrays import limited

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray

UNPROVEN, CONFIGURED, BILL, REFUTED = range(4)
"""Levels of proof. `UNPROVEN`: the configured headroom acts. `CONFIGURED`: models act at its cost. `BILL`: models act
at the cost of the bill. `REFUTED`: headroom of the bill acts."""
_HALF: Final = 0.5
_GAINED: Final = 1 + 1e-9
"""The smallest growth of an initial weight that is more than a rounding error."""


def prior_weights(takes_part: BoolArray, headroom: float) -> FloatArray:
    """Return the weights before anything is known, from the models that take part, shape (…, experts).

    The last weight is that of headroom: `headroom`, or 1 if no model takes part. Models share the rest equally.
    """
    count = takes_part.sum(axis=-1, keepdims=True)
    each = (1.0 - headroom) / np.maximum(count, 1)
    return np.concatenate([np.where(takes_part, each, 0.0), np.where(count > 0, headroom, 1.0)], axis=-1)


def after_losses(weights: FloatArray, losses: FloatArray, rate: float) -> FloatArray:
    """Return the weights after a loss of each expert; shape (…, experts), each with a sum of 1."""
    counts = weights > 0
    least = np.where(counts, losses, np.inf).min(axis=-1, keepdims=True)
    found = weights * np.exp(-rate * np.where(counts, losses - least, 0.0))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def shared_weights(weights: FloatArray, prior: FloatArray, share: float) -> FloatArray:
    """Return the weights after each expert has given a share to all, so that none is forgotten; shape (…, experts).

    An expert without a weight so far is added with its prior; an expert whose prior is 0 is removed.
    """
    staying = np.where(prior > 0, weights, 0.0)
    total = staying.sum(axis=-1, keepdims=True)
    comes = (weights == 0) & (prior > 0)
    coming = np.where(comes, prior, 0.0).sum(axis=-1, keepdims=True)
    begins = (total <= 0) | (coming >= 1)
    found = (1 - share) * (1 - coming) * staying / np.where(begins, 1.0, total) + share * prior
    found = np.where(begins | comes, prior, found)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def odds_of_models(weights: FloatArray, prior: FloatArray) -> FloatArray:
    """Return the odds of all models against the last expert, as a multiple of their prior odds; shape (…).

    The odds are 0 if no model takes part. Weights and prior have the shape (…, experts).
    """
    expected = (1 - prior[..., -1]) * weights[..., -1]
    found = weights[..., :-1].sum(axis=-1) * prior[..., -1]
    return np.asarray(np.where(expected > 0, found / np.where(expected > 0, expected, 1.0), 0.0))


def proof_levels(levels: IntArray, odds: FloatArray, tried: FloatArray, enough: float) -> IntArray:
    """Return the level of proof from the models' odds at the cost of the bill and at that of configured headroom.

    Models act at the cost at which they are proven. The larger headroom of the bill may be short so rarely that little
    can be proven against it: half of the proof, by the logarithm of the odds, is then enough once the proof is complete
    at the configured cost. With less, there is no reason to pay the bill. Once it has been paid, it is always paid. A
    level stays in use until its odds have fallen as far below 1 as they had to grow.
    """
    at_bill = (odds >= enough) | ((odds >= np.sqrt(enough)) & (tried >= enough))
    found = {
        UNPROVEN: np.where(at_bill, BILL, np.where(tried >= enough, CONFIGURED, UNPROVEN)),
        CONFIGURED: np.where(at_bill, BILL, np.where(tried >= 1 / enough, CONFIGURED, UNPROVEN)),
        BILL: np.where(odds >= 1 / enough, BILL, REFUTED),
        REFUTED: np.where(at_bill, BILL, REFUTED),
    }
    return np.asarray(np.choose(levels, [found[level] for level in range(len(found))]))


def acting_weights(weights: FloatArray, prior: FloatArray, levels: IntArray, least: float) -> FloatArray:
    """Return the weights of the acting experts: headroom, and once models are proven, those above their prior.

    A model whose weight has not grown since its beginning has no evidence in its favour. No model acts with a weight of
    `least` or smaller.
    """
    earned = weights > np.fmax(prior * _GAINED, least)
    earned &= ((levels == CONFIGURED) | (levels == BILL))[:, np.newaxis]
    earned[:, -1] = True
    found = np.where(earned, weights, 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def headroom_in(series: BoolArray, acting: FloatArray) -> FloatArray:
    """Return the acting weights, with all weight on headroom for the marked series."""
    if not series.any():
        return acting
    return np.where(series[:, np.newaxis], np.arange(acting.shape[1]) == acting.shape[1] - 1, acting)


def weighted_medians(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the interpolated weighted medians: a median keeps a single expensive expert from raising the cost.

    Values and weights have the shape (series, experts), and the result has the shape (series,).
    """
    order, rows = np.argsort(values, axis=1), np.arange(len(values))[:, np.newaxis]
    values, weights = values[rows, order], weights[rows, order]
    places = (np.cumsum(weights, axis=1) - weights / 2) / weights.sum(axis=1, keepdims=True)
    low = np.maximum((places <= _HALF).sum(axis=1, keepdims=True) - 1, 0)
    high = np.minimum(low + 1, places.shape[1] - 1)
    below, above = places[rows, low], places[rows, high]
    gap = above - below
    part = limited(np.where(gap > 0, (_HALF - below) / np.where(gap > 0, gap, 1.0), 0.0), 0.0, 1.0)
    first, second = values[rows, low], values[rows, high]
    return np.asarray((first + part * (second - first))[:, 0])
