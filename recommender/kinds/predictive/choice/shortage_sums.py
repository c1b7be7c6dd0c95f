"""Running sums of what policies cost and how short they were, so that any stretch of the past is two look-ups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.simulation.serving import desired_replicas, needed_replicas, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.serving import FleetSettings

COST, TAU, THETA = range(3)
"""Replicas paid for; steps that were short; missing share of what was needed."""


@dataclass(frozen=True, slots=True)
class Period:
    """Policies that differ by one number, over one stretch of the past."""

    numbers: FloatArray
    """Ascending, shape (numbers,)."""
    sums: FloatArray
    """Shape (numbers, 3)."""

    def at(self, number: float) -> FloatArray:
        """Return the sums at a number, interpolated; shape (3,)."""
        return np.array([np.interp(number, self.numbers, column) for column in self.sums.T])

    def at_cost(self, cost: float) -> float:
        """Return the number that costs so much: the first one if none is as cheap, the last one if none is as dear."""
        return float(np.interp(cost, self.sums[:, COST], self.numbers))


@dataclass(frozen=True, slots=True)
class Family:
    """Policies that differ by one number: plain headroom by its ratio, a model by the scale of its room."""

    numbers: FloatArray
    sums: FloatArray
    """Up to each decision, its own step included; shape (numbers, 3, decisions)."""

    def stretch(self, begin: int, end: int) -> Period:
        """Return the sums from after decision `begin` to decision `end`."""
        return Period(self.numbers, self.sums[:, :, end] - self.sums[:, :, begin])


@dataclass(frozen=True, slots=True)
class ShortageScales:
    """The scales by which every policy of one series is measured."""

    load: FloatArray
    """Shape (steps,)."""
    limits: FloatArray
    """What no policy may exceed, shape (steps,)."""
    fleet: FleetSettings
    every: int
    """Decisions are so many steps apart, the first one at step 0."""

    @property
    def seconds_between(self) -> float:
        """Return how much time lies between two decisions."""
        return self.every * self.fleet.step_seconds

    def family(self, room: FloatArray, numbers: Sequence[float]) -> Family:
        """Return the policies `load + number x room`, within the limits; all of shape (steps,)."""
        capacities = (np.minimum(self.load + number * room, self.limits) for number in numbers)
        return Family(np.array(numbers), np.stack([self.ledger(capacity) for capacity in capacities]))

    def ledger(self, capacity: FloatArray) -> FloatArray:
        """Return the sums of a policy by its capacity in units of load, shape (steps,), as (3, decisions)."""
        run = simulate(desired_replicas(capacity, self.fleet.load_per_replica), self.fleet)
        counted = ~np.isnan(self.load)
        needed = needed_replicas(np.where(counted, self.load, 0.0), self.fleet.load_per_replica)
        missing = np.where(counted, np.maximum(needed - run.serving, 0.0), 0.0)
        rows = np.stack([np.where(counted, run.asked, 0.0), missing > 0, missing / needed])
        return self.counted(rows)

    def load_replicas(self) -> FloatArray:
        """Return how many replicas the load itself fills, summed up to each decision; shape (decisions,)."""
        return self.counted(np.nan_to_num(self.load / self.fleet.load_per_replica))

    def counted(self, rows: FloatArray) -> FloatArray:
        """Return values of steps, shape (…, steps), as sums up to each decision."""
        return np.asarray(np.cumsum(rows, axis=-1)[..., :: self.every].copy())
