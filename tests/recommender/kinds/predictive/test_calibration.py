"""How much room a model needs, judged by its own known errors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.calibration import LEAST_ERRORS, calibrate, upper_factors
from tests.support.load import TASK, daily_load, history_of

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.history import LoadHistory

DELAY_STEPS = 3
"""The task's delay at 5-minute steps: the target of an origin is known three steps later."""


class LoadAsForecast:
    def __init__(self, history: LoadHistory) -> None:
        self._values = history.values

    def __call__(self, origins: IntArray) -> FloatArray:
        return self._values[:, origins]


def factors(history: LoadHistory, origins: IntArray, quantile: float = 0.95) -> FloatArray:
    return upper_factors(LoadAsForecast(history), history, origins, replace(TASK, quantile=quantile))


def test_plain_headroom_is_added_until_100_errors_are_known() -> None:
    history = history_of(daily_load(300, 1, noise=0.1))
    first = LEAST_ERRORS - 1 + DELAY_STEPS
    found = calibrate(LoadAsForecast(history), history, np.array([first - 1, first]), TASK)
    ratios = found.upper / found.median
    assert ratios[0, 0] == pytest.approx(1.1)
    assert ratios[0, 1] == pytest.approx(factors(history, np.array([first]))[0, 0])


def test_the_factor_is_the_quantile_of_target_over_forecast() -> None:
    history = history_of(daily_load(300, 1, noise=0.1))
    load = history.values[0]
    origin = 250
    ratios = [max(load[j + 2], load[j + 3]) / load[j] for j in range(origin - DELAY_STEPS + 1)]
    assert factors(history, np.array([origin]), 0.9)[0, 0] == pytest.approx(np.quantile(ratios, 0.9))


def test_errors_older_than_two_days_do_not_count() -> None:
    wild, calm = daily_load(300, 2, noise=0.5), np.full(600, 100.0)
    history = history_of(np.concatenate([wild, calm]))
    assert factors(history, np.array([history.steps - 1]))[0, 0] == 1.0


@pytest.mark.parametrize("step_seconds", [10, 60, 300, 1800])
def test_origins_together_or_one_by_one_have_the_same_factors(step_seconds: float) -> None:
    rows = [daily_load(step_seconds, min(6, 3000 * step_seconds / 86400), noise) for noise in (0.05, 0.3)]
    history = history_of(rows, step_seconds)
    origins = np.arange(0, history.steps, 37)
    together = factors(history, origins)
    for index, origin in enumerate(origins):
        alone = factors(history.until(int(origin) + 1), np.array([origin]))
        np.testing.assert_allclose(alone[:, 0], together[:, index], rtol=1e-9)


def test_unknown_targets_and_zero_forecasts_do_not_count() -> None:
    values = daily_load(300, 2, noise=0.1)
    values[100:300:2] = np.nan
    values[300:320] = 0.0
    found = factors(history_of(values), np.array([len(values) - 1]))
    assert np.isfinite(found).all()
    assert factors(history_of(np.full(400, np.nan)), np.array([399]))[0, 0] != 1.0


def test_a_model_that_is_always_too_high_has_equal_median_and_upper_forecasts() -> None:
    history = history_of(np.full(400, 100.0))
    found = calibrate(lambda origins: np.full((1, len(origins)), 200.0), history, np.array([399]), TASK)
    assert (found.median[0, 0], found.upper[0, 0]) == (100.0, 100.0)
