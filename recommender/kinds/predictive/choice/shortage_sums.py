"""Running sums of policies' cost and shortage, so that the sums over any stretch of the past take two look-ups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.arrays import limited
from recommender.kinds.predictive.simulation.serving import desired_replicas, needed_replicas, simulate

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.simulation.serving import FleetSettings

COST, TAU, THETA = range(3)
"""The indexes of the sums: replicas paid for, steps that were short, and missing share of the needed replicas."""


@dataclass(frozen=True, slots=True)
class Period:
    """Families of policies that differ by one number, over one stretch of the past; any number of families at once."""

    numbers: FloatArray
    """The number of each policy, ascending; shape (numbers,)."""
    sums: FloatArray
    """Sums of shape (…, numbers, 3), or (…, numbers, 1) if they contain only the cost."""

    def at(self, number: FloatArray | float) -> FloatArray:
        """Return the sums at the number of each family, interpolated; shape (…, 3).

        If there are several numbers for each family, their dimensions come before those of the families.
        """
        low = self._within(self.numbers.searchsorted(number, side="right") - 1)
        first = self.numbers[low]
        part = limited((number - first) / (self.numbers[low + 1] - first), 0.0, 1.0)
        sums, rows = self._rows()
        below, above = sums[rows, low], sums[rows, low + 1]
        return np.asarray(below + np.asarray(part)[..., np.newaxis] * (above - below))

    def at_cost(self, cost: FloatArray | float) -> FloatArray:
        """Return the number with this cost: the first one if all cost more, the last one if all cost less.

        If there are several costs for each family, their dimensions come first, as in `at`.
        """
        cost = np.asarray(cost)
        low = self._within((self.sums[..., COST] <= cost[..., np.newaxis]).sum(axis=-1) - 1)
        sums, rows = self._rows()
        below, above = sums[rows, low, COST], sums[rows, low + 1, COST]
        rise = above - below
        # If several numbers cost the same, the last of them is meant.
        part = np.where(rise > 0, (cost - below) / np.where(rise > 0, rise, 1.0), np.where(cost >= above, 1.0, 0.0))
        first, second = self.numbers[low], self.numbers[low + 1]
        return np.asarray(first + limited(part, 0.0, 1.0) * (second - first))

    def _within(self, low: IntArray) -> IntArray:
        """Return the places, limited to those that are followed by another place."""
        return np.minimum(np.maximum(low, 0), len(self.numbers) - 2)

    def _rows(self) -> tuple[FloatArray, IntArray]:
        """Return the sums with all families along one dimension, and the place of each family in it."""
        families, sums = self.sums.shape[:-2], self.sums.reshape(-1, *self.sums.shape[-2:])
        return sums, np.arange(len(sums)).reshape(families)


@dataclass(frozen=True, slots=True)
class Family:
    """Policies that differ by one number: plain headroom by its ratio, a model by the scale of its room."""

    numbers: FloatArray
    sums: FloatArray
    """Sums up to and including the step of each decision; shape (decisions, …, numbers, 3)."""

    def stretch(self, begin: IntArray | int, end: int) -> Period:
        """Return the sums after decision `begin`, which may differ by family, up to decision `end`."""
        before = self.sums[begin] if isinstance(begin, int) else values_at(self.sums, begin)
        return Period(self.numbers, self.sums[end] - before)


def values_at(values: FloatArray, numbers: IntArray) -> FloatArray:
    """Return each expert's values at the decision in `numbers`, which has the shape (…, series, experts)."""
    series, experts = numbers.shape[-2:]
    return np.asarray(values[numbers, np.arange(series)[:, np.newaxis], np.arange(experts)])


@dataclass(frozen=True, slots=True)
class ShortageScales:
    """The scales by which every policy of one series is measured."""

    load: FloatArray
    """The load, shape (steps,)."""
    limits: FloatArray
    """The bound of every policy, shape (steps,)."""
    fleet: FleetSettings
    every: int
    """How many steps there are from one decision to the next."""
    first: int = 0
    """The step of the first decision."""

    @property
    def seconds_between(self) -> float:
        """Return the seconds between two decisions."""
        return self.every * self.fleet.step_seconds

    def family(self, rooms: FloatArray) -> FloatArray:
        """Return the sums of policies from their rooms above the load, shape (numbers, steps), within the limits.

        The sums have the shape (decisions, numbers, 3).
        """
        return np.moveaxis(self.sums_at(np.minimum(self.load + rooms, self.limits)), -1, 0)

    def sums_at(self, capacity: FloatArray) -> FloatArray:
        """Return the sums, shape (…, 3, decisions), of policies with these capacities, in load, of shape (…, steps)."""
        run = simulate(desired_replicas(capacity, self.fleet.load_per_replica), self.fleet)
        counted = ~np.isnan(self.load)
        needed = needed_replicas(np.where(counted, self.load, 0.0), self.fleet.load_per_replica)
        missing = np.where(counted, np.maximum(needed - run.serving, 0.0), 0.0)
        rows: tuple[FloatArray, ...] = (np.where(counted, run.asked, 0.0), np.sign(missing), missing / needed)
        return np.stack([self.sums_until_decisions(row) for row in rows], axis=-2)

    def load_replicas(self) -> FloatArray:
        """Return how many replicas the load itself fills, summed up to each decision; shape (decisions,)."""
        return self.sums_until_decisions(np.nan_to_num(self.load / self.fleet.load_per_replica))

    def sums_until_decisions(self, rows: FloatArray) -> FloatArray:
        """Return the sums up to each decision of values by step, shape (…, steps)."""
        return np.asarray(np.cumsum(rows, axis=-1, dtype=np.float64)[..., self.first :: self.every].copy())
