"""Reports of users of predictive autoscalers about models and their forecasts."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.holt_winters import HOLT_WINTERS
from recommender.kinds.predictive.models.seasonal import SEASONAL
from recommender.kinds.predictive.models.table import MODELS, lacks
from recommender.kinds.predictive.models.trend import TREND
from tests.support.load import TASK, daily_load, history_of

STEP_SECONDS = 1800.0
DAY_STEPS = 48


def steps_of(days: float) -> int:
    return int(days * DAY_STEPS)


def test_without_enough_load_there_is_no_prediction_and_never_0__phpa_0_13_2() -> None:
    """PHPA's Holt-Winters predicts 0 without an error, and KEDA's elastic-forecast falls back to 0."""
    history = history_of(np.full(steps_of(1), 40.0), STEP_SECONDS)
    for model in MODELS:
        found = model.forecast(model.fit(history, TASK), history, np.array([history.steps - 1]), TASK)
        assert not (found.median < 39.9).any(), model.name
        assert not (found.upper < 39.9).any(), model.name


def test_holt_winters_reads_its_history_oldest_first__phpa_0_13_2() -> None:
    """PHPA prunes its history newest-first, and passes the list on in that order: growth then looks like a decline."""
    values = daily_load(STEP_SECONDS, 6) * np.linspace(1.0, 3.0, steps_of(6))
    history = history_of(values, STEP_SECONDS)
    parameters = HOLT_WINTERS.fit(history.until(steps_of(5)), TASK)
    origins = np.arange(steps_of(5), steps_of(6) - 3)
    found = HOLT_WINTERS.forecast(parameters, history, origins, TASK).median
    target = targets(history, TASK)[:, origins]
    backwards = LoadHistory(history.start_seconds, STEP_SECONDS, history.values[:, ::-1])
    wrong = HOLT_WINTERS.forecast(HOLT_WINTERS.fit(backwards, TASK), backwards, origins, TASK).median
    assert np.abs(found - target).mean() < 0.1 * target.mean()
    assert np.abs(wrong - target).mean() > 0.3 * target.mean()


@pytest.mark.parametrize("level", [0.0, 12.0])
def test_a_constant_load_can_be_predicted__crane_87(level: float) -> None:
    history = history_of(np.full(steps_of(4), level), STEP_SECONDS)
    for model in MODELS:
        assert lacks(model, history) is None
        parameters = model.fit(history.until(steps_of(3)), TASK)
        found = model.forecast(parameters, history, np.array([history.steps - 1]), TASK)
        # A model that is relative to the load has nothing to learn from none, and `trend` knows rises alone: then
        # headroom acts, whose median is the load.
        median = np.nan_to_num(found.median[0, 0], nan=level if model is TREND else 0.0)
        assert median == pytest.approx(level, abs=1e-9), model.name


def test_an_outlier_of_the_last_period_is_not_repeated__crane_787() -> None:
    """Repeating the last period copies its outliers; here each day is only one of several."""
    values = daily_load(STEP_SECONDS, 9)
    outlier = steps_of(7) + 20
    values[outlier] *= 8
    history = history_of(values, STEP_SECONDS)
    origin = outlier + DAY_STEPS - TASK.lead_steps(STEP_SECONDS)
    usual = values[outlier + DAY_STEPS]
    parameters = HOLT_WINTERS.fit(history.until(steps_of(8)), TASK)
    for model, fitted in ((SEASONAL, None), (HOLT_WINTERS, parameters)):
        found = model.forecast(fitted, history, np.array([origin]), TASK).median[0, 0]
        assert found < 3 * usual, model.name


def test_a_model_without_forecasts_says_what_it_lacks__crane_534() -> None:
    """In Crane, a prediction may never become ready, and no reason is given."""
    history = history_of(np.full(steps_of(1), 40.0), STEP_SECONDS)
    silent = {model.name for model in MODELS if lacks(model, history) is None}
    assert {"reactive", "headroom", "linear", "polynomial"} <= silent
    assert lacks(SEASONAL, history) == "seasonal needs 2 days of load to see a day twice, and 24 h are known"
    assert lacks(HOLT_WINTERS, history) == "holt-winters needs 2 days of load to see a day twice, and 24 h are known"
