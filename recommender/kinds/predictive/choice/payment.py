"""The cost that is paid: how far it moves towards the cost at which models are proven, and with which evidence (pure).

Shortage is convex in cost, so a cost that changes buys less than a constant one. Models are compared with headroom at
two costs. A cost between these has no evidence of its own; the evidence at both counts in proportion to how near they
are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.arrays import limited

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.choice.options import ChoiceOptions

_LEAST_RISE: Final = 0.02
"""The headroom that may be paid if none was paid before, since twice nothing is nothing."""


def paid_ratio(
    wanted: FloatArray, mean: FloatArray, excess: FloatArray, is_young: BoolArray, options: ChoiceOptions
) -> FloatArray:
    """Return the headroom whose cost is paid, all of shape (series,).

    It moves from the mean paid so far to the wanted one as far as the models' gains have paid for the change, and not
    far at once, since the slope by which a change is charged holds only for nearby costs. `excess` is the share by
    which the shortage of past actions exceeds that of headroom. Changes in the first week are not charged, since too
    little is known then.
    """
    part = limited((options.unpaid_ratio - excess) / options.unpaid_ratio, 0.0, 1.0)
    most = np.maximum(mean * options.far_ratio, _LEAST_RISE)
    near = np.where(is_young, wanted, limited(wanted, mean / options.far_ratio, most))
    return np.where(part < 1, mean + (near - mean) * part, near)


def part_of_way(paid: FloatArray, configured: FloatArray, bill: FloatArray) -> FloatArray:
    """Return how far the paid headroom has moved from the configured one to that of the bill, from 0 to 1."""
    whole = bill - configured
    return limited(np.where(whole > 0, (paid - configured) / np.where(whole > 0, whole, 1.0), 1.0), 0.0, 1.0)


def needed_odds(part: FloatArray, proof_odds: float) -> FloatArray:
    """Return the least odds with which models act at a part of the way from the configured cost to the bill.

    At the configured cost, they are half of a proof. At the bill, where models are already proven, they are the inverse
    of a proof. In between, their logarithm is interpolated.
    """
    return np.asarray(proof_odds ** ((1 - part) / 2 - part))


def weights_between(tried: FloatArray, weights: FloatArray, part: FloatArray) -> FloatArray:
    """Return the weights at a part of the way from the configured cost to the bill, shape (series, experts + 1).

    Logarithms of weights are sums of losses, so the logarithms are interpolated. By Hölder's inequality, the resulting
    odds are no larger than odds that are interpolated in the same way.
    """
    part = part[:, np.newaxis]
    found = tried ** (1 - part) * weights**part
    return np.asarray(found / found.sum(axis=1, keepdims=True))
