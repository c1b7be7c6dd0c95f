"""Rolling forecasts, including refits, know nothing of what comes after their moment."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from recommender.kinds.predictive.forecast import Forecasts, ForecastTask, Model
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory, of_one_series
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, refit_steps, rolling_forecasts

STEP_SECONDS = 1800.0
TASK = ForecastTask(lead_seconds=3600.0, window_seconds=3600.0)
KNOWN = 7 * 48
"""Steps of the past that both futures share; by the end of the sixth day all models have been fitted twice."""


def history(future_scale: float) -> LoadHistory:
    steps = np.arange(9 * 48)
    load = 100 + 60 * np.sin(2 * np.pi * steps / 48) + np.random.default_rng(5).normal(0, 1, len(steps))
    load[KNOWN:] *= future_scale
    return of_one_series(0.0, STEP_SECONDS, np.maximum(load, 0.0))


@cache
def forecasts(model: Model, future_scale: float) -> Forecasts:
    return rolling_forecasts(model, history(future_scale), TASK, RollingOptions())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_no_forecast_depends_on_what_comes_after_it(model: Model) -> None:
    one, other = forecasts(model, 1.0), forecasts(model, 40.0)
    assert np.isfinite(one.upper[0, KNOWN - 1])
    np.testing.assert_array_equal(one.median[:, :KNOWN], other.median[:, :KNOWN])
    np.testing.assert_array_equal(one.upper[:, :KNOWN], other.upper[:, :KNOWN])
    assert not np.array_equal(one.upper[:, KNOWN:], other.upper[:, KNOWN:], equal_nan=True), (
        "the futures differ, and so must these"
    )


def test_a_fit_that_fails_keeps_the_last_parameters() -> None:
    seen: list[int] = []

    def forecast(parameters: int, history: LoadHistory, origins: np.ndarray, task: ForecastTask) -> Forecasts:  # noqa: ARG001 - as the protocol has it
        values = np.full((1, len(origins)), float(parameters))
        return Forecasts(values, values)

    def fit(_model: Model, known: LoadHistory, _task: ForecastTask) -> int | None:
        seen.append(known.steps)
        return known.steps if len(seen) != 2 else None

    model = Model("counting", DAY_SECONDS, lambda _history, _task: None, forecast)
    unbounded = replace(TASK, max_over_history=1e6)
    found = rolling_forecasts(model, history(1.0), unbounded, RollingOptions(), fit)
    assert seen == refit_steps(model, history(1.0), unbounded, RollingOptions()).tolist() == [48, 144, 240, 336]
    assert np.isnan(found.upper[0, :48]).all()
    assert [found.upper[0, step] for step in (48, 143, 144, 239, 240, 336)] == [48, 48, 48, 48, 240, 336]


BOUNDED = replace(TASK, history_seconds=3.5 * DAY_SECONDS)
PAST = 168
"""Steps of the history of `BOUNDED`."""
REFITTED = 192
"""The step of the second fit of models that need two days."""


def test_each_fit_takes_the_configured_history_as_in_run() -> None:
    seen: list[tuple[int, int]] = []

    def fit(_model: Model, known: LoadHistory, _task: ForecastTask) -> int:
        seen.append((known.first, known.first + known.steps))
        return 1

    def forecast(_parameters: int, known: LoadHistory, origins: np.ndarray, _task: ForecastTask) -> Forecasts:
        assert PAST * 5 // 7 <= known.steps <= PAST or known.first == 0
        assert origins[-1] == known.steps - 1, "nothing after the last origin is known"
        return Forecasts(known.values[:, origins], known.values[:, origins])

    model = Model("windowed", DAY_SECONDS, lambda _history, _task: None, forecast)
    found = rolling_forecasts(model, history(1.0), BOUNDED, RollingOptions(), fit)
    assert seen == [(0, 48), (0, 144), (240 - PAST, 240), (336 - PAST, 336)]
    np.testing.assert_array_equal(found.upper[:, 48:], history(1.0).values[:, 48:])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_data_older_than_the_history_does_not_change_forecasts(model: Model) -> None:
    whole = history(1.0)
    found = rolling_forecasts(model, whole, BOUNDED, RollingOptions())
    other = whole.values.copy()
    gone = REFITTED - PAST
    other[:, :gone] = other[:, :gone][:, ::-1] * 3
    changed = rolling_forecasts(model, replace(whole, values=other), BOUNDED, RollingOptions())
    np.testing.assert_allclose(changed.upper[:, REFITTED:], found.upper[:, REFITTED:], rtol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_history_as_long_as_the_trace_changes_nothing(model: Model) -> None:
    bounded = replace(TASK, history_seconds=history(1.0).span_seconds)
    one, other = forecasts(model, 1.0), rolling_forecasts(model, history(1.0), bounded, RollingOptions())
    np.testing.assert_array_equal(one.median, other.median)
    np.testing.assert_array_equal(one.upper, other.upper)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_model_that_needs_a_longer_history_does_not_take_part(model: Model) -> None:
    less = replace(TASK, history_seconds=0.9 * DAY_SECONDS)
    needs_more = model.least_history_seconds > less.history_seconds
    assert (len(refit_steps(model, history(1.0), less, RollingOptions())) == 0) == needs_more
    if needs_more:
        assert np.isnan(rolling_forecasts(model, history(1.0), less, RollingOptions()).upper).all()
