"""A forecast of a load, as far as records and decisions know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import Record


@dataclass(frozen=True, slots=True)
class PredictedLoad:
    """The present load of a target, and the load when capacity that is requested now will serve."""

    now: float
    """The observed load."""
    predicted: float | None
    """The largest load expected from `at` on, until a later decision can help; None if no model has a forecast."""
    at: float | None
    """Seconds since the Unix epoch: now + start-up + control delays."""
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
    """`maxOverHistory`: how many times `largest` a forecast may be."""
    models: tuple[str, ...] = ()
    """Models whose forecasts were capped."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A forecast with the model that made it and the record of all models: the details of a predictive record."""

    has_value: ClassVar[bool] = False
    """No: the value is the number of replicas."""

    load: PredictedLoad
    model: str
    """The model in use, as the configuration spells it."""
    model_reason: str
    """Why this model is used, in one sentence with figures."""
    shortage_versus_headroom: Mapping[str, float | None] = field(default_factory=dict)
    """By model: its recent shortage divided by that of plain headroom at equal replica-hours; None if neither has
    any. Models that are left out are not listed."""
    last_day: str = ""
    """The result of this model over the last day, compared with plain headroom at equal cost; empty if unknown."""
    bound: ForecastBound | None = None
    """How the forecast was capped; None if it was not."""
    cost_above_load_ratio: float | None = None
    """The cost over the last days: replica-hours above those that the load fills, as a share of the latter; None if not
    known yet."""
    cost_as_headroom_ratio: float | None = None
    """Plain headroom with the same cost."""
    budget_ratio: float | None = None
    """The budget of the operator, as a share like `cost_above_load_ratio`; None if the quantile decides."""
    timezone: str = "UTC"
    """The time zone in which days and weeks of the load repeat."""


def forecast_of(record: Record) -> Prediction | None:
    """Return the forecast of a record; None if it has none."""
    return record.details if isinstance(record.details, Prediction) else None
