"""The decisions of a mixture: the weights, sizes and headroom of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.choice.options import BEGINNER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class DecidedWeights:
    """The decisions of a mixture, in order of time."""

    weights: FloatArray
    """Weights of each expert at the cost that is paid, plain headroom last; shape (decisions, series, experts + 1)."""
    acting: FloatArray
    """The weights of the acting experts, with the same shape."""
    sizes: FloatArray
    """The scale of each model's room, shape (decisions, series, experts)."""
    ratios: FloatArray
    """The headroom that costs as much as is paid, shape (decisions, series)."""
    stands_in: BoolArray
    """Whether headroom stands in for models because of their bad record, shape (decisions, series)."""


@dataclass(frozen=True, slots=True)
class DecisionInForce:
    """The weights, scales and headroom that act after a decision."""

    weights: FloatArray
    sizes: FloatArray
    ratio: FloatArray
    saved: FloatArray
    """The short steps and the missing share that one more replica for one step saves, shape (series, 2)."""


def with_beginner(decided: DecidedWeights, names: Sequence[str]) -> DecidedWeights:
    """Return the decisions, where the unscaled `BEGINNER` model acts as long as no model has been judged."""
    if BEGINNER not in names:
        return decided
    place = names.index(BEGINNER)
    begins = ~decided.weights[..., :-1].any(axis=-1)
    acting, sizes = decided.acting.copy(), decided.sizes.copy()
    acting[begins] = np.arange(acting.shape[-1]) == place
    sizes[begins, place] = 1.0
    return replace(decided, acting=acting, sizes=sizes)
