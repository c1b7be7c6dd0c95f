"""Scores for nodes that are ordered by levels, spread over the ten integers above 0 that the scheduler distinguishes.

The scores of the nodes of a request are distributed from 100 down. The best node has an integer to itself as long as
there is one to spare. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.scores.policy_scores import MAX_SCORE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

_MOST_LEVELS: Final = 10
"""Integers above 0, which is for nodes that cannot hold the pod."""
_HALF_STEP: Final = 4
"""Scores within this distance of a multiple of ten are rounded to it."""


def level_scores(levels: NDArray[np.int64], count: int, used: Floats) -> Floats:
    """Return integer scores for a number of levels; level 0 is the best, and a node with level -1 gets 0.

    Within a level, the node with the larger `used` (0..2) is better.

    Each level has its own band of integers (0..10). The first band also gets the integers that are left over, and the
    levels after the ninth share the last band.
    """
    values = np.zeros(len(levels))
    width = max(1, _MOST_LEVELS // max(1, count))
    spare = max(0, _MOST_LEVELS - width * count)
    for level in range(min(count, _MOST_LEVELS)):
        places = np.flatnonzero(levels == level if level < _MOST_LEVELS - 1 else levels >= level)
        highest = _MOST_LEVELS - width * level - (spare if level else 0)
        lowest = highest - width + 1 - (0 if level else spare)
        # The level counts first even if several share a band: `used` is at most 2.
        values[places] = _band_scores(4.0 * levels[places] - used[places], lowest, highest)
    return values


def _band_scores(costs: Floats, lowest: int, highest: int) -> Floats:
    """Return scores that are rounded to the integers from `lowest` to `highest`, in the order of the costs.

    Only the nodes with the smallest cost have the highest integer, unless there is only one integer.
    """
    _, ranks = np.unique(costs, return_inverse=True)
    top, bottom = min(10 * highest + _HALF_STEP, MAX_SCORE), 10 * lowest - _HALF_STEP
    second = top - 1 if lowest == highest else 10 * (highest - 1) + _HALF_STEP
    others = np.floor(second - (second - bottom) * (ranks - 1) / max(1, int(ranks.max()) - 1))
    return np.where(ranks == 0, top, others)
