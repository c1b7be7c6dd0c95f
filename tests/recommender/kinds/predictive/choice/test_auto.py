from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import PlayedChoices, choice_limits, run_auto
from recommender.kinds.predictive.choice.blend import Blend
from recommender.kinds.predictive.choice.experts import least_short_steps_a_day
from recommender.kinds.predictive.choice.options import ChoiceOptions
from recommender.kinds.predictive.choice.records import ChoiceReason
from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.boosting import targets
from recommender.kinds.predictive.models.conformal import CONFORMAL, LARGEST_HOUR
from recommender.kinds.predictive.models.quantile import QUANTILE
from recommender.kinds.predictive.rolling_forecasts import rolling_forecasts
from tests.recommender.kinds.predictive.choice.auto_runs import (
    FLEET,
    HEADROOM_RATIO,
    RARE_FITS,
    TASK,
    of_yesterday,
    run,
    together,
    versus_headroom,
)
from tests.recommender.kinds.predictive.waves import DAY_STEPS, STEP_SECONDS, bursts_every_day, random_walk, with_values

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.choice.records import AutoRun


LONG_TASK = ForecastTask(lead_seconds=2400.0, window_seconds=2100.0)


@pytest.fixture(scope="module")
def ten_days() -> AutoRun:
    """Return the choices in ten days of bursts."""
    return run(bursts_every_day(10))


def no_forecasts(history: LoadHistory) -> Forecasts:
    nothing = np.full_like(history.values, np.nan)
    return Forecasts(nothing, nothing)


def broken_from(history: LoadHistory, step: int, shift: int = 60) -> LoadHistory:
    """Return the same load, except that its days begin at another hour from a step on."""
    values = history.values.copy()
    values[:, step:] = np.roll(history.values, shift, axis=1)[:, step:]
    return with_values(history, values)


def test_a_model_that_knows_the_cycle_leads_before_a_week_is_over(ten_days: AutoRun) -> None:
    assert set(ten_days.in_use[6 * DAY_STEPS :]) == {"seasonal"}
    assert ten_days.decisions[-1].reason is ChoiceReason.BETTER
    assert ten_days.decisions[-1].blend.parts[0].weight > 0.9


def test_plain_headroom_is_used_until_a_model_has_been_judged() -> None:
    history = bursts_every_day(5)
    found = run(history)
    early = 2 * DAY_STEPS
    assert set(found.in_use[:early]) == {"headroom"}
    np.testing.assert_allclose(found.capacity[:early], history.values[0, :early] * (1 + HEADROOM_RATIO))
    assert found.decisions[0].reason is ChoiceReason.NOTHING_KNOWN


def test_the_configured_headroom_acts_where_a_forecast_only_adds_noise() -> None:
    history, rooms = random_walk(12), (1.2, 1.3, 1.4)
    noise = np.random.default_rng(3).lognormal(0.0, 0.15, history.values.shape)
    walks = together(*[history] * len(rooms))
    upper = np.concatenate([history.values * room * noise for room in rooms])
    played = PlayedChoices(walks, {"seasonal": Forecasts(walks.values, upper)}, TASK, FLEET)
    for series, room in enumerate(rooms):
        assert set(played.leaders[played.numbers()[8 * DAY_STEPS :], series]) == {1}, f"headroom leads at {room}"
        assert played.last_choice(series).blend == Blend(HEADROOM_RATIO), room
        versus = versus_headroom(played.capacity[series], history, 6)
        assert (versus.tau_under_versus_headroom or 0.0) <= 1.05, room
        assert (versus.theta_under_versus_headroom or 0.0) <= 1.05, room


def test_a_random_walk_with_few_shortages_gets_only_plain_headroom() -> None:
    """In a walk, one short step more or less is a large ratio, so only proven models may act."""
    history = together(*(random_walk(10, seed) for seed in range(6)))
    rules = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    played = PlayedChoices(history, {**rules, "seasonal": of_yesterday(history)}, TASK, FLEET)
    np.testing.assert_allclose(played.capacity, history.values * (1 + HEADROOM_RATIO))


def test_a_proven_model_acts_until_its_odds_are_reversed() -> None:
    history = bursts_every_day(12)
    found = PlayedChoices(history, {"seasonal": of_yesterday(history)}, TASK, FLEET)
    weights, acting = found.decided.weights[:, 0], found.decided.acting[:, 0]
    proven = int(np.flatnonzero(acting[:, 0] > 0)[0])
    assert weights[proven, 0] >= 5 * weights[proven, 1] > weights[proven - 1, 0]
    assert (found.decided.ratios[:proven, 0] == HEADROOM_RATIO).all()
    assert (found.decided.ratios[-1] > HEADROOM_RATIO).all()


