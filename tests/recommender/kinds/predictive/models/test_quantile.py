from __future__ import annotations

import pickle

import numpy as np
import pytest

from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.quantile import QUANTILE
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from tests.recommender.kinds.predictive.waves import DAY_STEPS, STEP_SECONDS, bursts_every_day, with_values

TASK = ForecastTask(lead_seconds=1200.0, window_seconds=900.0)


@pytest.fixture(scope="module")
def history() -> LoadHistory:
    return bursts_every_day(10)


@pytest.fixture(scope="module")
def parameters(history: LoadHistory) -> object:
    return QUANTILE.fit(history.until(8 * DAY_STEPS), TASK)


def nightly(days: int) -> LoadHistory:
    """Return loads that are known only for the last five hours of each day, such as those of nightly jobs."""
    whole = bursts_every_day(days)
    is_known = np.arange(whole.steps)[::-1] % DAY_STEPS < 5 * 3600 / STEP_SECONDS
    values = np.where(is_known, whole.values, np.nan)
    return with_values(whole, np.concatenate([values * size for size in (1.0, 2.0, 3.0, 4.0)]))


@pytest.mark.parametrize("days", [2, 3, 5])
def test_a_load_that_is_known_for_a_few_hours_a_day_is_fitted(days: int) -> None:
    history, task = nightly(days), ForecastTask(STEP_SECONDS, STEP_SECONDS)
    found = QUANTILE.forecast(QUANTILE.fit(history, task), history, every_origin(history, history.steps - 1), task)
    assert np.isfinite(found.upper).all()


def test_a_load_that_is_known_for_a_few_hours_of_one_day_is_not_fitted() -> None:
    history = nightly(2)
    values = np.where(np.arange(history.steps) < DAY_STEPS, np.nan, history.values)
    assert QUANTILE.fit(with_values(history, values), ForecastTask(STEP_SECONDS, STEP_SECONDS)) is None


def every_origin(history: LoadHistory, first: int) -> np.ndarray:
    return np.arange(first, history.steps, dtype=np.int64)


def test_the_upper_forecast_covers_about_the_configured_share_of_targets(
    history: LoadHistory, parameters: object
) -> None:
    origins = every_origin(history, 8 * DAY_STEPS)
    found = QUANTILE.forecast(parameters, history, origins, TASK)
    target = targets(history, TASK)[:, origins]
    known = ~np.isnan(target)
    assert (target <= found.upper)[known].mean() >= 0.9
    assert np.median(found.upper / found.median) < 1.5
    assert 0.3 < (target <= found.median)[known].mean() < 0.7


def test_a_daily_rise_is_forecast(history: LoadHistory, parameters: object) -> None:
    before, quiet = 9 * DAY_STEPS + 48, 9 * DAY_STEPS + 30
    found = QUANTILE.forecast(parameters, history, np.array([before, quiet]), TASK)
    rise = found.median[0] / history.values[0, [before, quiet]]
    assert rise[0] > 2.0
    assert rise[1] < 1.5


def test_forecasts_scale_with_the_unit_of_the_load(history: LoadHistory, parameters: object) -> None:
    origins = every_origin(history, 9 * DAY_STEPS)
    large = with_values(history, history.values * 4096)
    found = QUANTILE.forecast(parameters, history, origins, TASK)
    scaled = QUANTILE.forecast(parameters, large, origins, TASK)
    np.testing.assert_allclose(scaled.upper, found.upper * 4096, rtol=1e-9)


def test_series_together_or_one_by_one_have_the_same_forecasts(parameters: object) -> None:
    days = [bursts_every_day(9, seed, size) for seed, size in ((3, 10.0), (4, 1e6), (5, 300.0))]
    many = with_values(days[0], np.concatenate([each.values for each in days]))
    last = np.array([many.steps - 1])
    found = QUANTILE.forecast(parameters, many, last, TASK)
    for row, each in enumerate(days):
        alone = QUANTILE.forecast(parameters, each, last, TASK)
        np.testing.assert_allclose(found.upper[row], alone.upper[0])
        np.testing.assert_allclose(found.median[row], alone.median[0])


def test_the_last_origin_alone_has_the_same_forecast_as_among_all_origins(
    history: LoadHistory, parameters: object
) -> None:
    every = QUANTILE.forecast(parameters, history, every_origin(history, 9 * DAY_STEPS), TASK)
    last = QUANTILE.forecast(parameters, history, np.array([history.steps - 1]), TASK)
    np.testing.assert_allclose(last.upper[:, 0], every.upper[:, -1])


def test_values_after_the_origin_do_not_change_forecasts(history: LoadHistory) -> None:
    poisoned = history.values.copy()
    poisoned[:, 5 * DAY_STEPS + 20 :] = 1e9
    options = RollingOptions(refit_seconds=2 * DAY_SECONDS, first_step=4 * DAY_STEPS)
    clean = rolling_forecasts(QUANTILE, history.until(6 * DAY_STEPS), TASK, options)
    found = rolling_forecasts(QUANTILE, with_values(history, poisoned).until(6 * DAY_STEPS), TASK, options)
    seen = 5 * DAY_STEPS + 20
    np.testing.assert_array_equal(clean.upper[:, :seen], found.upper[:, :seen])
    np.testing.assert_array_equal(clean.median[:, :seen], found.median[:, :seen])


def test_a_constant_load_is_forecast_as_constant() -> None:
    history = LoadHistory(0.0, STEP_SECONDS, np.full((1, 3 * DAY_STEPS), 50.0))
    found = QUANTILE.forecast(QUANTILE.fit(history, TASK), history, every_origin(history, 2 * DAY_STEPS), TASK)
    np.testing.assert_allclose(found.upper, 50.0, rtol=0.02)
    np.testing.assert_allclose(found.median, 50.0, rtol=0.02)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.full((1, 3 * DAY_STEPS), np.nan), id="nothing is known"),
        pytest.param(np.zeros((1, 3 * DAY_STEPS)), id="no load at all"),
        pytest.param(np.ones((1, 20)), id="a few steps"),
    ],
)
def test_there_is_no_fit_without_targets_to_learn_from(values: np.ndarray) -> None:
    assert QUANTILE.fit(LoadHistory(0.0, STEP_SECONDS, values), TASK) is None


def test_there_is_no_forecast_within_a_gap_but_there_is_one_after_it(history: LoadHistory, parameters: object) -> None:
    values = history.values.copy()
    gap = slice(9 * DAY_STEPS + 10, 9 * DAY_STEPS + 40)
    values[:, gap] = np.nan
    found = QUANTILE.forecast(parameters, with_values(history, values), every_origin(history, 9 * DAY_STEPS), TASK)
    assert np.isnan(found.upper[0, 15:40]).all()
    assert np.isfinite(found.upper[0, 41:]).all()


def test_parameters_can_be_passed_between_processes(history: LoadHistory, parameters: object) -> None:
    last = np.array([history.steps - 1])
    again = pickle.loads(pickle.dumps(parameters))
    found = QUANTILE.forecast(again, history, last, TASK)
    np.testing.assert_array_equal(found.upper, QUANTILE.forecast(parameters, history, last, TASK).upper)
