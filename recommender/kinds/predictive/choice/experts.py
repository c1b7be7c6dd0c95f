"""Experts: models whose room above the load is scaled, so that each of them costs what the bill allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.blend import scaled_room
from recommender.kinds.predictive.choice.options import BEGINNER
from recommender.kinds.predictive.choice.shortage_sums import COST, TAU, THETA, Family, Period, values_at
from recommender.kinds.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray, IntArray
    from recommender.kinds.predictive.choice.shortage_sums import ShortageScales

SCALES: Final = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0, 2.6, 3.5])
"""Scales of a model's room at which cost and shortage are simulated; between these scales they are interpolated."""
LEAST_SHORT_STEPS_A_DAY: Final = 6.0
"""Headroom's usual shortage counts as at least this many short steps a day, so that a few bad ones decide nothing."""
LEAST_OF_LONG_STEPS_A_DAY: Final = 3.0
"""The least number of short steps a day during the first days, if steps are so long that a day has few of them."""
_STEPS_FOR_A_SHORT_ONE: Final = 16
_NEVER: Final = 2**40
_WEEK_DAYS: Final = 7
_WORKING_DAYS: Final = 5


@dataclass(frozen=True, slots=True)
class Experts:
    """Models and their results on the past of several series."""

    names: tuple[str, ...]
    begins: IntArray
    """The first decision after which a model's forecasts have had an effect, shape (series, experts); negative where it
    was made before this history begins."""
    family: Family
    """One family for each model, by the scale of its room; sums of shape (decisions, series, experts, numbers, 3)."""
    bound_steps: FloatArray
    """How many forecasts were at their bound, up to each decision; shape (decisions, series, experts)."""

    def bound_ratios(self, begins: IntArray, every: int) -> FloatArray:
        """Return the shares of forecasts that were at their bound from `begins` on, up to each decision.

        Both have the shape (decisions, series, experts).
        """
        decisions = np.arange(len(begins))[:, np.newaxis, np.newaxis]
        steps = np.maximum(1, (decisions - begins) * every)
        return np.asarray((self.bound_steps - values_at(self.bound_steps, begins)) / steps)

    def newest(self, number: int, began: IntArray) -> IntArray:
        """Return the decision at which the newest model of each series, except `BEGINNER`, joined; shape (series,).

        `began` are the first decisions of the series.
        """
        has_come = (self.begins <= number) & (np.array(self.names) != BEGINNER)
        newest = np.where(has_come, self.begins, began[:, np.newaxis]).max(axis=1, initial=-_NEVER)
        return np.asarray(np.maximum(newest, began))