def test_a_model_that_many_small_gains_prove_acts_with_the_odds_of_its_proof() -> None:
    """It knows three of ten targets. The first count of its odds would leave headroom a third of the capacity."""
    usual, rng = bursts_every_day(6), np.random.default_rng(1)
    history = with_values(usual, 1000.0 * rng.lognormal(0.0, 0.1, usual.values.shape))
    is_known = rng.random(history.values.shape) < 0.3
    upper = np.where(is_known, np.fmax(targets(history, TASK), history.values), history.values * (1 + HEADROOM_RATIO))
    acting = PlayedChoices(history, {"seasonal": Forecasts(upper, upper)}, TASK, FLEET).decided.acting[:, 0]
    proven = int(np.flatnonzero(acting[:, 0] > 0)[0])
    assert acting[proven, 0] >= 5 * acting[proven, 1]


def test_a_model_loses_the_lead_within_a_day_after_its_cycle_breaks() -> None:
    found = run(broken_from(bursts_every_day(12), 8 * DAY_STEPS))
    assert found.in_use[8 * DAY_STEPS - 1] == "seasonal"
    assert "headroom" in found.in_use[8 * DAY_STEPS : 9 * DAY_STEPS]


def test_a_model_that_is_right_again_leads_again() -> None:
    assert run(broken_from(bursts_every_day(20), 8 * DAY_STEPS)).in_use[-1] == "seasonal"


def test_the_model_with_the_smaller_shortage_leads() -> None:
    history = bursts_every_day(12)
    rough = of_yesterday(history)
    rng = np.random.default_rng(5)
    worse = Forecasts(rough.median, rough.upper * rng.lognormal(0.0, 0.3, rough.upper.shape))
    found = run_auto(history, {"holt-winters": worse, "seasonal": rough}, TASK, FLEET)
    assert found.in_use[-1] == "seasonal"
    assert {each.name for each in found.decisions[-1].records} == {"holt-winters", "seasonal"}


def test_a_model_that_often_reaches_its_bound_does_not_act() -> None:
    history = bursts_every_day(12)
    forecasts = of_yesterday(history)
    limits = choice_limits(history, TASK)
    values = forecasts.upper.copy()
    values[:, 2 * DAY_STEPS :: 10] = limits[:, 2 * DAY_STEPS :: 10]
    found = run(history, Forecasts(forecasts.median, values))
    assert set(found.in_use) == {"headroom"}
    assert found.decisions[-1].blend.parts == ()


def test_the_mixture_is_never_above_the_bound_of_each_forecast() -> None:
    history, task = bursts_every_day(10), replace(TASK, budget_ratio=5.0)
    found = run_auto(history, {"seasonal": of_yesterday(history)}, task, FLEET)
    limits = choice_limits(history, task)[0]
    assert (found.capacity <= limits * (1 + 1e-12)).all()
    assert (found.capacity[5 * DAY_STEPS :] == limits[5 * DAY_STEPS :]).any()


def test_values_after_the_present_do_not_change_the_choice(ten_days: AutoRun) -> None:
    history = bursts_every_day(10)
    seen = 8 * DAY_STEPS + 17
    values = history.values.copy()
    values[:, seen:] = 1e7
    poisoned = run_auto(with_values(history, values), {"seasonal": of_yesterday(history)}, TASK, FLEET)
    np.testing.assert_array_equal(ten_days.capacity[:seen], poisoned.capacity[:seen])
    assert ten_days.in_use[:seen] == poisoned.in_use[:seen]


def test_a_model_that_never_forecasts_is_not_judged() -> None:
    history = bursts_every_day(3)
    found = run(history, no_forecasts(history))
    assert set(found.in_use) == {"headroom"}
    assert found.decisions[-1].records == ()


def test_steps_of_half_an_hour_prove_a_model_within_its_first_days() -> None:
    """A day has 48 such steps: if as many short ones were required as of shorter steps, models would act later."""
    steps = 48
    of_day = np.arange(14 * steps) % steps
    noise = np.random.default_rng(1).lognormal(0.0, 0.02, len(of_day))
    values = 500.0 * (1 + np.isin(of_day, (28, 29, 30, 31))) * noise
    history = LoadHistory(1_700_006_400.0, 1800.0, values[np.newaxis, :])
    upper = np.full_like(history.values, np.nan)
    upper[:, 2 * steps :] = targets(history, LONG_TASK)[:, steps:-steps] * 1.05
    forecasts, fleet = {"seasonal": Forecasts(upper, upper)}, replace(FLEET, step_seconds=1800.0)
    days_to_proof = []
    for early_seconds in (6 * DAY_SECONDS, 0.0):
        options = ChoiceOptions(early_seconds=early_seconds)
        acting = PlayedChoices(history, forecasts, LONG_TASK, fleet, options=options).decided.acting[:, 0, 0]
        days_to_proof.append(int(np.flatnonzero(acting > 0)[0]) / steps)
    assert days_to_proof[0] < 8 < days_to_proof[1]


