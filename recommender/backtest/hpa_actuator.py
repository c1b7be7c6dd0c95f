"""An HPA between a policy and the fleet, simulated sync by sync (a sync is called a look here).

The HPA reads the policy's size as an External metric of type AverageValue, with the default behaviour (tolerance,
stabilisation, rates) and minReplicas and maxReplicas of the fleet. Only this part of the HPA controller's arithmetic is
here; tests compare it with the whole arithmetic in `adapter/foundation/hpa`. Each look uses the size that the policy
had `METRIC_AGE_SECONDS` earlier. Pods that are starting count as current replicas but do not serve yet, because for
such a metric the HPA does not check whether pods are ready.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS
from recommender.kinds.predictive.simulation.serving import Fleet, FleetSettings, sliding_maximum

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray


MILLI = 1000
_TOLERANCE: Final = 0.1
"""The share of the target by which usage may differ from the target; the HPA controller's default."""

SYNC_SECONDS: Final = 15.0
METRIC_AGE_SECONDS: Final = 30.0
"""The largest delay from a decision until an HPA reads it: one scrape of the recommender and one adapter refresh."""
_WINDOW_LOOKS: Final = 20
"""The number of looks in the default look-back of five minutes, including the current one."""
_PODS_PER_LOOK: Final = 4
_FACTOR_PER_LOOK: Final = 2
"""How far one look scales up by default: by 4 pods or to twice as many, whichever is more. The period of both rules is
that of a look."""
_MOST_MILLI: Final = 2**53
_NOTHING_YET: Final = -1


def average_value_replicas(replicas: int, usage_milli: int, target_milli: int) -> int:
    """Return the replicas that an HPA computes for a target of type AverageValue, before look-back and rate limits.

    `usage_milli` is the total usage, and `target_milli` the target for each replica. The formula, and its rounding, is
    that of `replica_calculator.go` in the HPA controller.
    """
    usage, target = float(usage_milli), float(target_milli)
    if replicas and 1.0 - _TOLERANCE <= usage / (target * float(replicas)) <= 1.0 + _TOLERANCE:
        return replicas
    return min(math.ceil(usage / target), MOST_REPLICAS)


def hpa_desired(load: FloatArray, settings: FleetSettings) -> FloatArray:
    """Return the desired replicas of an HPA with the default tolerance, shape (steps,).

    Within 10% of the target, the current size is desired again, so each step depends on the previous one.
    """
    least, most = settings.min_replicas, settings.max_replicas or math.inf
    target = max(1, round(settings.load_per_replica * MILLI))
    recent: deque[float] = deque(maxlen=settings.down_window_steps)
    asked, desired = float(least), np.empty(len(load))
    for step, value in enumerate(load.tolist()):
        if math.isnan(value):
            wanted = recent[-1] if recent else asked
        else:
            wanted = float(average_value_replicas(int(asked), math.ceil(value * MILLI), target))
        recent.append(min(max(wanted, least), most))
        desired[step], asked = recent[-1], max(recent)
    return desired


@dataclass(slots=True)
class _Controller:
    """The state of the HPA and its workload between two looks."""

    min_replicas: int
    max_replicas: int
    replicas: int
    wanted: deque[int]
    """The replicas that the metric asked for at each look of the look-back; 0 if the metric could not be used."""

    def look(self, milli: int | None) -> None:
        """Set the size from the metric in thousandths of replicas; None means no metric, so nothing changes."""
        if milli is None:
            self.wanted.append(0)
            return
        wanted = average_value_replicas(self.replicas, milli, MILLI)
        self.wanted.append(wanted)
        stabilized = min(max(self.replicas, wanted), max(self.wanted))
        most = max(self.replicas + _PODS_PER_LOOK, self.replicas * _FACTOR_PER_LOOK)
        self.replicas = min(max(min(stabilized, most), self.min_replicas), self.max_replicas)


def through_hpa(sizes: FloatArray, settings: FleetSettings) -> Fleet:
    """Return the fleet that an HPA produces from these sizes, which have shape (steps,); NaN means no metric."""
    times = np.arange(0.0, len(sizes) * settings.step_seconds, SYNC_SECONDS)
    first = first_size(sizes, settings)
    # The first look sees no metric yet. A controller that has just started takes the size that it finds for its first
    # recommendation.
    controller = _Controller(
        settings.min_replicas, settings.max_replicas or MOST_REPLICAS, first, deque([first], maxlen=_WINDOW_LOOKS)
    )
    asked, changed = np.full(len(times), float(first)), np.zeros(len(times))
    milli = [None if math.isnan(size) else min(math.ceil(size * MILLI - 1e-6), _MOST_MILLI) for size in sizes.tolist()]
    for look, step in enumerate(_seen_steps(times, settings).tolist()[1:], start=1):
        before = controller.replicas
        controller.look(None if step == _NOTHING_YET else milli[step])
        asked[look], changed[look] = controller.replicas, controller.replicas != before
    return _by_step(asked, changed, times, len(sizes), settings)


def first_size(sizes: FloatArray, settings: FleetSettings) -> int:
    """Return the initial size: as in the simulation without an HPA, the first size also applies before the start."""
    known = sizes[~np.isnan(sizes)]
    first = math.ceil(known[0] - 1e-9) if len(known) else 0
    return int(min(max(first, settings.min_replicas), settings.max_replicas or MOST_REPLICAS))


def _seen_steps(times: FloatArray, settings: FleetSettings) -> IntArray:
    """Return, for each look, the last step that ended early enough for the look to see it; -1 for none."""
    over = np.floor((times - METRIC_AGE_SECONDS) / settings.step_seconds + 1e-9).astype(np.int64) - 1
    return np.maximum(over, _NOTHING_YET)


def _by_step(asked: FloatArray, changed: FloatArray, times: FloatArray, steps: int, settings: FleetSettings) -> Fleet:
    """Return the fleet by step: the mean requested replicas, the least serving replicas, and the changes."""
    starting = math.ceil(settings.startup_seconds / SYNC_SECONDS - 1e-9)
    serving = -sliding_maximum(-asked, starting + 1)
    bounds = np.arange(steps + 1, dtype=np.float64) * settings.step_seconds
    # The size at the beginning of a step is from an earlier look, unless a look falls on the beginning.
    standing = np.searchsorted(times, bounds[:-1] + 1e-9, side="right") - 1
    end = np.maximum(np.searchsorted(times, bounds[1:] - 1e-9, side="left"), standing + 1)
    pairs = np.column_stack([standing, end]).ravel()
    least = np.minimum.reduceat(np.append(serving, np.inf), pairs)[::2]
    changes = np.concatenate([[0.0], np.cumsum(changed)])
    begin = np.searchsorted(times, bounds - 1e-9, side="left")
    return Fleet(_mean(asked, times, bounds), least, np.diff(changes[begin]))


def _mean(asked: FloatArray, times: FloatArray, bounds: FloatArray) -> FloatArray:
    """Return the time-weighted mean of the requested replicas between the bounds."""
    ends = np.append(times[1:], bounds[-1])
    replica_seconds = np.concatenate([[0.0], np.cumsum(asked * np.maximum(ends - times, 0.0))])
    at_bounds = np.interp(bounds, np.append(times, bounds[-1]), replica_seconds)
    return np.asarray(np.diff(at_bounds) / np.diff(bounds), dtype=np.float64)
