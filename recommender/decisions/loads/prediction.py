"""A forecast of a load in the form that records and decisions use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import Record


@dataclass(frozen=True, slots=True)
class PredictedLoad:
    """The current load of a target, and the load expected once capacity that is requested now is ready."""

    now: float
    """The observed load."""
    predicted: float | None
    """The largest load expected from `at` on, until a later decision can help; None if no model has a forecast."""
    at: float | None
    """When the capacity is ready, in Unix seconds: now + start-up + control delays."""
    quantiles: Mapping[str, float] = field(default_factory=dict)
    """Forecasts by quantile, a decimal number such as `0.95`."""


@dataclass(frozen=True, slots=True)
class ForecastBound:
    """How a forecast was capped."""

    forecast: float
    """The forecast of the model."""
    largest: float
    """The largest load of the history."""
    ratio: float
    """`maxOverHistory`: a forecast may be at most this many times `largest`."""
    models: tuple[str, ...] = ()
    """Models whose forecasts were capped."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The details of a predictive record: a forecast, the model that made it, and the results of all models."""

    has_value: ClassVar[bool] = False
    """Always False, since the value is the number of replicas."""

    load: PredictedLoad
    model: str
    """The model in use, as the configuration spells it."""
    model_reason: str
    """Why this model is used, in one sentence with figures."""
    shortage_versus_headroom: Mapping[str, float | None] = field(default_factory=dict)
    """The recent shortage of each model divided by that of plain headroom with equal replica-hours; None if neither has
    any shortage. Models that are not considered are missing."""
    last_day: str = ""
    """The result of this model over the last day, compared with plain headroom at equal cost; empty if unknown."""
    bound: ForecastBound | None = None
    """How the forecast was capped; None if it was not."""
    cost_above_load_ratio: float | None = None
    """The cost over the last days: replica-hours beyond those that the load fills, divided by those that it fills; None
    if it is not known yet."""
    cost_as_headroom_ratio: float | None = None
    """The ratio of plain headroom that has the same cost; None if it is not known yet."""
    budget_ratio: float | None = None
    """The budget of the operator, as a share like `cost_above_load_ratio`; None if the quantile decides."""
    timezone: str = "UTC"
    """The time zone in which days and weeks of the load repeat."""
    before_growth_limit: float | None = None
    """The forecast before `maxGrowth` capped it; None if it was not."""


def forecast_of(record: Record) -> Prediction | None:
    """Return the forecast of a record; None if it has none."""
    return record.details if isinstance(record.details, Prediction) else None
