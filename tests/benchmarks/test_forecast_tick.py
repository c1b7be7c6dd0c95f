from __future__ import annotations

import io

import pytest

from benchmarks.forecast_tick import STEPS, Settings, measure
from benchmarks.progress import Progress
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.predictive_settings import ModelName


@pytest.mark.parametrize(("series", "queries"), [(40, 10), (13, 10), (3, 3)])
def test_each_step_of_a_tick_is_measured_and_every_target_has_a_value(series: int, queries: int) -> None:
    settings = Settings(series=series, ticks=2, model=ModelName.LINEAR, past_seconds=2 * DAY_SECONDS)
    found = measure(settings, Progress("forecast_tick", io.StringIO()))
    assert [row["step"] for row in found.rows] == [*STEPS, "tick"]
    assert [row["errors"] for row in found.rows] == [0] * 8
    assert found.rows[-1]["prometheus_queries"] == queries
