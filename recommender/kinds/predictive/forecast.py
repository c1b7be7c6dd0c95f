"""A forecast's task, its answer, and the definition of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recommender.kinds.predictive.wall_clock import WallClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.history import LoadHistory


@dataclass(frozen=True, slots=True)
class ForecastTask:
    """The task of a forecast. It is the same for every model."""

    lead_seconds: float
    """Time from the decision until the requested capacity serves: start-up and control delays."""
    window_seconds: float
    """The target is the largest load in the window of this length that begins at now + lead; a later decision covers
    the time after the window."""
    quantile: float = 0.95
    """The share of targets that the upper forecast should cover."""
    max_growth: float | None = None
    """The largest ratio of a forecast to the current load; None means each model's own default."""
    headroom_ratio: float = 0.1
    """The share of the load that plain headroom adds, which is also added to point forecasts whose errors are not known
    yet."""
    max_over_history: float = 1.5
    """A forecast is at most this many times the largest load of the history."""
    history_seconds: float = math.inf
    """How far the history reaches back."""
    budget_ratio: float | None = None
    """The share by which replica-hours of `auto` may exceed those that the load fills; None if the quantile decides."""
    clock: WallClock = field(default_factory=WallClock)
    """The clock by which days and weeks repeat."""

    def lead_steps(self, step_seconds: float) -> int:
        """Return the lead in whole steps, at least one."""
        return max(1, int(np.ceil(self.lead_seconds / step_seconds - 1e-9)))

    def window_steps(self, step_seconds: float) -> int:
        """Return how many steps the target covers, at least one."""
        return max(1, int(np.ceil(self.window_seconds / step_seconds - 1e-9)))


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts of several series at several moments; NaN where the model has none."""

    median: FloatArray
    """Medians of shape (series, origins): half of the targets should be below them."""
    upper: FloatArray
    """Upper forecasts of shape (series, origins): the share `quantile` of the targets should be below them."""


Fit: TypeAlias = "Callable[[LoadHistory, ForecastTask], Any]"
"""A function from the history that is known at the moment of the fit to parameters, which can be pickled."""
Forecast: TypeAlias = "Callable[[Any, LoadHistory, IntArray, ForecastTask], Forecasts]"
"""A function of (parameters, history, origins, task). Column i of its answer does not use the history after step
`origins[i]`."""


@dataclass(frozen=True, slots=True)
class Model:
    """A way to forecast, as a pair of pure functions."""

    name: str
    """The name as the configuration spells it, such as `holt-winters`."""
    least_history_seconds: float
    """With less history the model is left out."""
    fit: Fit
    forecast: Forecast
    is_heavy: bool = False
    """Whether a fit runs in a child process."""


def no_fit(_history: LoadHistory, _task: ForecastTask) -> None:
    """Return None: the model has no parameters."""
