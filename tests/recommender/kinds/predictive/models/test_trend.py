"""Only a rise that the last steps prove is continued."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.history import of_one_series
from recommender.kinds.predictive.models.trend import LEAST_CHANGES, TREND, least_t
from tests.support.load import TASK, history_of

MINUTE_SECONDS = 60.0
LEAD = replace(TASK, lead_seconds=180.0, window_seconds=360.0)
AHEAD = 8
"""Steps of a minute until the end of the target window."""


def forecast_of(values: object, task: object = LEAD) -> tuple[float, float]:
    """Return median and upper forecast after the last of the values, at steps of a minute."""
    history = of_one_series(0.0, MINUTE_SECONDS, np.asarray(values, dtype=np.float64))
    found = TREND.forecast(None, history, np.array([history.steps - 1]), task)  # type: ignore[arg-type]
    return float(found.median[0, 0]), float(found.upper[0, 0])


def test_a_rising_load_has_a_forecast_after_ten_minutes() -> None:
    median, upper = forecast_of(1000 + 50.0 * np.arange(10))
    assert median == pytest.approx(1450 + AHEAD * 50)
    assert upper >= median


def test_with_too_few_changes_there_is_no_forecast() -> None:
    rise = 100.0 + 10.0 * np.arange(LEAST_CHANGES + 1)
    assert np.isfinite(forecast_of(rise)[1])
    assert np.isnan(forecast_of(rise[1:])[1])


@pytest.mark.parametrize(
    "values",
    [np.full(40, 500.0), 500 - 5.0 * np.arange(40), np.zeros(40), np.full(40, np.nan)],
    ids=["constant", "falling", "nothing", "unknown"],
)
def test_without_a_rise_there_is_no_forecast(values: object) -> None:
    assert np.isnan(forecast_of(values)[1])


@given(st.integers(0, 10_000))
def test_noise_around_a_level_is_not_taken_for_a_rise(seed: int) -> None:
    noise = np.random.default_rng(seed).lognormal(0.0, 0.4, 200)
    history = history_of(100 * noise, MINUTE_SECONDS)
    assert np.isnan(TREND.forecast(None, history, np.arange(200), LEAD).upper).all()


def test_a_random_walk_is_seldom_taken_for_a_rise() -> None:
    walks = 1000 + np.cumsum(np.random.default_rng(3).normal(0, 1, (50, 2000)), axis=1)
    found = TREND.forecast(None, history_of(walks, MINUTE_SECONDS), np.arange(30, 2000), LEAD)
    assert np.isfinite(found.upper).mean() < 0.005


def test_a_rise_is_detected_under_noise_and_its_upper_forecast_has_room() -> None:
    rng = np.random.default_rng(1)
    median, upper = forecast_of(1000 + 30.0 * np.arange(17) + np.cumsum(rng.normal(0, 8, 17)))
    assert upper > median > 1480


def test_the_forecast_is_bounded_by_twice_the_present_load() -> None:
    _, upper = forecast_of(10.0 + 100.0 * np.arange(10))
    assert upper == pytest.approx(2 * 910, rel=0.5)
    assert upper <= 2 * 910


def test_gaps_do_not_count_as_changes() -> None:
    values = 1000 + 20.0 * np.arange(17)
    values[[3, 4, 9]] = np.nan
    assert forecast_of(values)[0] == pytest.approx(1320 + AHEAD * 20)


def test_the_forecast_uses_only_recent_steps_up_to_the_origin() -> None:
    values = 1000 + 20.0 * np.arange(60)
    poisoned, origin = values.copy(), np.array([40])
    poisoned[:20], poisoned[41:] = 7.0, 1e9
    expected = TREND.forecast(None, history_of(values, MINUTE_SECONDS), origin, LEAD)
    found = TREND.forecast(None, history_of(poisoned, MINUTE_SECONDS), origin, LEAD)
    np.testing.assert_allclose(found.upper, expected.upper)


@pytest.mark.parametrize(("degrees", "expected"), [(6.0, 5.208), (10.0, 4.144), (30.0, 3.385), (1000.0, 3.098)])
def test_the_quantile_of_t_matches_published_tables(degrees: float, expected: float) -> None:
    assert float(least_t(np.array(degrees))) == pytest.approx(expected, rel=0.02)
