"""Assumptions on what no recording shows, from the flags and the configuration: forecasts and spot machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.flags.parsing import UsageError
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.replay.assumptions import Assumptions
from recommender.replay.forecasts.workload_forecasts import ForecastPlan
from recommender.replay.spot import SpotMarket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings

_MOST_INTERRUPTIONS: Final = 60.0
"""Highest rate of interruptions that is accepted, per node and hour."""


def assumptions_of(values: FlagValues, configuration: Configuration, settings: ClusterSizeSettings) -> Assumptions:
    """Return the stated assumptions. Raises UsageError."""
    market = _market(values)
    if not settings.forecasts:
        return Assumptions(market=market)
    return Assumptions(tuple(_forecasts(configuration, settings)), market)


def _forecasts(configuration: Configuration, settings: ClusterSizeSettings) -> Iterator[ForecastPlan]:
    """Yield the forecasts of the configuration."""
    named = {one.recommendation for one in settings.forecasts}
    for each in configuration.recommendations:
        if each.policy.name in named and isinstance(each.subject, PredictiveSettings):
            yield ForecastPlan(each.subject, each.policy.targets)


def _market(values: FlagValues) -> SpotMarket | None:
    """Return how spot machines are interrupted; None if no flag states it."""
    given = [name for name in ("spot-interruptions", "spot-absence") if name in values.given]
    if not given:
        return None
    if len(given) == 1:
        raise UsageError(
            f"--{given[0]} is given alone: a replay of spot machines needs --spot-interruptions GROUP=RATE, and "
            "--spot-absence, for how long after an interruption no further machine is available"
        )
    rates: dict[str, float] = {}
    for part in values.text("spot-interruptions").split(","):
        name, _, rate = part.strip().rpartition("=")
        rates[name] = _rate(name, rate)
    return SpotMarket(rates, values.seconds("spot-absence"), values.integer("spot-seed"))


def _rate(name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not name or not 0 <= rate <= _MOST_INTERRUPTIONS:
        raise UsageError(
            f"--spot-interruptions: {f'{name}={text}' if name else text!r} is not GROUP=RATE: write how often a node "
            f"of the group is interrupted in an hour, from 0 to {_MOST_INTERRUPTIONS:g}, such as workers-spot=0.02"
        )
    return rate
