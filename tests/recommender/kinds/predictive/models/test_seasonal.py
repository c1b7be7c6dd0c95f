"""Forecasts use the same time of other days, scaled to today."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.seasonal import SEASONAL, SEASONAL_HELD
from recommender.kinds.predictive.models.table import lacks
from tests.support.load import TASK, daily_load, history_of

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import Model

DAY_STEPS = 288


@pytest.mark.parametrize("days", [2, 8, 15])
@pytest.mark.parametrize("step_seconds", [300, 1800])
def test_a_day_like_the_others_is_forecast_exactly(days: int, step_seconds: float) -> None:
    history = history_of(daily_load(step_seconds, days + 1), step_seconds)
    origins = np.arange(history.steps - int(86_400 / step_seconds) + 6, history.steps - 20)
    found = SEASONAL.forecast(None, history, origins, TASK)
    np.testing.assert_allclose(found.median, targets(history, TASK)[:, origins], rtol=1e-9)


def test_a_day_of_half_the_load_keeps_the_shape_of_the_others() -> None:
    values = daily_load(300, 8)
    values[7 * DAY_STEPS :] *= 0.5
    history = history_of(values)
    origins = np.arange(7 * DAY_STEPS + 20, 8 * DAY_STEPS - 20)
    found = SEASONAL.forecast(None, history, origins, TASK)
    np.testing.assert_allclose(found.median, targets(history, TASK)[:, origins], rtol=1e-9)


def test_a_weekend_is_forecast_by_the_last_weekend() -> None:
    """A working day has its peak at noon, and a day of the weekend at midnight."""
    week = daily_load(300, 7)
    week[5 * DAY_STEPS :] = np.roll(week[5 * DAY_STEPS :], DAY_STEPS // 2)
    history = history_of(np.tile(week, 2))
    within_a_day = np.arange(20, DAY_STEPS - 20)
    origins = np.concatenate([12 * DAY_STEPS + within_a_day, 13 * DAY_STEPS + within_a_day])
    found = SEASONAL.forecast(None, history, origins, TASK).median
    error = np.abs(found / targets(history, TASK)[:, origins] - 1)
    assert error.max() < 0.1


def test_a_regular_job_after_zero_load_is_forecast() -> None:
    values = np.zeros(3 * DAY_STEPS)
    values[100::DAY_STEPS] = 50.0
    history = history_of(values)
    at = 2 * DAY_STEPS + 100
    found = SEASONAL.forecast(None, history, np.arange(at - 5, at), TASK).median
    np.testing.assert_allclose(found[0], [0, 0, 50, 50, 0])


def test_a_tiny_load_yesterday_does_not_multiply_today_without_bounds() -> None:
    values = np.full(3 * DAY_STEPS, 100.0)
    values[::DAY_STEPS] = 1e-9
    values[1:DAY_STEPS:2] = 1e-9
    history = history_of(values)
    found = SEASONAL.forecast(None, history, np.arange(2 * DAY_STEPS, 3 * DAY_STEPS), TASK)
    assert np.nanmax(found.median) <= 100.0 * 11


@pytest.mark.parametrize("model", [SEASONAL, SEASONAL_HELD], ids=lambda model: model.name)
@pytest.mark.parametrize("factor", [1e3, 1e6])
@pytest.mark.parametrize("day", [0, 1, 2, 3, 7])
def test_one_wrong_sample_comes_back_as_less_than_ten_usual_peaks(model: Model, factor: float, day: int) -> None:
    """As after a counter whose whole value was taken for the increase of a minute."""
    usual = daily_load(300, 16, noise=0.05)
    values, wrong = usual.copy(), day * DAY_STEPS + 100
    values[wrong] *= factor
    # Left out are the first hours, in which the current level contains the sample, and four days without a usual one.
    origins = np.arange(max(wrong + DAY_STEPS // 2, 4 * DAY_STEPS), len(values))
    found = model.forecast(None, history_of(values), origins, TASK)
    assert np.nanmax(found.upper) < 10 * usual.max()


def test_a_wrong_sample_after_an_outage_is_compared_with_the_days_before_the_outage() -> None:
    usual = daily_load(300, 20, noise=0.05)
    values, wrong = usual.copy(), 14 * DAY_STEPS + 100
    values[6 * DAY_STEPS : 14 * DAY_STEPS] = np.nan
    values[wrong] *= 1e6
    origins = np.arange(wrong + DAY_STEPS // 2, len(values))
    assert np.nanmax(SEASONAL.forecast(None, history_of(values), origins, TASK).upper) < 10 * usual.max()


def _periodic_job(days: int, every: int) -> FloatArray:
    """Return a load of 5 with a job of 300 for an hour, first on the sixth day and then every so many days."""
    values = np.full(days * DAY_STEPS, 5.0)
    for day in range(5, days, every):
        values[day * DAY_STEPS + 100 : day * DAY_STEPS + 112] += 300
    return values


@pytest.mark.parametrize("model", [SEASONAL, SEASONAL_HELD], ids=lambda model: model.name)
@pytest.mark.parametrize(("every", "days", "least"), [(7, 27, 240), (14, 48, 120)])
def test_a_job_of_sixty_times_the_usual_load_counts_in_full_from_its_second_time_on(
    model: Model, every: int, days: int, least: float
) -> None:
    """A season is what has come twice. Half of the days that count most had no job if it comes every two weeks."""
    history = history_of(_periodic_job(days, every))
    origin = (days - 1) * DAY_STEPS + 99
    assert model.forecast(None, history, np.array([origin]), TASK).upper[0, 0] > least


@pytest.mark.parametrize("model", [SEASONAL, SEASONAL_HELD], ids=lambda model: model.name)
def test_nothing_after_an_origin_has_an_influence_on_its_forecast(model: Model) -> None:
    values = np.tile(_periodic_job(14, 7), (3, 1))
    values[0, 50] = values[1, DAY_STEPS + 70] = values[2, 9 * DAY_STEPS + 80] = 1e6
    values[1, 2 * DAY_STEPS : 4 * DAY_STEPS] = np.nan
    whole = history_of(values)
    origins = np.arange(2 * DAY_STEPS, whole.steps, 48)
    found = model.forecast(None, whole, origins, TASK).upper
    for place, origin in enumerate(origins.tolist()):
        known = model.forecast(None, whole.until(origin + 1), np.array([origin]), TASK).upper
        np.testing.assert_array_equal(known[:, 0], found[:, place])


def test_a_load_that_is_fifty_times_as_large_for_good_keeps_the_shape_of_its_days_from_the_third_on() -> None:
    values = daily_load(300, 14)
    values[10 * DAY_STEPS :] *= 50
    history = history_of(values)
    origins = np.arange(10 * DAY_STEPS + 20, 14 * DAY_STEPS - 20)
    ratio = (SEASONAL.forecast(None, history, origins, TASK).median / targets(history, TASK)[:, origins])[0]
    assert ratio.min() > 0.85
    # The rise at midnight of the first of these days is expected again for a while.
    is_counted = (origins >= 12 * DAY_STEPS) & (origins % DAY_STEPS >= 20) & (origins % DAY_STEPS < DAY_STEPS - 20)
    np.testing.assert_allclose(ratio[is_counted], 1, atol=0.015)


def test_a_horizon_longer_than_a_day_uses_only_completed_days() -> None:
    task = replace(TASK, lead_seconds=30 * 3600)
    history = history_of(daily_load(1800, 8), 1800)
    origin = 250
    poisoned = history_of(history.values[0].copy(), 1800)
    poisoned.values[:, origin + 1 :] = 1e9
    for given in (history, poisoned):
        found = SEASONAL.forecast(None, given, np.array([origin]), task)
        assert found.median[0, 0] == pytest.approx(targets(history, task)[0, origin])


def test_less_than_two_days_of_load_are_reported_as_missing_history() -> None:
    values = np.full(3 * DAY_STEPS, 5.0)
    values[: 2 * DAY_STEPS] = np.nan
    assert lacks(SEASONAL, history_of(values)) == (
        "seasonal needs 2 days of load to see a day twice, and 24 h are known"
    )
    assert lacks(SEASONAL, history_of(values[:5])) == "seasonal needs a known load, and none is known"
    assert lacks(SEASONAL, history_of(np.full(2 * DAY_STEPS, 5.0))) is None
