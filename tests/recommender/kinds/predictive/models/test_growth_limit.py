"""A configured growth limits every forecast to a multiple of the load of the last minutes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recommender.kinds.predictive.forecast import Forecasts
from recommender.kinds.predictive.history import of_one_series
from recommender.kinds.predictive.models.load_at_origin import limit_growth, limited_points

MINUTE_SECONDS = 60.0
NOT_LIMITED = 1e9


@pytest.mark.parametrize(
    ("values", "lead_seconds", "limit"),
    [
        pytest.param([7, 40, 50, 60], 180.0, 120.0, id="the load, if it is above the mean"),
        pytest.param([7, 40, 50, 0], 180.0, 60.0, id="the mean of the lead, after a quiet step"),
        pytest.param([7, 40, math.nan, 20], 180.0, 60.0, id="the mean of the known steps"),
        pytest.param([600, 40, 50, 60, 70, 20], 3600.0, 96.0, id="the mean of five minutes, if the lead is longer"),
        pytest.param([90, 0], 180.0, 90.0, id="the mean of a shorter history"),
        pytest.param([30], 180.0, 60.0, id="the only step"),
        pytest.param([40, 50, math.nan], 180.0, math.nan, id="an unknown load"),
    ],
)
def test_a_forecast_is_believed_up_to_a_multiple_of_the_recent_load(
    values: list[float], lead_seconds: float, limit: float
) -> None:
    history, largest = of_one_series(0.0, MINUTE_SECONDS, np.array(values)), np.full((1, 1), NOT_LIMITED)
    origins = np.array([history.steps - 1])
    found = limit_growth(Forecasts(largest, largest), history, origins, 2.0, lead_seconds)
    points = limited_points(largest, history, origins, 2.0, lead_seconds)
    np.testing.assert_allclose([found.median, found.upper, points], np.full((3, 1, 1), limit))
