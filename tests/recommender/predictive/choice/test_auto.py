from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.predictive.choice.auto import run_auto
from recommender.predictive.choice.records import ChoiceReason
from recommender.predictive.forecast import Forecasts, ForecastTask
from recommender.predictive.history import DAY_SECONDS, LoadHistory
from recommender.predictive.models.quantile import QUANTILE
from recommender.predictive.rolling import RollingOptions, rolling_forecasts
from recommender.predictive.simulation.serving import FleetSettings
from recommender.predictive.targets import targets
from tests.recommender.predictive.waves import DAY_STEPS, STEP_SECONDS, bursts_every_day, random_walk, with_values

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.choice.records import AutoRun

TASK = ForecastTask(lead_seconds=1200.0, window_seconds=900.0)
FLEET = FleetSettings(STEP_SECONDS, startup_seconds=600.0, load_per_replica=20.0)
RARE_FITS = RollingOptions(refit_seconds=3 * DAY_SECONDS)
HEADROOM_RATIO = TASK.headroom_ratio


def of_yesterday(history: LoadHistory, room: float = 1.1) -> Forecasts:
    """Return what yesterday's targets were, with some room: right while every day is alike."""
    target = targets(history, TASK)
    found = np.full_like(target, np.nan)
    found[:, 2 * DAY_STEPS :] = target[:, DAY_STEPS:-DAY_STEPS] * room
    return Forecasts(found / room, found)


def none_at_all(history: LoadHistory) -> Forecasts:
    nothing = np.full_like(history.values, np.nan)
    return Forecasts(nothing, nothing)


def run(history: LoadHistory, forecasts: Forecasts | None = None) -> AutoRun:
    return run_auto(history, {"seasonal": forecasts or of_yesterday(history)}, TASK, FLEET)


def broken_from(history: LoadHistory, step: int, shift: int = 60) -> LoadHistory:
    """Return the same load, whose days begin at another hour from a step on."""
    values = history.values.copy()
    values[:, step:] = np.roll(history.values, shift, axis=1)[:, step:]
    return with_values(history, values)


def days(run: AutoRun, model: str) -> float:
    return run.in_use.count(model) / DAY_STEPS


def test_uses_a_model_that_knows_the_cycle_before_a_week_is_over() -> None:
    found = run(bursts_every_day(10))
    assert set(found.in_use[7 * DAY_STEPS :]) == {"seasonal"}
    assert found.decisions[-1].reason is ChoiceReason.STILL_BETTER


def test_acts_on_the_larger_of_load_and_forecast() -> None:
    history = bursts_every_day(10)
    forecasts = of_yesterday(history)
    found = run(history, forecasts)
    last = slice(8 * DAY_STEPS, None)
    np.testing.assert_allclose(found.capacity[last], np.maximum(history.values[0], forecasts.upper[0])[last])


def test_uses_plain_headroom_until_a_model_has_been_judged() -> None:
    history = bursts_every_day(5)
    found = run(history)
    early = 4 * DAY_STEPS
    assert set(found.in_use[:early]) == {"headroom"}
    np.testing.assert_allclose(found.capacity[:early], history.values[0, :early] * (1 + HEADROOM_RATIO))
    assert found.decisions[0].reason is ChoiceReason.NOTHING_KNOWN


@pytest.mark.parametrize("room", [1.0, 1.3, 3.0])
def test_uses_plain_headroom_where_the_forecast_only_adds_room(room: float) -> None:
    history = random_walk(12)
    blind = Forecasts(history.values, history.values * room)
    found = run(history, blind)
    assert set(found.in_use) == {"headroom"}
    assert found.decisions[-1].reason is ChoiceReason.NOT_BETTER


