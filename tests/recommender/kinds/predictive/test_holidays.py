"""A public holiday is forecast like a Sunday if the load is low on it, and otherwise like its weekday."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory, of_one_series
from recommender.kinds.predictive.holiday_evidence import rests_on_holidays
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.features import features
from recommender.kinds.predictive.models.seasonal import SEASONAL
from recommender.kinds.predictive.wall_clock import SUNDAY, WallClock
from tests.support.load import TASK

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask

BAVARIA = WallClock("Europe/Berlin", ("DE-BY",))
STEP_SECONDS = 1800.0
DAY_STEPS = 48
START = datetime(2026, 3, 14, 23, tzinfo=UTC).timestamp()
"""Sunday, 15 March, in Berlin; clocks go forward on the 29th, Good Friday is 3 April, Easter Monday the 6th."""
DAYS = 25
KNOWING = replace(TASK, clock=BAVARIA)
IGNORANT = replace(TASK, clock=BAVARIA.without_holidays)


def office(*, rests: bool) -> LoadHistory:
    """Return a load that comes at eight and leaves at six by Berlin's clocks, and is lower on days of rest."""
    times = LoadHistory(START, STEP_SECONDS, np.zeros((1, DAYS * DAY_STEPS))).times()
    hour = BAVARIA.times_of_day(times) / 3600
    day = 1 / (1 + np.exp(-(hour - 8) * 3)) / (1 + np.exp((hour - 18) * 1.2))
    weekdays = (BAVARIA if rests else BAVARIA.without_holidays).weekdays(times)
    load = 1000 * (0.15 + day * np.where(weekdays >= 5, 0.35, 1.0))
    return of_one_series(START, STEP_SECONDS, load * np.exp(np.random.default_rng(5).normal(0, 0.03, len(load))))


def of_day(history: LoadHistory, month: int, day: int) -> np.ndarray:
    """Return the steps of a local day."""
    begin = (datetime(2026, month, day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days
    return np.flatnonzero(BAVARIA.days(history.times()) == begin)


def missed(history: LoadHistory, task: ForecastTask, steps: np.ndarray) -> float:
    """Return the mean absolute error of `seasonal`."""
    found = SEASONAL.forecast(None, history, steps, task).median[0]
    return float(np.nanmean(np.abs(found - targets(history, task)[0, steps])))


@pytest.mark.parametrize(
    ("holidays", "month", "day", "weekday"),
    [
        (("DE",), 4, 3, SUNDAY),
        (("DE",), 4, 2, 3),
        (("DE",), 4, 4, 5),
        (("DE",), 1, 6, 1),
        (("DE-BY",), 1, 6, SUNDAY),
        (("DE", "AT"), 1, 6, SUNDAY),
        (("US",), 7, 3, SUNDAY),
        ((), 4, 3, 4),
    ],
)
def test_a_holiday_counts_as_a_sunday(holidays: tuple[str, ...], month: int, day: int, weekday: int) -> None:
    noon = datetime(2026, month, day, 12, tzinfo=UTC).timestamp()
    assert WallClock("Europe/Berlin", holidays).weekdays(np.array([noon])).tolist() == [weekday]


@given(st.integers(0, 2_208_988_800), st.integers(1, 14))
def test_the_compared_day_is_not_a_holiday_and_has_the_expected_weekday(time: int, days: int) -> None:
    history = of_one_series(float(time - time % 1800), 1800.0, np.zeros(1))
    then = history.times_of(BAVARIA.same_time(history, np.array([0]), days))
    weekday = (BAVARIA.weekdays(history.times()) - days) % 7
    assert then[0] <= history.start_seconds - DAY_SECONDS + 3600
    assert not BAVARIA.is_holiday(BAVARIA.days(then)).any()
    assert BAVARIA.weekdays(then).tolist() == weekday.tolist()


@pytest.mark.parametrize(("month", "day"), [(4, 3), (4, 6)], ids=["the first", "the second"])
def test_knowing_holidays_improves_the_forecast_of_a_holiday(month: int, day: int) -> None:
    """Good Friday is the first holiday of the history; most Sundays before it are shifted by an hour in UTC."""
    history = office(rests=True)
    steps = of_day(history, month, day)
    steps = steps[np.abs(BAVARIA.times_of_day(history.times_of(steps)) / 3600 - 7.5) <= 1.5]
    assert missed(history, KNOWING, steps) < 0.6 * missed(history, IGNORANT, steps)


def test_holidays_are_ignored_once_a_load_has_worked_on_one() -> None:
    history = office(rests=False)
    first, second = of_day(history, 4, 3), of_day(history, 4, 6)
    by_nine = first[BAVARIA.times_of_day(history.times_of(first)) >= 9 * 3600]
    for steps in (by_nine, second):
        np.testing.assert_allclose(
            SEASONAL.forecast(None, history, steps, KNOWING).median,
            SEASONAL.forecast(None, history, steps, IGNORANT).median,
        )


def test_evidence_about_holidays_is_kept_per_series() -> None:
    both = (office(rests=True), office(rests=False))
    together = LoadHistory(START, STEP_SECONDS, np.concatenate([each.values for each in both]))
    found = rests_on_holidays(together, KNOWING)
    assert found[:, -1].tolist() == [True, False]
    for place, alone in enumerate(both):
        np.testing.assert_array_equal(found[place], rests_on_holidays(alone, KNOWING)[0])
    steps = of_day(together, 4, 6)
    forecasts = SEASONAL.forecast(None, together, steps, KNOWING).upper
    for place, alone in enumerate(both):
        np.testing.assert_array_equal(forecasts[place], SEASONAL.forecast(None, alone, steps, KNOWING).upper[0])


@pytest.mark.parametrize("rests", [True, False])
def test_values_after_the_origin_do_not_change_the_forecast(rests: bool) -> None:  # noqa: FBT001 - a parameter of the table
    history = office(rests=rests)
    origin = int(of_day(history, 4, 6)[20])
    values: FloatArray = history.values.copy()
    values[:, origin + 1 :] = 1e9
    poisoned = LoadHistory(history.start_seconds, history.step_seconds, values)
    before = features(history, origin - 50, origin, KNOWING)
    np.testing.assert_array_equal(features(poisoned, origin - 50, origin, KNOWING)[:, -1], before[:, -1])
    np.testing.assert_array_equal(
        SEASONAL.forecast(None, poisoned, np.array([origin]), KNOWING).upper,
        SEASONAL.forecast(None, history, np.array([origin]), KNOWING).upper,
    )


def test_features_of_weeks_without_a_holiday_do_not_depend_on_the_key() -> None:
    history = office(rests=True)
    last = int(of_day(history, 3, 20)[-1])
    np.testing.assert_array_equal(
        features(history, 0, last, replace(KNOWING, clock=WallClock("Europe/Berlin", ("US",)))),
        features(history, 0, last, IGNORANT),
    )


@pytest.mark.parametrize("values", [np.zeros(1200), np.full(1200, np.nan), np.full(1200, 3e38)])
def test_evidence_about_holidays_is_defined_for_any_load(values: FloatArray) -> None:
    history = of_one_series(START, STEP_SECONDS, values)
    assert rests_on_holidays(history, KNOWING).all()
