"""The policy `model:auto`: at each step the model that the past speaks for, or plain headroom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.backtest.policies import HEADROOM
from recommender.predictive.forecast import Forecasts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.predictive.forecast import ForecastTask
    from recommender.predictive.history import LoadHistory
    from recommender.predictive.simulation.serving import FleetSettings


@dataclass(frozen=True, slots=True)
class Automatic:
    """What auto forecast, and what it ran."""

    forecasts: Forecasts
    used: tuple[str, ...]
    """The model of each step, or `headroom`."""


def automatic(
    history: LoadHistory,
    _forecasts: Mapping[str, Forecasts],
    task: ForecastTask,
    _fleet: FleetSettings,
) -> Automatic:
    """Return auto's forecasts from those of the models, each of which was made of the past alone."""
    load = history.values
    return Automatic(
        Forecasts(np.array(load), load * (1 + task.headroom_ratio)),
        (HEADROOM,) * history.steps,
    )
