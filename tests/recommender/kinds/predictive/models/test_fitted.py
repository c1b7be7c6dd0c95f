"""Models that statsmodels fits: the recursion here gives the same forecasts as statsmodels."""

from __future__ import annotations

import pickle
from functools import cache
from math import ceil

import numpy as np
import pytest

from recommender.kinds.predictive.forecast import ForecastTask, Model
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.coarser_grid import at_origins, bins_ahead, coarse_grid, fill_gaps, mean_by_bin
from recommender.kinds.predictive.models.holt_winters import HOLT_WINTERS, InitialState, Smoothing, smoothing_forecasts
from recommender.kinds.predictive.models.state_space import (
    HARMONICS,
    STATE_SPACE,
    StateSpaceParameters,
    design,
    filter_forecasts,
)
from tests.support.load import TASK, daily_load, history_of

STEP_SECONDS = 1800.0
DAY_STEPS = 48
heavy_models = pytest.mark.parametrize("model", [HOLT_WINTERS, STATE_SPACE], ids=lambda model: model.name)


def one(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([value])


def forecast_of(
    values: list[float], shares: tuple[float, float, float, float], level: float, trend: float, season: list[float]
) -> float:
    found = smoothing_forecasts(
        np.array(values)[:, np.newaxis, np.newaxis],
        Smoothing(*(one(share) for share in shares)),
        InitialState(one(level), one(trend), np.array([season])),
        one(1.0),
        one(0.0),
    )
    return float(found[-1, 0, 0])


def test_holt_winters_gives_the_result_of_phpa() -> None:
    """The source is algorithms/holt_winters/test_holt_winters.py of predictive-horizontal-pod-autoscaler (add, add)."""
    values = [1.0, 3, 1, 1, 3, 1, 1, 3, 1, 1, 3, 1, 1]
    found = forecast_of(values, (0.9, 0.9, 0.3, 1.0), 5 / 3, 0.0, [-2 / 3, 4 / 3, -2 / 3])
    assert ceil(found - 1e-9) == 3


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_holt_winters_with_given_parameters_gives_the_forecast_of_statsmodels(ahead: int) -> None:
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # noqa: PLC0415 - a second for each process of tests

    values = daily_load(14_400, 5, noise=0.1)
    season = [-20.0, 10, 40, 5, -5, -30]
    model = ExponentialSmoothing(  # type: ignore[no-untyped-call]
        values, trend="add", damped_trend=True, seasonal="add", seasonal_periods=6, initialization_method="known",
        initial_level=95.0, initial_trend=0.5, initial_seasonal=np.array(season),
    )  # fmt: skip
    result = model.fit(  # type: ignore[no-untyped-call]
        smoothing_level=0.3, smoothing_trend=0.1, smoothing_seasonal=0.2, damping_trend=0.9, optimized=False
    )
    found = smoothing_forecasts(
        values[:, np.newaxis, np.newaxis],
        Smoothing(one(0.3), one(0.1), one(0.2), one(0.9)),
        InitialState(one(95.0), one(0.5), np.array([season])),
        one(float(ahead)),
        one(0.0),
    )
    assert found[-1, 0, 0] == pytest.approx(result.forecast(ahead)[-1], rel=1e-9)


def test_the_filter_with_a_constant_gain_gives_the_forecast_of_statsmodels() -> None:
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # noqa: PLC0415 - likewise

    values = daily_load(STEP_SECONDS, 8, noise=0.1) / 100
    season = [{"period": DAY_STEPS, "harmonics": HARMONICS}]
    model = UnobservedComponents(values, level="llevel", freq_seasonal=season)  # type: ignore[no-untyped-call]
    result = model.filter([0.01, 0.001, 0.0002])  # type: ignore[no-untyped-call]
    history = history_of(values, STEP_SECONDS)
    gain = result.filter_results.filtered_state[:, -1] - result.filter_results.predicted_state[:, -2]
    gain = gain / result.filter_results.forecasts_error[0, -1]
    start = design()[np.newaxis] * values[0]
    parameters = StateSpaceParameters(coarse_grid(history, DAY_STEPS, 14), start, gain[np.newaxis])
    found = filter_forecasts(values[:, np.newaxis, np.newaxis], parameters, one(3.0))
    assert found[-1, 0, 0] == pytest.approx(result.forecast(3)[-1], rel=1e-3)


@cache
def fitted(model: Model, step_seconds: float) -> object:
    return model.fit(clean_history(step_seconds).until(int(6 * 86_400 / step_seconds)), TASK)


def clean_history(step_seconds: float) -> LoadHistory:
    return history_of(daily_load(step_seconds, 8, noise=0.01), step_seconds)


@heavy_models
def test_a_regular_day_is_forecast_at_steps_that_are_shorter_than_a_bin(model: Model) -> None:
    history = clean_history(600)
    origins = np.arange(6 * 144, 8 * 144 - 6)
    found = model.forecast(fitted(model, 600), history, origins, TASK)
    target = targets(history, TASK)[:, origins]
    assert np.abs(found.median / target - 1).mean() < 0.06
    assert 0.85 < (target <= found.upper).mean() <= 1.0


@heavy_models
def test_parameters_are_pickled_as_plain_arrays(model: Model) -> None:
    history = clean_history(600)
    parameters = fitted(model, 600)
    again = pickle.loads(pickle.dumps(parameters))
    assert b"statsmodels" not in pickle.dumps(parameters)
    origins = np.array([900])
    np.testing.assert_array_equal(
        model.forecast(again, history, origins, TASK).upper, model.forecast(parameters, history, origins, TASK).upper
    )


@heavy_models
def test_losing_the_oldest_steps_does_not_change_the_forecast(model: Model) -> None:
    history = clean_history(600)
    lost = 37
    later = LoadHistory(history.start_seconds + lost * 600, 600, history.values[:, lost:])
    parameters = fitted(model, 600)
    before = model.forecast(parameters, history, np.array([1100]), TASK)
    after = model.forecast(parameters, later, np.array([1100 - lost]), TASK)
    assert after.median[0, 0] == pytest.approx(before.median[0, 0], rel=0.01)


@heavy_models
@pytest.mark.parametrize("bins", [2, 9])
def test_with_less_than_two_days_there_are_no_forecasts(model: Model, bins: int) -> None:
    history = history_of(np.arange(1.0, bins + 1), STEP_SECONDS)
    found = model.forecast(model.fit(history, TASK), history, np.array([bins - 1]), TASK)
    assert np.isnan(found.median).all()


@pytest.mark.parametrize(
    ("step_seconds", "bins_a_day", "steps_per_bin"),
    [(10, 96, 90), (60, 96, 15), (300, 96, 3), (1800, 48, 1), (420, 69, 3)],
)
def test_there_are_at_most_96_bins_a_day(step_seconds: float, bins_a_day: int, steps_per_bin: int) -> None:
    grid = coarse_grid(history_of(np.zeros(10), step_seconds), 96, 14)
    assert (grid.bins_a_day, grid.steps_per_bin) == (bins_a_day, steps_per_bin)


def test_at_every_step_a_bin_of_some_phase_has_just_ended() -> None:
    values = np.arange(40.0)
    history = history_of(values, 300)
    grid = coarse_grid(history, 96, 14)
    found = at_origins(mean_by_bin(history, grid), history, grid, np.arange(40))
    np.testing.assert_array_equal(found[0, :2], [np.nan, np.nan])
    np.testing.assert_allclose(found[0, 2:], values[2:] - 1)


def test_a_bin_with_less_than_half_of_its_steps_is_unknown() -> None:
    history = history_of([1.0, np.nan, np.nan, 4.0, np.nan, 6.0], 300)
    grid = coarse_grid(history, 96, 14)
    np.testing.assert_array_equal(mean_by_bin(history, grid)[:, 0, 0], [np.nan, 5.0])


def test_moments_ahead_count_from_the_middle_of_a_bin() -> None:
    grid = coarse_grid(history_of(np.zeros(10), 300), 96, 14)
    np.testing.assert_allclose(bins_ahead(ForecastTask(600, 600), 300, grid), [1.0, 4 / 3])


def test_gaps_are_filled_from_the_past_alone() -> None:
    values = np.array([np.nan, 1.0, 2.0, np.nan, np.nan, 9.0, np.nan])
    np.testing.assert_array_equal(fill_gaps(values, 3), [1.0, 1.0, 2.0, 1.0, 1.0, 9.0, 1.0])
    assert np.isnan(fill_gaps(np.full(2, np.nan), 3)).all()
