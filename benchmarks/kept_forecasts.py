"""Rolling forecasts that are kept in files: fits take most of a replay, and a change of the choice needs none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.forecast import Forecasts
from recommender.kinds.predictive.rolling import RollingOptions, rolling_forecasts

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory


@dataclass(frozen=True, slots=True)
class KeptForecasts:
    """A folder of forecasts, one file for each model, of one load with one start-up time."""

    folder: Path
    name: str
    """Of the load and the start-up time."""

    def of(self, model: Model, history: LoadHistory, task: ForecastTask) -> Forecasts:
        """Return the forecasts of a model, from its file if there is one, and written there otherwise."""
        path = self.folder / f"{self.name}-{model.name}.npz"
        if path.exists():
            with np.load(path) as kept:
                return Forecasts(kept["median"], kept["upper"])
        found = rolling_forecasts(model, history, task, RollingOptions())
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, median=found.median, upper=found.upper)
        part.replace(path)
        return found