@pytest.mark.parametrize(
    ("step_seconds", "early", "late"), [(60.0, 6, 6), (300.0, 6, 6), (900.0, 6, 6), (1200.0, 4.5, 6), (3600.0, 3, 6)]
)
def test_only_long_steps_need_fewer_shortages_for_a_proof_and_only_early(
    step_seconds: float, early: float, late: float
) -> None:
    assert least_short_steps_a_day(step_seconds, np.array([True, False])).tolist() == [early, late]


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
def test_every_history_gives_a_capacity(values: FloatArray) -> None:
    history = LoadHistory(1_700_006_400.0, STEP_SECONDS, values)
    forecasts = Forecasts(values * 1.2, values * 1.5)
    found = run(history, forecasts)
    assert np.isfinite(found.capacity[~np.isnan(values[0])]).all()
    assert len(found.in_use) == history.steps


def test_the_quantile_model_proves_itself_on_bursts_that_come_every_day() -> None:
    history = bursts_every_day(8)
    found = run_auto(history, {"quantile": rolling_forecasts(QUANTILE, history, TASK, RARE_FITS)}, TASK, FLEET)
    assert found.in_use[-1] == "quantile"


def test_on_a_random_walk_auto_is_no_worse_than_headroom_at_equal_cost() -> None:
    history = random_walk(10)
    forecasts = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (QUANTILE, CONFORMAL)}
    versus = versus_headroom(run_auto(history, forecasts, TASK, FLEET).capacity, history, 5)
    assert (versus.tau_under_versus_headroom or 0.0) <= 1.05
    assert (versus.theta_under_versus_headroom or 0.0) <= 1.05


def test_a_model_that_has_gained_nothing_does_not_act() -> None:
    history = random_walk(10)
    noise = np.random.default_rng(3).lognormal(0.0, 0.15, history.values.shape)
    found = run(history, Forecasts(history.values, history.values * 1.3 * noise))
    last = found.decisions[-1]
    record = last.record("seasonal")
    assert record is not None
    assert record.weight > 0
    assert last.blend.parts == ()
    assert last.reason is ChoiceReason.NOT_BETTER


def test_the_reason_for_headroom_instead_of_proven_models_is_their_record() -> None:
    """From the twelfth day on, the bursts come at another time each day."""
    days, hours = 16, np.random.default_rng(0)
    usual = bursts_every_day(days)
    by_day = usual.values[0, : days * DAY_STEPS].reshape(days, DAY_STEPS)
    moved = [np.roll(day, int(hours.integers(DAY_STEPS))) if number >= 11 else day for number, day in enumerate(by_day)]
    history = with_values(usual, np.concatenate(moved)[np.newaxis])
    played = PlayedChoices(history, {"seasonal": of_yesterday(history, 1.2)}, TASK, FLEET)
    (numbers,) = np.nonzero(played.decided.stands_in[:, 0])
    (found,) = played.choices(0, [int(numbers[0])])
    assert (found.model, found.reason) == ("headroom", ChoiceReason.RECORD_IS_WORSE)


def test_a_proven_rise_acts_before_any_model_is_judged() -> None:
    history = random_walk(1)
    upper = np.full_like(history.values, np.nan)
    upper[:, 5:10] = history.values[:, 5:10] * 1.4
    found = run_auto(history, {"trend": Forecasts(upper, upper)}, TASK, FLEET)
    load, acted = history.values[0], found.capacity
    np.testing.assert_allclose(acted[5:10], load[5:10] * 1.4)
    np.testing.assert_allclose(acted[:5], load[:5] * (1 + HEADROOM_RATIO))
    assert set(found.in_use[:5]) == {"trend"}
    assert found.decisions[0].reason is ChoiceReason.NOTHING_KNOWN


def test_a_new_model_with_its_prior_weight_does_not_act_because_of_rounding() -> None:
    history = random_walk(5)
    forecasts = {}
    for place, name in enumerate(("linear", "percentile", "seasonal", "boosted", "conformal", "quantile")):
        upper = history.values * np.random.default_rng(place).lognormal(0.2, 0.1, history.values.shape)
        upper[:, : place * DAY_STEPS // 2] = np.nan
        forecasts[name] = Forecasts(upper, upper)
    decided = PlayedChoices(history, forecasts, TASK, FLEET).decided
    comes = (decided.weights[:-1, 0, :-1] == 0) & (decided.weights[1:, 0, :-1] > 0)
    assert comes.sum(axis=0).tolist() == [1] * len(forecasts)
    assert not decided.acting[1:, 0, :-1][comes].any()
