"""A real HPA between a policy and the fleet: `recommender.hpa.evaluate`, look after look.

The HPA reads the policy's size as an External metric of type AverageValue, with the default behaviour (tolerance,
stabilisation, rates) and minReplicas and maxReplicas of the fleet. A look sees what the policy said
`METRIC_AGE_SECONDS` before. Pods that start count in the status, and do not serve yet: for such a metric, the HPA does
not ask whether a pod is ready.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.hpa.arithmetic import INT32_MAX
from recommender.hpa.evaluation import evaluate
from recommender.hpa.history import HpaHistory, PastRecommendation, with_recommendation
from recommender.hpa.proposals import Totals, Unavailable, Workload
from recommender.hpa.rules import Behaviour
from recommender.hpa.spec import AverageValue, ExternalMetric, HPASpec
from recommender.predictive.simulation.serving import Fleet, sliding_maximum

if TYPE_CHECKING:
    from recommender.hpa.decision import HpaDecision
    from recommender.predictive.arrays import FloatArray, IntArray
    from recommender.predictive.simulation.serving import FleetSettings

SYNC_SECONDS: Final = 15.0
METRIC_AGE_SECONDS: Final = 30.0
"""From the decision until an HPA reads it: one scrape of the recommender and one refresh of the adapter, at most."""
_MILLI: Final = 1000
_MOST_MILLI: Final = 2**53
_NOTHING_YET: Final = -1


@dataclass(slots=True)
class _Controller:
    """The HPA and its workload between two looks."""

    spec: HPASpec
    replicas: int
    history: HpaHistory = field(default_factory=HpaHistory)
    seen: int | None = None
    wanted: int | None = None
    """What the metric asked for at the last look; None where it could not be used."""
    quiet_until: float = -math.inf
    """While the metric stays the same, no look before this time decides anything else than the last one."""
    passed_at: float | None = None
    """The last look that was not evaluated."""

    def look(self, milli: int | None, now: float) -> None:
        if milli == self.seen and now < self.quiet_until:
            self.passed_at = now
            return
        observation = Unavailable("the policy has said nothing yet") if milli is None else Totals((milli,))
        workload = Workload(self.replicas, self.replicas)
        decision = evaluate(self.spec, workload, [observation], self._history(now), now=now)
        self.seen, self.history, self.wanted = milli, decision.history, _wanted(decision)
        self.quiet_until = -math.inf if decision.scales else self._quiet_until()
        self.replicas = decision.desired

    def _history(self, now: float) -> HpaHistory:
        """Return the history with the last recommendation of the looks that were passed over: they were all equal."""
        if self.passed_at is None or self.wanted is None:
            return self.history
        passed, self.passed_at = PastRecommendation(self.wanted, self.passed_at), None
        return with_recommendation(self.history, passed, obsolete_before=now - self.spec.windows.down)

    def _quiet_until(self) -> float:
        """Return when the recommendations that hold the size up leave the window; never where the metric does."""
        if self.wanted is None or max(self.wanted, self.spec.min_replicas) >= self.replicas:
            return math.inf
        holding = (past.at for past in self.history.recommendations if past.replicas >= self.replicas)
        return max(holding, default=-math.inf) + self.spec.windows.down


def _wanted(decision: HpaDecision) -> int | None:
    return decision.proposals[0].replicas if decision.proposals else None


def through_hpa(sizes: FloatArray, settings: FleetSettings) -> Fleet:
    """Return the fleet that an HPA makes of these sizes, shape (steps,); NaN is no metric."""
    times = np.arange(0.0, len(sizes) * settings.step_seconds, SYNC_SECONDS)
    controller = _Controller(_spec(settings), first_size(sizes, settings))
    asked, changed = np.empty(len(times)), np.zeros(len(times))
    seen = _seen_steps(times, settings)
    milli = [None if math.isnan(size) else min(math.ceil(size * _MILLI - 1e-6), _MOST_MILLI) for size in sizes.tolist()]
    for look, (step, now) in enumerate(zip(seen.tolist(), times.tolist(), strict=True)):
        before = controller.replicas
        controller.look(None if step == _NOTHING_YET else milli[step], now)
        asked[look], changed[look] = controller.replicas, controller.replicas != before
    return _by_step(asked, changed, times, len(sizes), settings)


def first_size(sizes: FloatArray, settings: FleetSettings) -> int:
    """Return the size at the beginning: as in the other simulation, the first one counts before the start."""
    known = sizes[~np.isnan(sizes)]
    first = math.ceil(known[0] - 1e-9) if len(known) else 0
    return int(min(max(first, settings.min_replicas), settings.max_replicas or INT32_MAX))


def _spec(settings: FleetSettings) -> HPASpec:
    return HPASpec(
        metrics=(ExternalMetric("recommended_replicas", AverageValue(_MILLI)),),
        min_replicas=settings.min_replicas,
        max_replicas=settings.max_replicas or INT32_MAX,
        behaviour=Behaviour(),
    )


def _seen_steps(times: FloatArray, settings: FleetSettings) -> IntArray:
    """Return the last step that was over early enough to be seen by each look; -1 for none."""
    over = np.floor((times - METRIC_AGE_SECONDS) / settings.step_seconds + 1e-9).astype(np.int64) - 1
    return np.maximum(over, _NOTHING_YET)


def _by_step(asked: FloatArray, changed: FloatArray, times: FloatArray, steps: int, settings: FleetSettings) -> Fleet:
    """Return the mean of what is asked for in each step, the least that serves in it, and the changes."""
    starting = math.ceil(settings.startup_seconds / SYNC_SECONDS - 1e-9)
    serving = -sliding_maximum(-asked, starting + 1)
    bounds = np.arange(steps + 1, dtype=np.float64) * settings.step_seconds
    # What stands at the beginning of a step is of a look before it, unless one falls on the beginning.
    standing = np.searchsorted(times, bounds[:-1] + 1e-9, side="right") - 1
    end = np.maximum(np.searchsorted(times, bounds[1:] - 1e-9, side="left"), standing + 1)
    pairs = np.column_stack([standing, end]).ravel()
    least = np.minimum.reduceat(np.append(serving, np.inf), pairs)[::2]
    changes = np.concatenate([[0.0], np.cumsum(changed)])
    begin = np.searchsorted(times, bounds - 1e-9, side="left")
    return Fleet(_mean(asked, times, bounds), least, np.diff(changes[begin]))


def _mean(asked: FloatArray, times: FloatArray, bounds: FloatArray) -> FloatArray:
    """Return the time-weighted mean of what is asked for between the bounds."""
    ends = np.append(times[1:], bounds[-1])
    replica_seconds = np.concatenate([[0.0], np.cumsum(asked * np.maximum(ends - times, 0.0))])
    at_bounds = np.interp(bounds, np.append(times, bounds[-1]), replica_seconds)
    return np.asarray(np.diff(at_bounds) / np.diff(bounds), dtype=np.float64)
