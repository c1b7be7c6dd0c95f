"""The percentile of the last week is a forecast, computed once per clock hour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recommender.kinds.predictive.history import of_one_series
from recommender.kinds.predictive.models.percentile import PERCENTILE
from tests.support.load import TASK

HOUR_SECONDS = 3600.0
WEEK_HOURS = 168
OF_NINE_TENTHS = replace(TASK, quantile=0.9)


def test_the_load_of_the_last_week_counts_and_no_older_one() -> None:
    week = np.arange(float(WEEK_HOURS))
    history = of_one_series(0.0, HOUR_SECONDS, np.concatenate([np.full(72, 1e6), week, [5.0]]))
    found = PERCENTILE.forecast(None, history, np.array([history.steps - 1]), OF_NINE_TENTHS)
    assert found.median.item() == pytest.approx(np.median(week))
    assert found.upper.item() == pytest.approx(np.quantile(week, 0.9))


def test_the_forecast_changes_at_full_hours_wherever_the_history_begins() -> None:
    history = of_one_series(1800.0, 600.0, np.arange(1.0, 11.0))
    found = PERCENTILE.forecast(None, history, np.arange(10), OF_NINE_TENTHS).median[0]
    np.testing.assert_allclose(found, [np.nan] * 3 + [2.0] * 6 + [5.0])
