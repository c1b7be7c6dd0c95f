"""The weighted mean of several policies, and the integers 0..10 that the scheduler reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.scores.policy_scores import MIDDLE_SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class BlendedScores:
    """The scores of a request's nodes, in the request's order."""

    priorities: NDArray[np.int64]
    """The scores as integers 0..10, as in the answer of an extender."""
    without_influence: bool
    """Whether there are several nodes and all have the same priority, so that the answer changes nothing."""


def blend(parts: Sequence[tuple[int, Floats]], size: int) -> BlendedScores:
    """Return the mean of scores (0..100) by their weights, for `size` nodes.

    A node that a policy cannot score gets the median of that policy's scores for the other nodes. Without any policy,
    and if a policy can score no node, the score is 50. The mean is divided by 10 and rounded half up once, at the end.
    """
    total = np.zeros(size)
    weights = 0
    for weight, values in parts:
        total += weight * fill_with_median(values)
        weights += weight
    if weights <= 0:
        total, weights = np.full(size, MIDDLE_SCORE), 1
    # One division: a mean of 45 is 4.5 exactly, whatever the weights are.
    priorities = np.floor(total / (weights * 10.0) + 0.5).astype(np.int64)
    is_flat = size > 1 and bool((priorities == priorities[0]).all())
    return BlendedScores(priorities, is_flat)


def fill_with_median(values: Floats) -> Floats:
    """Return the scores with the median of the known ones in place of NaN; 50 if none is known."""
    is_unknown = np.isnan(values)
    if not is_unknown.any():
        return values
    known = values[~is_unknown]
    middle = float(np.median(known)) if len(known) else MIDDLE_SCORE
    return np.where(is_unknown, middle, values)
