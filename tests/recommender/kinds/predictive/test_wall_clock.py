"""Days and weeks repeat by local clocks, even when these change to or from summer time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory, of_one_series
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.features import features
from recommender.kinds.predictive.models.holt_winters import HOLT_WINTERS
from recommender.kinds.predictive.models.quantile import QUANTILE
from recommender.kinds.predictive.models.seasonal import SEASONAL
from recommender.kinds.predictive.models.state_space import STATE_SPACE
from recommender.kinds.predictive.predictive_settings import PredictiveSettings
from recommender.kinds.predictive.simulation.frontier import compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, simulate
from recommender.kinds.predictive.tasks import task_for
from recommender.kinds.predictive.wall_clock import WallClock
from tests.support.load import TASK

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask, Model

BERLIN = WallClock("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
STEP_SECONDS = 1800.0
DAY_STEPS = 48
CHANGED_DAY = 14
FORWARD = datetime(2026, 3, 15, tzinfo=UTC).timestamp()
"""A start 14 days before the clocks in Berlin go forward."""
BACK = datetime(2026, 10, 11, tzinfo=UTC).timestamp()
"""A start 14 days before the clocks in Berlin go back."""
zones = st.sampled_from(ZONES)
moments = st.lists(st.integers(0, 2_208_988_800), min_size=1, max_size=5)
"""Times until 2040, in Unix seconds."""


def office(start: float, days: int, noise: float = 0.03) -> LoadHistory:
    """Return a load that comes at eight and leaves at six by Berlin's clocks, and is lower at weekends."""
    times = LoadHistory(start, STEP_SECONDS, np.zeros((1, days * DAY_STEPS))).times()
    hour = BERLIN.times_of_day(times) / 3600
    day = 1 / (1 + np.exp(-(hour - 8) * 3)) / (1 + np.exp((hour - 18) * 1.2))
    load = 1000 * (0.15 + day * np.where(BERLIN.weekdays(times) >= 5, 0.35, 1.0))
    return of_one_series(start, STEP_SECONDS, load * np.exp(np.random.default_rng(5).normal(0, noise, len(load))))


@given(zones, moments)
def test_offsets_are_those_of_the_zone(zone: str, times: list[int]) -> None:
    expected = [datetime.fromtimestamp(each, UTC).astimezone(ZoneInfo(zone)) for each in times]
    found = WallClock(zone).offsets_seconds(np.array(times, dtype=np.float64))
    assert found.tolist() == [each.utcoffset().total_seconds() for each in expected]  # type: ignore[union-attr]
    assert WallClock(zone).weekdays(np.array(times, dtype=np.float64)).tolist() == [e.weekday() for e in expected]


@given(zones, st.integers(86_400 * 20, 2_208_988_800), st.integers(1, 14))
def test_the_same_time_of_an_earlier_day_has_the_same_clock(zone: str, time: int, days: int) -> None:
    clock, history = WallClock(zone), of_one_series(float(time - time % 900), 900.0, np.zeros(1))
    then = history.times_of(clock.same_time(history, np.array([0]), days))
    now_of_day, then_of_day = clock.times_of_day(history.times()), clock.times_of_day(then)
    offsets = clock.offsets_seconds(np.array([history.start_seconds - days * DAY_SECONDS, then[0]]))
    # Where the clock of then was changed within that hour, it may show an hour more or less.
    assert now_of_day == then_of_day or offsets[0] != offsets[1]
    assert days * DAY_SECONDS - 86_400 <= history.start_seconds - then[0] <= days * DAY_SECONDS + 86_400


def test_times_outside_of_the_calendar_have_finite_offsets() -> None:
    times = np.array([-1e12, 0.0, 1e15])
    assert np.isfinite(BERLIN.offsets_seconds(times)).all()
    assert BERLIN.offsets_seconds(np.empty(0)).shape == (0,)


@pytest.mark.parametrize("start", [FORWARD, BACK], ids=["clocks go forward", "clocks go back"])
@pytest.mark.parametrize("model", [SEASONAL, HOLT_WINTERS, STATE_SPACE, QUANTILE], ids=lambda model: model.name)
def test_the_working_day_after_a_clock_change_is_forecast_by_local_time(model: Model, start: float) -> None:
    """The fit is from the evening before; the Monday after is the first steep morning by the new time."""
    history, local = office(start, CHANGED_DAY + 2), replace(TASK, clock=BERLIN)
    past = history.until(CHANGED_DAY * DAY_STEPS - 2)
    origins = (CHANGED_DAY + 1) * DAY_STEPS + np.arange(DAY_STEPS)
    origins = origins[np.abs(BERLIN.times_of_day(history.times_of(origins)) / 3600 - 7.5) <= 1.5]
    fitted = model.fit(past, local)

    def error(task: ForecastTask) -> float:
        # Before the change, the parameters of statsmodels are the same by either clock.
        parameters = model.fit(past, task) if model is QUANTILE else fitted
        found = model.forecast(parameters, history, origins, task).median[0]
        return float(np.abs(found - targets(history, task)[0, origins]).mean())

    assert error(local) < 0.75 * error(TASK)