def test_a_breaking_cycle_ends_the_model_within_hours() -> None:
    broken = broken_from(bursts_every_day(12), 8 * DAY_STEPS)
    found = run(broken)
    assert found.in_use[8 * DAY_STEPS - 1] == "seasonal"
    assert "headroom" in found.in_use[8 * DAY_STEPS : 8 * DAY_STEPS + DAY_STEPS // 2]


def test_headroom_after_a_model_costs_what_the_model_did() -> None:
    found = run(broken_from(bursts_every_day(12), 8 * DAY_STEPS))
    given_up = next(each for each in found.decisions if each.model == "headroom" and each.step >= 8 * DAY_STEPS)
    record = given_up.record("seasonal")
    assert given_up.reason is ChoiceReason.RECENTLY_WORSE
    assert record is not None
    assert given_up.headroom_ratio == pytest.approx(max(record.cost_as_headroom_ratio, HEADROOM_RATIO))


def test_a_model_that_was_given_up_stays_out_for_a_day_at_least() -> None:
    found = run(broken_from(bursts_every_day(16), 8 * DAY_STEPS))
    away = found.in_use.index("headroom", 8 * DAY_STEPS)
    assert set(found.in_use[away : away + DAY_STEPS]) == {"headroom"}


def test_a_model_that_is_right_again_comes_back() -> None:
    found = run(broken_from(bursts_every_day(20), 8 * DAY_STEPS))
    assert found.in_use[-1] == "seasonal"


def test_the_model_with_the_smaller_shortage_is_used() -> None:
    history = bursts_every_day(12)
    rough = of_yesterday(history)
    rng = np.random.default_rng(5)
    worse = Forecasts(rough.median, rough.upper * rng.lognormal(0.0, 0.3, rough.upper.shape))
    found = run_auto(history, {"holt-winters": worse, "seasonal": rough}, TASK, FLEET)
    assert found.in_use[-1] == "seasonal"
    assert {each.name for each in found.decisions[-1].records} == {"holt-winters", "seasonal"}


def test_nothing_after_the_present_matters() -> None:
    history = bursts_every_day(10)
    seen = 8 * DAY_STEPS + 17
    values = history.values.copy()
    values[:, seen:] = 1e7
    clean, poisoned = (
        run(history),
        run_auto(with_values(history, values), {"seasonal": of_yesterday(history)}, TASK, FLEET),
    )
    np.testing.assert_array_equal(clean.capacity[:seen], poisoned.capacity[:seen])
    assert clean.in_use[:seen] == poisoned.in_use[:seen]


def test_a_model_that_never_forecasts_is_not_judged() -> None:
    history = bursts_every_day(3)
    found = run(history, none_at_all(history))
    assert set(found.in_use) == {"headroom"}
    assert found.decisions[-1].records == ()


def gaps(values: FloatArray) -> FloatArray:
    found = values.copy()
    found[:, 7 * DAY_STEPS : 7 * DAY_STEPS + 30] = np.nan
    return found


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(gaps(bursts_every_day(9).values), id="a gap"),
        pytest.param(np.full((1, 5 * DAY_STEPS), 50.0), id="a constant load"),
        pytest.param(np.zeros((1, 5 * DAY_STEPS)), id="no load"),
        pytest.param(np.full((1, 30), 10.0), id="a few steps"),
        pytest.param(np.full((1, 1), 10.0), id="one step"),
    ],
)
def test_gives_a_capacity_whatever_the_history(values: FloatArray) -> None:
    history = LoadHistory(1_700_006_400.0, STEP_SECONDS, values)
    forecasts = Forecasts(values * 1.2, values * 1.5)
    found = run(history, forecasts)
    assert np.isfinite(found.capacity[~np.isnan(values[0])]).all()
    assert len(found.in_use) == history.steps


def test_the_quantile_model_proves_itself_on_bursts_that_come_every_day() -> None:
    history = bursts_every_day(8)
    found = run_auto(history, {"quantile": rolling_forecasts(QUANTILE, history, TASK, RARE_FITS)}, TASK, FLEET)
    assert found.in_use[-1] == "quantile"


def test_the_quantile_model_stays_out_on_a_random_walk() -> None:
    history = random_walk(8)
    found = run_auto(history, {"quantile": rolling_forecasts(QUANTILE, history, TASK, RARE_FITS)}, TASK, FLEET)
    assert days(found, "headroom") > 6
