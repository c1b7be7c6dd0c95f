"""Seasonal forecasts are held for the time in which pods start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import capacity_of
from recommender.kinds.predictive.forecast import Model, no_fit
from recommender.kinds.predictive.models.seasonal import SEASONAL, SEASONAL_HELD
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, needed_replicas, simulate
from tests.support.load import TASK, daily_load, history_of

DAY_STEPS = 288
LEAD_STEPS = 7
SLOW = replace(TASK, lead_seconds=LEAD_STEPS * 300.0, window_seconds=600.0)


def steps_short(model: Model) -> int:
    """Return in how many steps of the last days a fleet lacks pods, if these take half an hour to start."""
    values = np.full(8 * DAY_STEPS, 100.0)
    for noon in range(DAY_STEPS // 2, len(values), DAY_STEPS):
        values[noon : noon + 3] = 1000.0
    history = history_of(values)
    upper = model.forecast(None, history, np.arange(history.steps), SLOW).upper[0]
    fleet = FleetSettings(300.0, 1800.0, load_per_replica=10.0)
    serving = simulate(desired_replicas(capacity_of(values, upper, 0.1), 10.0), fleet).serving
    return int((needed_replicas(values, 10.0) > serving)[5 * DAY_STEPS :].sum())


def test_pods_are_kept_for_a_job_that_is_shorter_than_their_start_up() -> None:
    assert SEASONAL_HELD.fit is no_fit
    assert steps_short(SEASONAL_HELD) == 0
    assert steps_short(SEASONAL) > 0


@pytest.mark.parametrize("origin", [3 * DAY_STEPS, 3 * DAY_STEPS + 100])
def test_the_largest_forecast_of_the_lead_is_held_without_later_values(origin: int) -> None:
    history = history_of(daily_load(300, 4))
    poisoned = history_of(history.values[0].copy())
    poisoned.values[:, origin + 1 :] = 1e9
    former = SEASONAL.forecast(None, history, np.arange(origin - LEAD_STEPS, origin + 1), SLOW)
    for given in (history, poisoned):
        found = SEASONAL_HELD.forecast(None, given, np.array([origin]), SLOW)
        assert found.upper[0, 0] == former.upper[0].max()
        assert found.median[0, 0] == former.median[0, -1]


def test_an_unknown_load_has_no_forecast_and_a_configured_growth_limits_the_held_value() -> None:
    history = history_of(daily_load(300, 4))
    history.values[:, 1000] = np.nan
    origins = np.array([1000, 1001])
    found = SEASONAL_HELD.forecast(None, history, origins, SLOW).upper[0]
    assert np.isnan(found[0])
    assert found[1] > 0
    limited = SEASONAL_HELD.forecast(None, history, origins[1:], replace(SLOW, max_growth=1.0)).upper
    assert limited[0, 0] <= history.values[0, 990:1002][~np.isnan(history.values[0, 990:1002])].max()
