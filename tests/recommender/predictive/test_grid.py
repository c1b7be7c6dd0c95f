from __future__ import annotations

import pytest

from recommender.predictive.grid import grid_step_seconds

DAY = 86_400.0


@pytest.mark.parametrize(
    ("history_seconds", "poll_interval_seconds", "series", "step_seconds"),
    [
        (14 * DAY, 10, 1, 60),
        (14 * DAY, 10, 2000, 60),
        (14 * DAY, 10, 10_000, 300),
        (14 * DAY, 120, 1, 120),
        (28 * DAY, 10, 1, 120),
        (300, 1, 1, 1),
        (300, 0.5, 1, 1),
        (300, 7, 1, 10),
        (1000 * DAY, 10, 1_000_000, 3600),
        (DAY, 7200, 1, 7200),
        (DAY, 10, 0, 10),
    ],
)
def test_the_step_is_the_finest_that_the_limits_and_the_polls_allow(
    history_seconds: float, poll_interval_seconds: float, series: int, step_seconds: float
) -> None:
    assert grid_step_seconds(history_seconds, poll_interval_seconds, series) == step_seconds
