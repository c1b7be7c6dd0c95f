"""Properties of every model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.boosted import BOOSTED, BOOSTED_CONFORMAL
from recommender.kinds.predictive.models.quantile import QUANTILE
from recommender.kinds.predictive.models.table import MODELS, model_named
from recommender.kinds.predictive.models.trend import TREND
from recommender.kinds.predictive.predictive_settings import ModelName
from tests.support.load import TASK, daily_load, history_of

if TYPE_CHECKING:
    from recommender.kinds.predictive.forecast import Forecasts, Model

STEP_SECONDS = 1800.0
FITTED_STEPS = 168
POOLED = (QUANTILE, BOOSTED, BOOSTED_CONFORMAL)
"""Models of which one fit serves all series, since they forecast ratios to the current load."""
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def fitted(model: Model, history: LoadHistory, steps: int) -> Any:  # noqa: ANN401 - each model has its own parameters
    return model.fit(history.until(steps), TASK)


@cache
def fitted_to_noise(model: Model) -> Any:  # noqa: ANN401 - likewise
    return fitted(model, noisy_history(), FITTED_STEPS)


def upper_and_median(found: Forecasts) -> np.ndarray[Any, Any]:
    return np.stack([found.median, found.upper])


def noisy_history(days: float = 6) -> LoadHistory:
    rows = [daily_load(STEP_SECONDS, days, noise) for noise in (0.02, 0.2)]
    rows[1][100:115] = np.nan
    return history_of(rows, STEP_SECONDS)


def test_every_model_name_can_be_configured() -> None:
    names = [model.name for model in MODELS]
    assert set(names) <= {str(name) for name in ModelName}
    assert [model_named(name).name for name in names] == names
    with pytest.raises(KeyError):
        model_named("auto")


@every_model
def test_values_after_the_origin_do_not_change_forecasts(model: Model) -> None:
    history = noisy_history()
    origin = history.steps - 60
    origins = np.arange(origin - 20, origin + 1)
    clean = upper_and_median(model.forecast(fitted_to_noise(model), history, origins, TASK))
    assert np.isfinite(clean).all() or model is TREND
    for poison in (np.nan, 1e9, 0.0):
        values = history.values.copy()
        values[:, origin + 1 :] = poison
        poisoned = LoadHistory(history.start_seconds, STEP_SECONDS, values)
        found = upper_and_median(model.forecast(fitted_to_noise(model), poisoned, origins, TASK))
        np.testing.assert_array_equal(found, clean)


@every_model
def test_series_and_origins_together_or_one_by_one_have_the_same_forecasts(model: Model) -> None:
    history = noisy_history()
    origins = np.arange(FITTED_STEPS, history.steps, 19)
    together = upper_and_median(model.forecast(fitted_to_noise(model), history, origins, TASK))
    alone = LoadHistory(history.start_seconds, STEP_SECONDS, history.values[1:])
    parameters = fitted_to_noise(model) if model in POOLED else fitted(model, alone, FITTED_STEPS)
    for index, origin in enumerate(origins):
        found = model.forecast(parameters, alone.until(int(origin) + 1), np.array([origin]), TASK)
        np.testing.assert_allclose(upper_and_median(found)[:, 0, 0], together[:, 1, index], rtol=1e-6)


@every_model
@pytest.mark.parametrize("level", [0.0, 250.0])
def test_a_constant_load_is_forecast_unchanged(model: Model, level: float) -> None:
    history = history_of(np.full(int(16 * 86400 / STEP_SECONDS), level), STEP_SECONDS)
    found = model.forecast(fitted(model, history, history.steps), history, np.arange(720, history.steps), TASK)
    if model is TREND:
        # Nothing rises.
        assert np.isnan(found.upper).all()
        return
    if level == 0 and (model in POOLED or model.name in {"conformal", "largest-hour"}):
        # They measure errors by the load or by how it moves, and there is neither.
        assert np.isnan(found.upper).all()
        return
    np.testing.assert_allclose(found.median, level, rtol=1e-6, atol=1e-9)
    share = TASK.headroom_ratio if model.name == "headroom" else 0.0
    np.testing.assert_allclose(found.upper, level * (1 + share), rtol=1e-6, atol=1e-9)


@every_model
def test_an_unknown_load_has_no_forecast_and_no_forecast_is_negative(model: Model) -> None:
    values = daily_load(STEP_SECONDS, 6, 0.3, level=2.0)
    values[150:] = np.maximum(values[150:] - 1.5, 0.0)
    values[180:200] = np.nan
    values[220::7] = np.nan
    history = history_of(values, STEP_SECONDS)
    origins = np.arange(FITTED_STEPS, history.steps)
    found = upper_and_median(model.forecast(fitted(model, history, FITTED_STEPS), history, origins, TASK))
    assert np.isnan(found[:, :, np.isnan(values[origins])]).all()
    assert not (found < 0).any()
    assert not np.isinf(found).any()


@every_model
@pytest.mark.parametrize(
    "values", [[5.0], [np.nan], [0.0, 5.0], np.full(900, np.nan)], ids=["one", "unknown", "two", "all-unknown"]
)
def test_too_little_history_gives_no_forecast_or_the_load_itself_but_no_error(model: Model, values: object) -> None:
    history = history_of(values, STEP_SECONDS)
    origins = np.array([history.steps - 1])
    found = model.forecast(fitted(model, history, history.steps), history, origins, TASK)
    if model.name in {"reactive", "headroom"}:
        np.testing.assert_array_equal(found.median, history.values[:, -1:])
    else:
        assert np.isnan(found.median).all()
        assert np.isnan(found.upper).all()


@every_model
def test_without_series_there_are_no_forecasts(model: Model) -> None:
    history = LoadHistory(0.0, STEP_SECONDS, np.empty((0, 800)))
    found = model.forecast(fitted(model, history, 700), history, np.arange(700, 800), TASK)
    assert found.upper.shape == (0, 100)


@every_model
def test_a_configured_growth_limit_bounds_both_forecasts(model: Model) -> None:
    history = noisy_history()
    origins = np.arange(FITTED_STEPS, history.steps)
    task = replace(TASK, max_growth=1.05)
    found = model.forecast(fitted_to_noise(model), history, origins, task)
    present = history.values[:, origins]
    level = (1.05 if model.name != "reactive" else 1.0) * present * (1 + 1e-9)
    assert not (found.median > level).any()
    assert not (found.upper > level).any()
