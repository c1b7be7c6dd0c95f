"""Running sums of what a policy cost and how short it was, so that any stretch of the past is two look-ups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.predictive.simulation.serving import desired_replicas, needed_replicas, simulate

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.simulation.serving import FleetSettings

COST, TAU, THETA, LOST, PINBALL = range(5)
"""Replicas paid for; steps that were short; missing share of what was needed; lost load; loss of the forecast."""


@dataclass(frozen=True, slots=True)
class ShortageLedger:
    """Sums up to each decision, its own step included; shape (5, decisions)."""

    sums: FloatArray

    def between(self, begin: int, end: int) -> FloatArray:
        """Return the sums from after decision `begin` to decision `end`."""
        return np.asarray(self.sums[:, end] - self.sums[:, begin])


@dataclass(frozen=True, slots=True)
class Scales:
    """What every policy of one series is measured with."""

    load: FloatArray
    """Shape (steps,)."""
    target: FloatArray
    """Of each step as origin, shape (steps,); NaN where it is not known."""
    known_after: int
    """So many steps after its origin a target is known."""
    quantile: float
    fleet: FleetSettings
    every: int
    """Decisions are so many steps apart, the first one at step 0."""

    @property
    def seconds_between(self) -> float:
        """Return how much time lies between two decisions."""
        return self.every * self.fleet.step_seconds

    def ledger(self, capacity: FloatArray) -> ShortageLedger:
        """Return the ledger of a policy by its capacity in units of load, shape (steps,)."""
        run = simulate(desired_replicas(capacity, self.fleet.load_per_replica), self.fleet)
        counted = ~np.isnan(self.load)
        needed = needed_replicas(np.where(counted, self.load, 0.0), self.fleet.load_per_replica)
        missing = np.where(counted, np.maximum(needed - run.serving, 0.0), 0.0)
        lost = np.nan_to_num(np.maximum(self.load - run.serving * self.fleet.load_per_replica, 0.0))
        # A single flood would otherwise outweigh a week.
        lost = np.minimum(lost, _mean_so_far(self.load))
        asked = np.where(counted, run.asked, 0.0)
        rows = np.stack([asked, missing > 0, missing / needed, lost, self._pinball(capacity)])
        return ShortageLedger(np.cumsum(rows, axis=1)[:, :: self.every].copy())

    def _pinball(self, capacity: FloatArray) -> FloatArray:
        """Return the pinball loss at the step at which it became known; 0 where there is none."""
        error = self.target - capacity
        loss = np.nan_to_num(np.maximum(self.quantile * error, (self.quantile - 1) * error))
        found = np.zeros(len(loss))
        found[self.known_after :] = loss[: len(loss) - self.known_after]
        return found


def _mean_so_far(load: FloatArray) -> FloatArray:
    """Return the mean of the known load up to each step; 0 before the first one."""
    known = ~np.isnan(load)
    sums = np.cumsum(np.where(known, load, 0.0))
    return np.asarray(sums / np.maximum(np.cumsum(known), 1))
