"""Forecasts of how many pods each workload will have, made at each step of a replay from its past alone.

A recording does not contain the load, only the pods that the load led to. Their number is forecast by the models of
predictive recommendations. The horizon is a node's start-up time, so that nodes exist when the pods arrive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.cluster_size.future.prediction_limits import DEFAULT_GROWTH
from recommender.kinds.predictive.models.table import model_named
from recommender.kinds.predictive.predictive_settings import ModelName, PredictiveSettings
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from recommender.kinds.predictive.simulation.serving import desired_replicas
from recommender.kinds.predictive.tasks import task_for
from recommender.replay.forecasts.workload_counts import STEP_SECONDS, Workload, WorkloadCounts, workload_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recommender.decisions.record import TargetReference
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.replay.cluster.replay_facts import Scene

_OF_AUTO: Final = (ModelName.SEASONAL, ModelName.TREND)
"""The models that replace `auto` and models that take long to fit; the first one with enough history is used."""


@dataclass(frozen=True, slots=True)
class ForecastPlan:
    """How the pods of some workloads are forecast."""

    settings: PredictiveSettings
    targets: tuple[TargetReference, ...] = ()
    """The workloads; if empty, those of `settings.for_each`, or all workloads without `for_each`."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadForecasts:
    """The forecasts of a whole replay. All policies share them, since pods come and end as recorded."""

    start: float
    of_kind: IntArray
    """For each kind of pod, the index of its workload, or `NO_WORKLOAD`."""
    expected: FloatArray
    """The expected pods, shape (workloads, steps); 0 where nothing is expected yet."""
    growth: FloatArray
    """The largest allowed ratio of expected to current pods, by workload."""
    most: FloatArray
    """The largest number of pods that the configuration allows, by workload."""

    def step(self, now: float) -> int:
        """Return the newest step that has ended; negative before the first one has."""
        return int(min((now - self.start) // STEP_SECONDS, self.expected.shape[1])) - 1

    def missing_pods(self, now: float, present: FloatArray) -> FloatArray:
        """Return how many pods of each workload are expected beyond the current ones, within the bounds of `run`."""
        step = self.step(now)
        if step < 0:
            return np.zeros(len(self.expected))
        growing = np.ceil(np.maximum(present, 1.0) * self.growth)
        expected = np.minimum(np.minimum(self.expected[:, step], growing), self.most)
        return np.asarray(np.maximum(expected - present, 0.0))

    def moments(self) -> Iterator[float]:
        """Yield the ends of the steps after which something is expected."""
        for step in np.flatnonzero(self.expected.any(axis=0)).tolist():
            yield self.start + STEP_SECONDS * (step + 1)


def workload_forecasts(scene: Scene, plans: Sequence[ForecastPlan]) -> WorkloadForecasts | None:
    """Return the forecasts, each by the first plan that covers the workload; None if no plan covers a recorded one."""
    counts = workload_counts(scene)
    shape = counts.history.values.shape
    expected, growth, most = np.zeros(shape), np.full(shape[0], DEFAULT_GROWTH), np.full(shape[0], np.inf)
    is_free = np.ones(shape[0], dtype=np.bool_)
    for plan in plans:
        chosen = [place for place, one in enumerate(counts.workloads) if is_free[place] and _is_meant(plan, one)]
        if not chosen or not shape[1]:
            continue
        is_free[chosen] = False
        settings = plan.settings
        expected[chosen] = _expected_pods(counts.among(chosen), settings, scene.startup_seconds)
        growth[chosen] = DEFAULT_GROWTH if settings.max_growth is None else settings.max_growth
        most[chosen] = np.inf if settings.max_replicas is None else settings.max_replicas
    if is_free.all():
        return None
    return WorkloadForecasts(scene.recording.start, counts.of_kind, expected, growth, most)


def _is_meant(plan: ForecastPlan, workload: Workload) -> bool:
    kind, namespace, name = workload
    each = plan.settings.for_each
    if each is not None:
        return kind == each.kind and each.only_namespace in {"", namespace}
    return not plan.targets or any(
        (one.kind, one.namespace, one.name) == (kind, namespace, name) for one in plan.targets
    )


def _expected_pods(counts: WorkloadCounts, settings: PredictiveSettings, startup_seconds: float) -> FloatArray:
    """Return the pods expected at each step, assuming that the load has so far needed exactly the pods that existed."""
    # The number of pods already contains the headroom of the sizing of the workload, which is not added again.
    bare = replace(settings, headroom_ratio=0.0)
    history, task = counts.history, task_for(startup_seconds, STEP_SECONDS, bare)
    upper = np.full(history.values.shape, np.nan)
    for name in _replayed_models(settings):
        upper = np.where(
            np.isnan(upper), rolling_forecasts(model_named(name), history, task, RollingOptions()).upper, upper
        )
    return desired_replicas(np.nan_to_num(upper), 1.0)


def _replayed_models(settings: PredictiveSettings) -> tuple[ModelName, ...]:
    name = settings.model
    return _OF_AUTO if name is ModelName.AUTO or model_named(name).is_heavy else (name,)