def experts_of(uppers: Mapping[str, FloatArray], missing_ratio: float, scales: Sequence[ShortageScales]) -> Experts:
    """Return the experts from models' upper forecasts, each of shape (series, steps), and the scales of each series."""
    # The beginner also acts where it has no forecast: as plain headroom.
    names = tuple(name for name, upper in uppers.items() if name == BEGINNER or not np.isnan(upper).all())
    count = len(scales[0].load[scales[0].first :: scales[0].every])
    shape = (len(scales), len(names))
    begins = np.full(shape, _NEVER, dtype=np.int64)
    sums, bound_steps = np.zeros((count, *shape, len(SCALES), 3)), np.zeros((count, *shape))
    for series, one in enumerate(scales):
        for place, name in enumerate(names):
            upper = uppers[name][series]
            known = np.flatnonzero(~np.isnan(upper))
            if len(known):
                effective = int(known[0]) + one.fleet.lag_steps - one.first
                begins[series, place] = max(0, -(-effective // one.every))
                sums[:, series, place] = one.family(
                    scaled_room(name, SCALES[:, np.newaxis], one.load, upper, missing_ratio)
                )
                with np.errstate(invalid="ignore"):
                    stands = (upper >= one.limits * (1 - 1e-9)) & (one.load > 0)
                bound_steps[:, series, place] = one.sums_until_decisions(stands)
    return Experts(names, begins, Family(SCALES, sums), bound_steps)


@dataclass(frozen=True, slots=True)
class JudgedPeriod:
    """What each expert, and headroom beside it, cost over the period for which the expert is judged."""

    experts: Period
    rival: Period
    """Families of shape (series, experts), like `experts`; their sums contain only the cost."""
    has_begun: BoolArray
    """Which experts are judged at all, shape (series, experts)."""

    def sizes(self, ratio: FloatArray) -> FloatArray:
        """Return the scale of each model's room that costs as much as headroom of a ratio, shape (…, series, experts).

        The ratios have the shape (…, series), and a model that is not judged yet has the scale 0.
        """
        cost = self.rival.at(ratio[..., np.newaxis])[..., COST]
        return np.where(self.has_begun, self.experts.at_cost(cost), 0.0)


@dataclass(frozen=True, slots=True)
class Usual:
    """The loss of plain headroom of the same bill in a usual day, for each series; it is the unit of losses."""

    tau: FloatArray
    theta: FloatArray
    price: FloatArray
    """The loss that one more replica for one step saves, by which different costs are made comparable."""
    saved: FloatArray
    """The short steps and the missing share that one more replica for one step saves, shape (…, series, 2)."""

    def doubt(self, days: float) -> FloatArray:
        """Return headroom's usual short steps and missing share in this many days, shape (series, 2)."""
        return np.array([self.tau, self.theta]).T * days

    def losses(self, sums: FloatArray) -> FloatArray:
        """Return the losses of stretches, shape (…, series, experts, 3), in days of headroom's usual shortage."""
        tau, theta, price = (each[..., np.newaxis] for each in (self.tau, self.theta, self.price))
        return np.asarray((sums[..., TAU] / tau + sums[..., THETA] / theta) / 2 + price * sums[..., COST])


def usual_of(headroom: Period, ratio: FloatArray, seconds: float, least: FloatArray, worth: FloatArray) -> Usual:
    """Return what headroom of a ratio usually loses in a day of the period; all of shape (…, series).

    A usual day counts as at least `least` short steps, and a replica is worth `worth` times what it was in the period.
    Where headroom of the ratio was never short, a saved replica is worth nothing: a model cannot be short less often.
    """
    a_day = DAY_SECONDS / seconds
    sums, less, more = headroom.at(np.array([ratio, 0.7 * ratio, 1.3 * ratio + 0.02])) * a_day
    tau = np.maximum(sums[..., TAU], least)
    theta = np.maximum(sums[..., THETA], least * missing_share(sums))
    dearer = more[..., COST] - less[..., COST]
    saved = less[..., TAU:] - more[..., TAU:]
    saved *= (worth / np.where(dearer > 0, dearer, np.inf))[..., np.newaxis]
    price = np.where(sums[..., TAU] > 0, np.maximum(0.0, saved[..., 0] / tau + saved[..., 1] / theta) / 2, 0.0)
    return Usual(tau, theta, price, np.maximum(0.0, saved))


def least_short_steps_a_day(step_seconds: float, is_early: BoolArray) -> FloatArray:
    """Return the lower bound of headroom's usual short steps a day, for each series.

    A day has only 48 steps of half an hour, and each short one is a separate shortage. With at least six of them in a
    usual day, a proof would take nearly two weeks. To pay little for so long and much after that buys less than to pay
    the same throughout. A later proof comes too late for that, and needs as many short steps as with a fine grid.
    """
    few = min(
        max(DAY_SECONDS / step_seconds / _STEPS_FOR_A_SHORT_ONE, LEAST_OF_LONG_STEPS_A_DAY), LEAST_SHORT_STEPS_A_DAY
    )
    return np.where(is_early, few, LEAST_SHORT_STEPS_A_DAY)


def worth_of_replica(load: FloatArray, begin: int, number: int, day: int) -> FloatArray:
    """Return what a replica is worth at decision `number`, relative to the week since `begin`; at most 1.

    Shortage depends on headroom as a share of the load, so after a rise of the load a replica buys less of it. The last
    `day` decisions are compared with the week, as far as two days off in that week do not explain the difference. While
    no whole week is known, a replica is worth as much as before. `load` has running sums, shape (decisions, series).
    """
    if number - begin < _WEEK_DAYS * day or not day:
        return np.ones(load.shape[1])
    most = _WEEK_DAYS / _WORKING_DAYS * (load[number] - load[begin]) / (number - begin)
    last = (load[number] - load[number - day]) / day
    return np.where(last > most, most / np.where(last > most, last, 1.0), 1.0)


def missing_share(sums: FloatArray) -> FloatArray:
    """Return the mean share of the need that short steps leave unmet, from sums of shape (…, 3); 1 if none is short."""
    tau = sums[..., TAU]
    return np.where(tau > 0, sums[..., THETA] / np.where(tau > 0, tau, 1.0), 1.0)