@pytest.mark.parametrize("start", [FORWARD, BACK], ids=["clocks go forward", "clocks go back"])
def test_after_a_clock_change_local_time_has_fewer_shortages_at_the_same_cost(start: float) -> None:
    history = office(start, CHANGED_DAY + 3)
    load, fleet = history.values[0], FleetSettings(STEP_SECONDS, 1800.0, 20.0)
    judged = JudgedLoad(load, np.arange(history.steps) >= (CHANGED_DAY + 1) * DAY_STEPS, fleet)

    def shortage(clock: WallClock) -> tuple[float, float]:
        task = replace(task_for(1800.0, STEP_SECONDS, PredictiveSettings()), clock=clock)
        upper = SEASONAL.forecast(None, history, np.arange(history.steps), task).upper[0]
        found = measure(judged, simulate(desired_replicas(np.fmax(load, upper), 20.0), fleet))
        beside = compare(found, frontier(judged))
        return beside.tau_under_versus_headroom or 0.0, beside.theta_under_versus_headroom or 0.0

    local, utc = shortage(BERLIN), shortage(WallClock())
    assert local[0] < 0.5 * utc[0]
    assert local[1] < 0.5 * utc[1]


@pytest.mark.parametrize(
    ("start", "opens", "closes"),
    [(BACK, 2, 3), (BACK, 1, 2), (FORWARD, 2, 4), (FORWARD, 3, 5)],
    ids=["back, a busy hour comes twice", "back, after a busy hour", "forward, into busy hours", "forward, they begin"],
)
@pytest.mark.parametrize("days", [0, 1], ids=["the night", "the next night"])
def test_in_the_hour_after_a_clock_change_levels_are_compared_by_local_time(
    start: float, opens: int, closes: int, days: int
) -> None:
    steps = int((CHANGED_DAY + 3) * DAY_SECONDS / 300.0)
    hour = BERLIN.times_of_day(LoadHistory(start, 300.0, np.zeros((1, steps))).times()) / 3600
    history = of_one_series(start, 300.0, np.where((hour >= opens) & (hour < closes), 5000.0, 1000.0))
    change = round((CHANGED_DAY * DAY_SECONDS + 3600) / 300.0) + days * round(DAY_SECONDS / 300.0)
    origins = np.arange(change, change + 12)
    task = replace(TASK, lead_seconds=300.0, window_seconds=300.0, max_growth=None, clock=BERLIN)

    found = SEASONAL.forecast(None, history, origins, task).median
    # The Sunday that lacks a half hour still has the weight of a weekend, a hundredth.
    assert found == pytest.approx(history.values[:, origins + 1], rel=0.001)


@pytest.mark.parametrize("start", [FORWARD, BACK])
@pytest.mark.parametrize("lead_hours", [0.5, 22.0])
def test_features_do_not_depend_on_values_after_their_origin(start: float, lead_hours: float) -> None:
    task = replace(TASK, clock=BERLIN, lead_seconds=lead_hours * 3600)
    history, origin = office(start, CHANGED_DAY + 1), CHANGED_DAY * DAY_STEPS + 20
    poisoned = _history_with_wrong_future(history, origin)
    for first in (origin, origin - 100):
        before = features(history, first, origin, task)
        np.testing.assert_array_equal(features(poisoned, first, origin, task)[:, -1], before[:, -1])
    np.testing.assert_array_equal(
        SEASONAL.forecast(None, poisoned, np.array([origin]), task).upper,
        SEASONAL.forecast(None, history, np.array([origin]), task).upper,
    )


def test_weekends_are_those_of_the_zone() -> None:
    saturday_in_auckland = datetime(2026, 6, 5, 20, tzinfo=UTC).timestamp()
    assert WallClock("Pacific/Auckland").weekdays(np.array([saturday_in_auckland])).tolist() == [5]
    assert WallClock().weekdays(np.array([saturday_in_auckland])).tolist() == [4]


def _history_with_wrong_future(history: LoadHistory, origin: int) -> LoadHistory:
    values: FloatArray = history.values.copy()
    values[:, origin + 1 :] = 1e9
    return LoadHistory(history.start_seconds, history.step_seconds, values)
