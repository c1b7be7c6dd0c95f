"""Weights of experts that learn from what each of them would have lost: the fixed share forecaster.

Source: Herbster and Warmuth, "Tracking the Best Expert", Machine Learning 32 (1998); as in section 5.2 of
Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games" (2006). With losses between 0 and 1 of n experts, T decisions
and m changes of the best expert, the mixture loses at most about `((m + 1) ln n + m ln(T / m)) / rate + rate T / 8`
more than the best sequence of experts: it need not know which expert is right, nor when that changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray


def after_losses(weights: FloatArray, losses: FloatArray, rate: float) -> FloatArray:
    """Return the weights after a loss of each expert; shape (…, experts), each with a sum of 1."""
    least = np.where(weights > 0, losses, np.inf).min(axis=-1, keepdims=True)
    found = weights * np.exp(-rate * np.where(weights > 0, losses - least, 0.0))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def shared(weights: FloatArray, prior: FloatArray, share: float) -> FloatArray:
    """Return the weights after each expert has given a share to all, so that none is forgotten; shape (…, experts).

    An expert that had no weight so far comes in with its prior; one whose prior is 0 goes out.
    """
    staying = np.where(prior > 0, weights, 0.0)
    total = staying.sum(axis=-1, keepdims=True)
    comes = (weights == 0) & (prior > 0)
    coming = np.where(comes, prior, 0.0).sum(axis=-1, keepdims=True)
    begins = (total <= 0) | (coming >= 1)
    found = (1 - share) * (1 - coming) * staying / np.where(begins, 1.0, total) + share * prior
    found = np.where(begins | comes, prior, found)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
