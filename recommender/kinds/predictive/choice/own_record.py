"""The record of past actions, compared with constant headroom of the same mean cost (pure).

Experts are compared decision by decision with headroom of the same cost. That says nothing about a cost that changes:
shortage is convex in cost, so that a cheap and an expensive week are short more often than two weeks at the cost
between them. This record charges for that. Past actions are compared with headroom of the mean ratio paid so far, and a
difference in cost is priced at the slope of headroom's frontier there. On a stationary load the sums are those by which
a backtest compares (the derivative of `t f(c)` by time, with `c` the mean cost and `f` headroom's shortage at a cost).

While headroom stands in for models because of a bad record, both sums grow equally, and the record stays bad for days.
So the odds of models are counted anew from that moment: a fresh proof ends it, and the record begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.arrays import limited
from recommender.kinds.predictive.choice.shortage_sums import COST, TAU

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray

FIGURES: Final = 6
"""The figures of a series: the mean ratio, two sums of past actions, two of headroom, and the growth of odds."""
_TINY: Final = 1e-9


@dataclass(frozen=True, slots=True)
class OwnRecord:
    """The record of several series."""

    ratio: FloatArray
    """The mean headroom whose cost was paid, shape (series,)."""
    short: FloatArray
    """Short steps and missing share of past actions, shape (series, 2)."""
    expected: FloatArray
    """Short steps and missing share of constant headroom of the same mean cost, shape (series, 2)."""
    regained: FloatArray
    """By what factor the odds of models have grown while the record is worse than allowed; 0 while it is not; shape
    (series,)."""

    def excess(self, doubt: FloatArray) -> FloatArray:
        """Return by what ratio the shortage of past actions exceeds that of headroom; shape (series,).

        The worse of the two measures counts. `doubt`, of shape (series, 2), is added to the shortages of both, since a
        handful of short steps proves nothing.
        """
        return np.asarray(((self.short + doubt) / np.maximum(self.expected + doubt, _TINY)).max(axis=-1) - 1)

    def begin(self, begins: BoolArray, ratio: FloatArray) -> OwnRecord:
        """Return the record, begun anew with these ratios for the marked series."""
        some = begins[:, np.newaxis]
        return OwnRecord(
            np.where(begins, ratio, self.ratio),
            np.where(some, 0.0, self.short),
            np.where(some, 0.0, self.expected),
            np.where(begins, 0.0, self.regained),
        )

    def count_odds_anew(self, is_worse: BoolArray) -> OwnRecord:
        """Return the record, in which the growth of odds is counted from 1 on for the series that are marked."""
        return replace(self, regained=np.where(is_worse, np.where(self.regained > 0, self.regained, 1.0), 0.0))

    def proven(self, growth: FloatArray) -> OwnRecord:
        """Return the record after the odds of models have grown by a factor, shape (series,)."""
        grown = np.maximum(self.regained * growth, _TINY)
        return replace(self, regained=np.where(self.regained > 0, grown, 0.0))

    def after(
        self,
        acted: FloatArray,
        rival: FloatArray,
        saved: FloatArray,
        paid: FloatArray,
        decisions: FloatArray,
        most_decisions: float,
    ) -> OwnRecord:
        """Return the record after adding the sums of a blend and of headroom of the mean ratio, shape (series, 3).

        `saved` is what one more replica saves, shape (series, 2), `paid` the ratio whose cost was paid. The ratio is a
        running mean over `decisions`, and the sums forget decisions older than about `most_decisions`.
        """
        kept = 1 - 1 / most_decisions
        dearer = acted[:, COST:TAU] - rival[:, COST:TAU]
        return OwnRecord(
            self.ratio + (paid - self.ratio) / limited(decisions, 1.0, most_decisions),
            self.short * kept + acted[:, TAU:],
            np.maximum(0.0, self.expected * kept + rival[:, TAU:] - saved * dearer),
            self.regained,
        )

    def figures(self, series: int) -> FloatArray:
        """Return the figures of one series, shape (`FIGURES`,)."""
        return np.concatenate(
            [[self.ratio[series]], self.short[series], self.expected[series], [self.regained[series]]]
        )

    def resume(self, series: int, figures: FloatArray) -> None:
        """Continue a series from its figures."""
        self.ratio[series] = figures[0]
        self.short[series], self.expected[series] = figures[1:3], figures[3:5]
        self.regained[series] = figures[5]


def first_record(series: int, ratio: float) -> OwnRecord:
    """Return the record before any decision has acted."""
    return OwnRecord(np.full(series, ratio), np.zeros((series, 2)), np.zeros((series, 2)), np.zeros(series))


def sums_of_parts(parts: FloatArray, weights: FloatArray, headroom: FloatArray) -> FloatArray:
    """Return the sums of the acting blend, as the weighted mean of its parts' sums; shape (series, 3).

    A mixture of capacities lacks at most the weighted mean of what its parts lack, so the record errs towards headroom.
    `parts` has the shape (series, experts, 3), the weights (series, experts + 1).
    """
    return np.asarray((weights[:, :-1, np.newaxis] * parts).sum(axis=1) + weights[:, -1:] * headroom)
