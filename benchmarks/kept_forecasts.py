"""Rolling forecasts that are kept in files: fits take most of a replay, and a changed choice needs no new fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.kinds.predictive.forecast import Fit, ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory


@dataclass(frozen=True, slots=True)
class KeptForecasts:
    """A folder with the forecasts for one load with one start-up time, in one file for each model."""

    folder: Path
    name: str
    """A name for the load with its start-up time."""

    def of(self, model: Model, history: LoadHistory, task: ForecastTask, fits: SharedFits) -> Forecasts:
        """Return the forecasts of a model from its file, which is written if it does not exist."""
        path = self.folder / f"{self.name}-{model.name}.npz"
        if path.exists():
            with np.load(path) as kept:
                return Forecasts(kept["median"], kept["upper"])
        found = rolling_forecasts(model, history, task, RollingOptions(), fits.run)
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, median=found.median, upper=found.upper)
        part.replace(path)
        return found


class SharedFits:
    """The fits to one load, each made once: models share parameters, as do start-up times with equally many steps."""

    def __init__(self) -> None:
        self._made: dict[tuple[Fit, int, int, int, int], Any] = {}

    def run(self, model: Model, history: LoadHistory, task: ForecastTask) -> Any:  # noqa: ANN401 - each model has its own parameters
        """Return the parameters of a model that is fitted to a part of the load."""
        step = history.step_seconds
        key = (model.fit, history.first, history.steps, task.lead_steps(step), task.window_steps(step))
        if key not in self._made:
            self._made[key] = model.fit(history, task)
        return self._made[key]
