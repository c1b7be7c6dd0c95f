from __future__ import annotations

import pytest

from recommender.running.loads.histories.sample_times import index_at, nearest_index, step_of, steps_of

DAY = 86_400.0


@pytest.mark.parametrize(
    ("history_seconds", "poll_seconds", "series", "step"),
    [
        (14 * DAY, 10.0, 1, 60.0),
        (14 * DAY, 10.0, 200, 60.0),
        (14 * DAY, 10.0, 201, 300.0),
        (14 * DAY, 10.0, 10_000, 300.0),
        (14 * DAY, 120.0, 1, 120.0),
        (28 * DAY, 10.0, 1, 120.0),
        (300.0, 1.0, 1, 1.0),
        (DAY, 10.0, 1, 10.0),
        (14 * DAY, 7200.0, 1, 7200.0),
    ],
)
def test_the_step_depends_on_history_polls_and_series(
    history_seconds: float, poll_seconds: float, series: int, step: float
) -> None:
    assert step_of(history_seconds, poll_seconds, series) == step


def test_ten_thousand_series_of_two_weeks_take_less_than_two_hundred_mebibytes() -> None:
    assert 10_000 * steps_of(14 * DAY, step_of(14 * DAY, 10.0, 10_000)) * 4 < 200 << 20


def test_a_time_on_the_grid_is_its_own_index() -> None:
    assert [index_at(each, 60.0) for each in (119.9, 120.0, 179.9)] == [1, 2, 2]
    assert [nearest_index(each, 60.0) for each in (119.9, 149.9, 150.0)] == [2, 2, 3]
