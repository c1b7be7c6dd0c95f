"""A season that is not a day long is treated as if it took a day, and nothing else changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.backtest.options import BacktestOptions
from recommender.backtest.reports.table import report_text
from recommender.kinds.predictive.cycle_length import stretched_fleet, stretched_history, stretched_task
from recommender.kinds.predictive.history import DAY_SECONDS, of_one_series
from recommender.kinds.predictive.models.table import model_named
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.kinds.predictive.simulation.serving import FleetSettings
from recommender.kinds.predictive.tasks import task_for
from tests.recommender.backtest.replays import daily_load, replayed

if TYPE_CHECKING:
    from recommender.backtest.report import BacktestReport

DAYS, STEPS = 6, 144
MODELS = tuple(map(model_named, ("linear", "seasonal", "largest-hour")))


def backtest(season_seconds: float) -> BacktestReport:
    shrunk = season_seconds / DAY_SECONDS
    options = BacktestOptions(
        PredictiveSettings(season_seconds=season_seconds, scale_down=None),
        startup_seconds=1200.0 * shrunk,
        warm_up_seconds=3 * season_seconds,
    )
    load = daily_load(DAYS * STEPS, seed=2)
    return replayed(load, options, step_seconds=600.0 * shrunk, models=MODELS)


def test_a_season_of_two_minutes_is_forecast_like_a_whole_day() -> None:
    # The down window, which is no part of a season, covers a step and less in both.
    day = PredictiveSettings()
    load = daily_load(DAYS * STEPS, seed=2)
    history = of_one_series(0.0, 600.0, load)
    shrunk = 120.0 / DAY_SECONDS
    task = task_for(1200.0, 600.0, day, 600.0)
    compressed = stretched_task(task_for(1200.0 * shrunk, 600.0 * shrunk, day, 600.0 * shrunk), 1 / shrunk)
    seen = stretched_history(of_one_series(0.0, 600.0 * shrunk, load), 1 / shrunk)
    origins = np.arange(3 * STEPS, DAYS * STEPS)
    for model in MODELS:
        expected = model.forecast(None, history, origins, task)
        found = model.forecast(None, seen, origins, compressed)
        np.testing.assert_allclose(found.upper, expected.upper, err_msg=model.name)


def test_models_that_need_days_take_part_in_a_backtest_of_minutes() -> None:
    assert "model:seasonal" not in {each.name for each in backtest_without_season().policies}
    report = backtest(120.0)
    assert "model:seasonal" in {each.name for each in report.policies}
    assert report.trace.warm_up_seconds == pytest.approx(360.0)
    assert report.verdict.cost_above_load_ratio is not None


@pytest.mark.parametrize(
    ("season_seconds", "days", "warned", "noted"),
    [
        (3600.0, 0.5, None, None),
        (
            3600.0,
            0.075,
            "The load covers 1.7 h only, and most models need 2 h",
            "needs 2 h of history, and the trace has 1.8 h",
        ),
        (
            7 * DAY_SECONDS,
            10.0,
            "The load covers 9.9 days only, and most models need 14 days",
            "needs 14 days of history, and the trace has 10 days",
        ),
    ],
)
def test_missing_history_is_reported_in_lengths_of_the_season(
    season_seconds: float, days: float, warned: str | None, noted: str | None
) -> None:
    options = BacktestOptions(PredictiveSettings(season_seconds=season_seconds))
    steps = 240 if days > 1 else round(days * 1440)
    report = replayed(daily_load(steps), options, step_seconds=days * DAY_SECONDS / steps, models=MODELS)
    text = report_text(report)
    assert (warned in text) if warned else ("most models need" not in text)
    assert (noted in text) if noted else ("does not take part" not in text)


def backtest_without_season() -> BacktestReport:
    return replayed(daily_load(DAYS * STEPS, seed=2), BacktestOptions(), step_seconds=600.0 / 720, models=MODELS)


@given(st.floats(10.0, 7 * DAY_SECONDS))
def test_stretching_keeps_the_number_of_steps(season_seconds: float) -> None:
    stretch = PredictiveSettings(season_seconds=season_seconds).stretch
    fleet = FleetSettings(60.0, 170.0, 10.0)
    stretched = stretched_fleet(fleet, stretch)
    assert stretched.lag_steps == fleet.lag_steps
    assert stretched.down_window_steps == fleet.down_window_steps
    task = task_for(170.0, 60.0, PredictiveSettings())
    assert stretched_task(task, stretch).lead_steps(60.0 * stretch) == task.lead_steps(60.0)
    assert math.isclose(stretched_history(of_one_series(60.0, 60.0, np.ones(3)), stretch).span_seconds, 180.0 * stretch)
