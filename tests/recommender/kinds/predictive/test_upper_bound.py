"""Neither a model nor the choice among models exceeds `maxOverHistory` times the largest load of the history."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recommender.kinds.predictive.choice.auto import run_auto
from recommender.kinds.predictive.forecast import Forecasts, ForecastTask, Model, no_fit
from recommender.kinds.predictive.history import LoadHistory, of_one_series
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas
from recommender.kinds.predictive.upper_bound import bounded_forecasts, cap_forecasts, forecast_limit, valid_history

STEP_SECONDS = 3600.0
DAYS = 9
TASK = ForecastTask(lead_seconds=3600.0, window_seconds=3600.0, max_over_history=1.5, headroom_ratio=0.1)
FLEET = FleetSettings(step_seconds=STEP_SECONDS, startup_seconds=3600.0, load_per_replica=10.0)
SHAPES = ("silence", "spike", "reset", "gap", "negative", "nan", "inf", "1e308", "1e38", "tiny")


def exploding(factor: float) -> Model:
    def forecast(_parameters: object, history: LoadHistory, origins: np.ndarray, _task: ForecastTask) -> Forecasts:
        values = history.values[:, origins] * factor
        return Forecasts(values, values)

    return Model("exploding", 0.0, no_fit, forecast)


def test_a_forecast_is_cut_by_the_largest_load_within_the_history() -> None:
    values = np.array([1.0, 8.0, 2.0, np.nan, 2.0, 3.0, 0.0])
    task = ForecastTask(1.0, 1.0, max_over_history=2.0, history_seconds=3.0)
    history = of_one_series(0.0, 1.0, values)
    found = bounded_forecasts(exploding(100.0), None, history, np.arange(7), task)
    expected = [2.0, 16.0, 16.0, np.nan, 4.0, 6.0, 0.0]
    np.testing.assert_allclose(found.upper[0], expected)
    np.testing.assert_allclose(found.median[0], expected)


def test_both_forecasts_are_cut_and_one_without_a_number_is_unknown() -> None:
    found = Forecasts(np.array([1.0, 9.0, 11.0, 3.0, 3.0]), np.array([5.0, 12.0, 12.0, np.inf, np.nan]))
    cut = cap_forecasts(found, np.array(10.0))
    np.testing.assert_array_equal(cut.upper, [5.0, 10.0, 10.0, np.nan, np.nan])
    np.testing.assert_array_equal(cut.median, [1.0, 9.0, 10.0, np.nan, np.nan])


@given(st.lists(st.floats(0, 1e6) | st.just(float("nan")), min_size=1, max_size=60), st.integers(0, 70))
def test_the_bound_follows_the_largest_load_of_the_window(values: list[float], window: int) -> None:
    task = ForecastTask(1.0, 1.0, max_over_history=1.0, history_seconds=float(window), headroom_ratio=0.0)
    origins = np.arange(len(values))
    # A history shorter than a step still has one.
    window = max(window, 1)

    def endless(_p: object, history: LoadHistory, origins: np.ndarray, _task: ForecastTask) -> Forecasts:
        most = np.full((len(history.values), len(origins)), 1e30)
        return Forecasts(most, most)

    found = bounded_forecasts(
        Model("x", 0.0, no_fit, endless), None, of_one_series(0.0, 1.0, np.array(values)), origins, task
    )
    for place in range(len(values)):
        known = [value for value in values[max(0, place - window + 1) : place + 1] if not math.isnan(value)]
        assert found.upper[0, place] == max(known) if known else np.isnan(found.upper[0, place])


def test_the_present_load_with_its_headroom_is_never_cut() -> None:
    task = ForecastTask(1.0, 1.0, max_over_history=1.0, headroom_ratio=2.0)
    assert forecast_limit(np.array(10.0), np.array(10.0), task) == 30.0


@st.composite
def histories(draw: st.DrawFn) -> LoadHistory:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = draw(st.sampled_from([1, 2, 30, DAYS * 24]))
    level = draw(st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 36.0, 1e9, 1e37]))
    wave = 1 + 0.5 * np.sin(np.arange(steps) * 2 * np.pi / 24) + rng.normal(0, draw(st.sampled_from([0.0, 0.1])), steps)
    values = np.abs(level * wave)
    for shape in draw(st.lists(st.sampled_from(SHAPES), max_size=4)):
        begin = draw(st.integers(0, steps - 1))
        part = slice(begin, begin + draw(st.integers(1, 24)))
        values[part] = {
            "silence": 0.0,
            "spike": level * 50,
            "reset": values[part] / 1000,
            "gap": np.nan,
            "negative": -values[part] - 1,
            "nan": np.nan,
            "inf": np.inf,
            "1e308": 1e308,
            "1e38": 1e38,
            "tiny": 5e-324,
        }[shape]
    return of_one_series(1_800_000_000.0, STEP_SECONDS, values)


@pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories())
def test_no_model_exceeds_the_bound_whatever_the_history(model: Model, history: LoadHistory) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rolling_forecasts(model, history, TASK, RollingOptions(refit_seconds=4 * 86_400.0))
        _check(found.upper[0], history)
        _check(found.median[0], history)
        auto = run_auto(valid_history(history), {model.name: found}, TASK, FLEET)
        _check(auto.capacity, history)
        sizes = desired_replicas(auto.capacity, FLEET.load_per_replica)
    assert (sizes[~np.isnan(sizes)] <= MOST_REPLICAS).all()


def _check(forecast: np.ndarray, history: LoadHistory) -> None:
    load = valid_history(history).values[0]
    largest = np.fmax.accumulate(load)
    limit = np.fmax(TASK.max_over_history * largest, load * (1 + TASK.headroom_ratio))
    known = ~np.isnan(forecast)
    assert np.isfinite(forecast[known]).all()
    assert (forecast[known] <= limit[known] * (1 + 1e-12)).all()
