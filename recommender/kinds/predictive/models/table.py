"""All models by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.models.boosted import BOOSTED, BOOSTED_CONFORMAL
from recommender.kinds.predictive.models.conformal import CONFORMAL, LARGEST_HOUR
from recommender.kinds.predictive.models.curves import LINEAR, POLYNOMIAL
from recommender.kinds.predictive.models.holt_winters import HOLT_WINTERS
from recommender.kinds.predictive.models.load_at_origin import HEADROOM, REACTIVE
from recommender.kinds.predictive.models.percentile import PERCENTILE
from recommender.kinds.predictive.models.quantile import QUANTILE
from recommender.kinds.predictive.models.seasonal import SEASONAL, SEASONAL_HELD
from recommender.kinds.predictive.models.state_space import STATE_SPACE
from recommender.kinds.predictive.models.trend import TREND

if TYPE_CHECKING:
    from recommender.kinds.predictive.forecast import Model
    from recommender.kinds.predictive.history import LoadHistory

MODELS: tuple[Model, ...] = (
    REACTIVE,
    HEADROOM,
    LARGEST_HOUR,
    CONFORMAL,
    PERCENTILE,
    LINEAR,
    POLYNOMIAL,
    TREND,
    SEASONAL,
    SEASONAL_HELD,
    HOLT_WINTERS,
    STATE_SPACE,
    QUANTILE,
    BOOSTED,
    BOOSTED_CONFORMAL,
)


def model_named(name: str) -> Model:
    """Return the model with this name in the configuration; raises KeyError if there is none."""
    return {model.name: model for model in MODELS}[name]


def lacks(model: Model, history: LoadHistory) -> str | None:
    """Return a sentence that says what the model lacks to take part; None if it lacks nothing."""
    known = np.flatnonzero(~np.isnan(history.values).all(axis=0))
    if not known.size:
        return f"{model.name} needs a known load, and none is known"
    seconds = (history.steps - int(known[0])) * history.step_seconds
    if seconds >= model.least_history_seconds:
        return None
    return (
        f"{model.name} needs {model.least_history_seconds / DAY_SECONDS:g} days of load to see a day twice, "
        f"and {seconds / 3600:.3g} h are known"
    )
