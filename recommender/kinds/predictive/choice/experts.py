"""Experts: models whose room above the load is scaled, so that each of them costs what the bill allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.blend import room_of
from recommender.kinds.predictive.choice.records import ModelRecord
from recommender.kinds.predictive.choice.shortage_sums import COST, TAU, THETA, Family, Period
from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.choice.shortage_sums import ShortageScales

SCALES: Final = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0, 2.6, 3.5)
"""Sizes of a model's room whose cost and shortage are simulated; between them they are interpolated."""
LEAST_SHORT_STEPS_A_DAY: Final = 6.0
"""Headroom's usual shortage counts as so many short steps a day at least: a few bad ones decide nothing."""
DOUBT_STEPS: Final = 2.0
"""Short steps that are added to both sides of a quotient that is shown: a handful of them proves nothing."""


@dataclass(frozen=True, slots=True)
class Expert:
    """A model on the past of one series."""

    name: str
    begin: int
    """The first decision after which its forecasts have had an effect."""
    family: Family
    """By the scale of its room."""
    bound_steps: FloatArray
    """How many of its forecasts stood at their bound, up to each decision; shape (decisions,)."""

    def bound_ratio(self, begin: int, end: int, every: int) -> float:
        """Return the share of forecasts that stood at their bound between two decisions."""
        return float(self.bound_steps[end] - self.bound_steps[begin]) / max(1, (end - begin) * every)


def expert_of(name: str, upper: FloatArray, missing_ratio: float, scales: ShortageScales) -> Expert | None:
    """Return a model by its upper forecasts, shape (steps,); None if it has none."""
    known = np.flatnonzero(~np.isnan(upper))
    if not len(known):
        return None
    begin = -(-(int(known[0]) + scales.fleet.lag_steps) // scales.every)
    family = scales.family(room_of(scales.load, upper, missing_ratio), SCALES)
    with np.errstate(invalid="ignore"):
        stands = (upper >= scales.limits * (1 - 1e-9)) & (scales.load > 0)
    return Expert(name, begin, family, scales.counted(stands.astype(np.float64)))


@dataclass(frozen=True, slots=True)
class Usual:
    """What plain headroom of the bill usually loses in a day: the unit of losses."""

    tau: float
    theta: float
    price: float
    """What one replica more, for one step, saves of it: costs that differ are made equal by it."""

    def loss(self, sums: FloatArray) -> float:
        """Return the loss of a stretch, in days of headroom's usual shortage; `sums` has shape (3,)."""
        return float((sums[TAU] / self.tau + sums[THETA] / self.theta) / 2 + self.price * sums[COST])


def usual_of(headroom: Period, ratio: float, seconds: float) -> Usual:
    """Return what headroom of a ratio usually loses in a day, over a stretch of so many seconds."""
    a_day = DAY_SECONDS / seconds
    sums = headroom.at(ratio) * a_day
    share = float(sums[THETA] / sums[TAU]) if sums[TAU] > 0 else 1.0
    tau = max(float(sums[TAU]), LEAST_SHORT_STEPS_A_DAY)
    theta = max(float(sums[THETA]), LEAST_SHORT_STEPS_A_DAY * share)
    less, more = headroom.at(0.7 * ratio) * a_day, headroom.at(1.3 * ratio + 0.02) * a_day
    dearer = float(more[COST] - less[COST])
    saved = float((less[TAU] - more[TAU]) / tau + (less[THETA] - more[THETA]) / theta) / 2
    return Usual(tau, theta, max(0.0, saved) / dearer if dearer > 0 else 0.0)


def record_of(
    expert: Expert, weight: float, bill_ratio: float, headroom: Period, begin: int, end: int, scales: ShortageScales
) -> ModelRecord:
    """Return how a model compares from after decision `begin` to decision `end` at the cost of the bill."""
    stretch = expert.family.stretch(begin, end)
    rival = headroom.at(bill_ratio)
    found = stretch.at(stretch.at_cost(float(rival[COST])))
    # One short step lacks this share of what it needs, by headroom's own experience.
    share = float(rival[THETA] / rival[TAU]) if rival[TAU] > 0 else 1.0
    doubt = DOUBT_STEPS * np.array([0.0, 1.0, share])
    versus = (found[1:] + doubt[1:]) / (rival[1:] + doubt[1:])
    return ModelRecord(
        name=expert.name,
        judged_seconds=(end - begin) * scales.seconds_between,
        weight=weight,
        cost_as_headroom_ratio=headroom.at_cost(float(stretch.at(1.0)[COST])),
        tau_under_versus_headroom=float(versus[0]),
        theta_under_versus_headroom=float(versus[1]),
        bound_ratio=expert.bound_ratio(begin, end, scales.every),
    )
