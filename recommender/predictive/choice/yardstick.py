"""Plain headroom of every size on the same past: what each model is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.predictive.choice.ledger import COST, LOST, PINBALL, TAU, THETA
from recommender.predictive.choice.records import ModelRecord
from recommender.predictive.simulation.frontier import HEADROOM_RATIOS

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.choice.ledger import Scales, ShortageLedger

DOUBT_STEPS = 2.0
"""Short steps that are added to both sides of a quotient, so that a handful of them proves nothing."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Plain headroom over one stretch of the past, by its size; arrays of shape (ratios,)."""

    costs: FloatArray
    sums: FloatArray
    """Shape (ratios, 5)."""

    def at_cost_of(self, model: FloatArray) -> FloatArray:
        """Return headroom's sums at the cost of a model, interpolated."""
        return np.array([np.interp(model[COST], self.costs, column) for column in self.sums.T])

    def at_ratio(self, ratio: float) -> FloatArray:
        """Return headroom's sums for one size of it, interpolated."""
        return np.array([np.interp(ratio, np.array(HEADROOM_RATIOS), column) for column in self.sums.T])

    def ratio_at_cost(self, cost: float) -> float:
        """Return the headroom that costs so much."""
        return float(np.interp(cost, self.costs, np.array(HEADROOM_RATIOS)))


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The ledgers of plain headroom."""

    sums: FloatArray
    """Shape (ratios, 5, decisions)."""

    @classmethod
    def of(cls, scales: Scales) -> Yardstick:
        """Simulate plain headroom of every size."""
        return cls(np.stack([scales.ledger(scales.load * (1 + ratio)).sums for ratio in HEADROOM_RATIOS]))

    def stretch(self, begin: int, end: int) -> Stretch:
        """Return headroom from after decision `begin` to decision `end`."""
        found = self.sums[:, :, end] - self.sums[:, :, begin]
        return Stretch(found[:, COST], found)


def record_of(name: str, model: ShortageLedger, stretch: Stretch, begin: int, end: int, scales: Scales) -> ModelRecord:
    """Return how a model compares from after decision `begin` to decision `end`."""
    found = model.between(begin, end)
    headroom = stretch.at_cost_of(found)
    # One short step lacks this share of what it needs, by headroom's own experience.
    share = headroom[THETA] / headroom[TAU] if headroom[TAU] > 0 else 1.0
    lost_a_step = headroom[LOST] / headroom[TAU] if headroom[TAU] > 0 else scales.fleet.load_per_replica
    load = float(np.nansum(scales.load[begin * scales.every + 1 : end * scales.every + 1]))
    return ModelRecord(
        name=name,
        judged_seconds=(end - begin) * scales.seconds_between,
        lead_seconds=scales.fleet.lag_steps * scales.fleet.step_seconds,
        cost_as_headroom_ratio=stretch.ratio_at_cost(float(found[COST])),
        tau_under_versus_headroom=_quotient(found, headroom, TAU, 1.0),
        theta_under_versus_headroom=_quotient(found, headroom, THETA, share),
        lost_load_versus_headroom=_quotient(found, headroom, LOST, lost_a_step),
        pinball_loss=float(found[PINBALL]) / load if load > 0 else 0.0,
        pinball_versus_headroom=float(found[PINBALL] / headroom[PINBALL]) if headroom[PINBALL] > 0 else 1.0,
    )


def _quotient(model: FloatArray, headroom: FloatArray, which: int, one_step: float) -> float:
    """Return the model's sum divided by headroom's; `one_step` is what one short step adds to it."""
    doubt = DOUBT_STEPS * one_step
    return float((model[which] + doubt) / (headroom[which] + doubt))
