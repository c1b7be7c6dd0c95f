from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import PlayedChoices, choice_limits, run_auto
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.choice.experts import least_short_steps_a_day
from recommender.kinds.predictive.choice.options import ChoiceOptions
from recommender.kinds.predictive.choice.records import ChoiceReason
from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
from recommender.kinds.predictive.forecast_targets import targets
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.models.conformal import CONFORMAL, LARGEST_HOUR
from recommender.kinds.predictive.models.quantile import QUANTILE
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from recommender.kinds.predictive.simulation.frontier import compare, frontier, reaching
from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, simulate
from tests.recommender.kinds.predictive.waves import DAY_STEPS, STEP_SECONDS, bursts_every_day, random_walk, with_values

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.choice.records import AutoRun
    from recommender.kinds.predictive.simulation.frontier import Comparison

TASK = ForecastTask(lead_seconds=1200.0, window_seconds=900.0)
FLEET = FleetSettings(STEP_SECONDS, startup_seconds=600.0, load_per_replica=20.0)
LONG_TASK = ForecastTask(lead_seconds=2400.0, window_seconds=2100.0)
RARE_FITS = RollingOptions(refit_seconds=3 * DAY_SECONDS)
HEADROOM_RATIO = TASK.headroom_ratio


def of_yesterday(history: LoadHistory, room: float = 1.1) -> Forecasts:
    """Return yesterday's targets with some room as forecasts, which are right while all days are alike."""
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
    """Return the same load, except that its days begin at another hour from a step on."""
    values = history.values.copy()
    values[:, step:] = np.roll(history.values, shift, axis=1)[:, step:]
    return with_values(history, values)


def versus_headroom(capacity: FloatArray, history: LoadHistory, first_day: int) -> Comparison:
    load, judged = history.values[0], np.arange(history.steps) >= first_day * DAY_STEPS
    found = measure(load, simulate(desired_replicas(capacity, FLEET.load_per_replica), FLEET), judged, FLEET)
    return compare(found, reaching(frontier(load, judged, FLEET), found.replica_hours, load, judged, FLEET))


@pytest.fixture(scope="module")
def ten_days() -> AutoRun:
    """Return the choices in ten days of bursts."""
    return run(bursts_every_day(10))


def test_a_model_that_knows_the_cycle_leads_before_a_week_is_over(ten_days: AutoRun) -> None:
    assert set(ten_days.in_use[6 * DAY_STEPS :]) == {"seasonal"}
    assert ten_days.decisions[-1].reason is ChoiceReason.BETTER
    assert ten_days.decisions[-1].blend.parts[0].weight > 0.9


def test_uses_plain_headroom_until_a_model_has_been_judged() -> None:
    history = bursts_every_day(5)
    found = run(history)
    early = 2 * DAY_STEPS
    assert set(found.in_use[:early]) == {"headroom"}
    np.testing.assert_allclose(found.capacity[:early], history.values[0, :early] * (1 + HEADROOM_RATIO))
    assert found.decisions[0].reason is ChoiceReason.NOTHING_KNOWN


@pytest.mark.parametrize("room", [1.2, 1.3, 1.4])
def test_the_configured_headroom_acts_where_a_forecast_only_adds_noise(room: float) -> None:
    history = random_walk(12)
    noise = np.random.default_rng(3).lognormal(0.0, 0.15, history.values.shape)
    found = run(history, Forecasts(history.values, history.values * room * noise))
    assert set(found.in_use[8 * DAY_STEPS :]) == {"headroom"}
    assert found.decisions[-1].blend == Blend(HEADROOM_RATIO)
    versus = versus_headroom(found.capacity, history, 6)
    assert (versus.tau_under_versus_headroom or 0.0) <= 1.05
    assert (versus.theta_under_versus_headroom or 0.0) <= 1.05


@pytest.mark.parametrize("seed", range(6))
def test_a_walk_with_a_handful_of_short_steps_has_plain_headroom_and_nothing_else(seed: int) -> None:
    """In a walk, one short step more or less is a large ratio, so only proven models may act."""
    history = random_walk(10, seed)
    rules = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    found = run_auto(history, {**rules, "seasonal": of_yesterday(history)}, TASK, FLEET)
    np.testing.assert_allclose(found.capacity, history.values[0] * (1 + HEADROOM_RATIO))


def test_what_was_proven_acts_until_the_odds_for_it_are_reversed() -> None:
    history = bursts_every_day(12)
    found = PlayedChoices(history, {"seasonal": of_yesterday(history)}, TASK, FLEET)
    weights, acting = found.decided.weights[:, 0], found.decided.acting[:, 0]
    proven = int(np.flatnonzero(acting[:, 0] > 0)[0])
    assert weights[proven, 0] >= 5 * weights[proven, 1] > weights[proven - 1, 0]
    assert (found.decided.ratios[:proven, 0] == HEADROOM_RATIO).all()
    assert (found.decided.ratios[-1] > HEADROOM_RATIO).all()


def test_models_that_are_proven_at_the_configured_cost_alone_act_at_that_cost() -> None:
    """Headroom at the bill's cost is hardly ever short, so nothing is proven against it; the configured one is."""
    whole = bursts_every_day(12)
    calm = with_values(whole, 600.0 + whole.values / 4)
    is_flood = np.random.default_rng(3).random(calm.steps) < 4 / DAY_STEPS
    history = with_values(calm, calm.values * np.where(is_flood, 1.25, 1.0))
    dear = Forecasts(history.values, history.values * 1.35)
    forecasts = {"linear": dear, "polynomial": dear, "percentile": dear, "seasonal": of_yesterday(calm)}
    played = PlayedChoices(history, forecasts, TASK, FLEET)
    assert played.last_choice(0).model == "seasonal"
    assert (played.decided.ratios == HEADROOM_RATIO).all()
    versus = versus_headroom(played.capacity[0], history, 9)
    assert versus.cost_as_headroom_ratio == pytest.approx(HEADROOM_RATIO, abs=0.03)
    assert versus.tau_under_versus_headroom is not None
    assert versus.tau_under_versus_headroom < 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_a_cost_that_rises_late_is_paid_for_by_what_models_have_gained(seed: int) -> None:
    """Headroom of 10% for ten days and 28% afterwards is short more often than headroom of the mean cost throughout."""
    day = np.arange(22 * DAY_STEPS) / DAY_STEPS
    noise = np.random.default_rng(seed).lognormal(0.0, 0.1, len(day))
    cycle = 1000 * (1 + 0.6 * np.sin(2 * np.pi * day)) * noise
    history = with_values(bursts_every_day(22), cycle[np.newaxis])
    rules = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    forecasts = {**rules, "seasonal": of_yesterday(history, 1.2)}
    versus = versus_headroom(PlayedChoices(history, forecasts, TASK, FLEET).capacity[0], history, 8)
    assert (versus.tau_under_versus_headroom or 0.0) <= 1.0
    assert (versus.theta_under_versus_headroom or 0.0) <= 1.0


@pytest.mark.parametrize(("seed", "strays"), [(1, 4), (4, 4), (9, 2)])
def test_models_that_are_proven_too_late_to_be_paid_for_do_not_act_at_a_lower_cost(seed: int, strays: int) -> None:
    """Jobs need four times the load, some at random times: most of the room for these is wasted."""
    rng = np.random.default_rng(seed)
    days = 16
    load = np.full(days * DAY_STEPS, 40.0)
    begins = [day * DAY_STEPS + 20 + 48 * job + rng.normal(0, 2) for day in range(days) for job in range(3)]
    begins.extend(rng.integers(0, len(load) - 9, days * strays))
    for begin in begins:
        load[int(begin) : int(begin) + int(rng.integers(3, 9))] += 120.0
    history = with_values(bursts_every_day(days), (load * rng.lognormal(0.0, 0.08, len(load)))[np.newaxis])
    rules = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    around = np.fmax.reduce([np.roll(of_yesterday(history, 1.0).upper, shift, axis=1) for shift in range(-6, 7)])
    around[:, : 2 * DAY_STEPS] = np.nan
    played = PlayedChoices(history, {**rules, "seasonal": Forecasts(around, around)}, TASK, FLEET)
    versus = versus_headroom(played.capacity[0], history, 8)
    assert (versus.tau_under_versus_headroom or 0.0) <= 1.02
    assert (versus.theta_under_versus_headroom or 0.0) <= 1.02


def test_the_cost_of_the_first_week_is_not_charged() -> None:
    """Models that are proven within that week act at the full cost of their bill at once."""
    history = bursts_every_day(12)
    decided = PlayedChoices(history, {"seasonal": of_yesterday(history)}, TASK, FLEET).decided
    proven = int(np.flatnonzero(decided.acting[:, 0, 0] > 0)[0])
    assert proven < 7 * DAY_STEPS
    assert decided.ratios[proven, 0] > 2 * HEADROOM_RATIO


def test_a_breaking_cycle_takes_the_lead_from_the_model_within_a_day() -> None:
    found = run(broken_from(bursts_every_day(12), 8 * DAY_STEPS))
    assert found.in_use[8 * DAY_STEPS - 1] == "seasonal"
    assert "headroom" in found.in_use[8 * DAY_STEPS : 9 * DAY_STEPS]


def test_a_model_that_is_right_again_comes_back() -> None:
    assert run(broken_from(bursts_every_day(20), 8 * DAY_STEPS)).in_use[-1] == "seasonal"


def test_the_model_with_the_smaller_shortage_leads() -> None:
    history = bursts_every_day(12)
    rough = of_yesterday(history)
    rng = np.random.default_rng(5)
    worse = Forecasts(rough.median, rough.upper * rng.lognormal(0.0, 0.3, rough.upper.shape))
    found = run_auto(history, {"holt-winters": worse, "seasonal": rough}, TASK, FLEET)
    assert found.in_use[-1] == "seasonal"
    assert {each.name for each in found.decisions[-1].records} == {"holt-winters", "seasonal"}


def test_all_parts_cost_the_same_whatever_they_ask_for_by_themselves() -> None:
    history = bursts_every_day(12)
    hours = []
    for room in (1.1, 1.3):
        forecasts = of_yesterday(history, room)
        choice = run_auto(history, {"seasonal": forecasts}, replace(TASK, budget_ratio=0.4), FLEET).decisions[-1]
        alone = Blend(0.0, (Part("seasonal", 1.0, choice.blend.parts[0].scale),))
        capacity = alone.capacity(history.values[0], {"seasonal": forecasts.upper[0]}, HEADROOM_RATIO)
        fleet = simulate(desired_replicas(capacity, FLEET.load_per_replica), FLEET)
        hours.append(fleet.asked[5 * DAY_STEPS :].sum())
    assert hours[0] == pytest.approx(hours[1], rel=0.02)


@pytest.mark.parametrize("budget", [0.25, 0.4, 0.8])
def test_a_budget_bounds_what_is_paid_above_the_load(budget: float) -> None:
    history = bursts_every_day(14)
    found = run_auto(history, {"seasonal": of_yesterday(history)}, replace(TASK, budget_ratio=budget), FLEET)
    asked = simulate(desired_replicas(found.capacity, FLEET.load_per_replica), FLEET).asked[6 * DAY_STEPS :].sum()
    filled = (history.values[0, 6 * DAY_STEPS :] / FLEET.load_per_replica).sum()
    assert asked / filled - 1 <= budget * 1.03
    bill = found.decisions[-1].bill.above_load_ratio
    assert bill is not None
    assert bill == pytest.approx(budget, rel=0.05)


def test_a_budget_that_no_headroom_fits_into_leaves_the_load_as_it_is() -> None:
    history = bursts_every_day(8)
    found = run_auto(history, {"seasonal": of_yesterday(history)}, replace(TASK, budget_ratio=0.0), FLEET)
    np.testing.assert_allclose(found.capacity[DAY_STEPS:], history.values[0, DAY_STEPS:])


def test_a_model_whose_bound_binds_often_has_lost() -> None:
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


def test_nothing_after_the_present_matters(ten_days: AutoRun) -> None:
    history = bursts_every_day(10)
    seen = 8 * DAY_STEPS + 17
    values = history.values.copy()
    values[:, seen:] = 1e7
    poisoned = run_auto(with_values(history, values), {"seasonal": of_yesterday(history)}, TASK, FLEET)
    np.testing.assert_array_equal(ten_days.capacity[:seen], poisoned.capacity[:seen])
    assert ten_days.in_use[:seen] == poisoned.in_use[:seen]


def test_a_model_that_never_forecasts_is_not_judged() -> None:
    history = bursts_every_day(3)
    found = run(history, none_at_all(history))
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
def test_only_long_steps_need_fewer_short_ones_and_only_early(step_seconds: float, early: float, late: float) -> None:
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


def test_on_a_random_walk_auto_is_no_worse_than_headroom_at_equal_cost() -> None:
    history = random_walk(10)
    forecasts = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (QUANTILE, CONFORMAL)}
    versus = versus_headroom(run_auto(history, forecasts, TASK, FLEET).capacity, history, 5)
    assert (versus.tau_under_versus_headroom or 0.0) <= 1.05
    assert (versus.theta_under_versus_headroom or 0.0) <= 1.05


def test_the_bill_stays_after_a_week_while_headroom_leads() -> None:
    """Forecasts change by a third from day to day, and none of them is useful."""
    history = random_walk(14)
    rooms = 1.3 + 0.1 * np.sin(np.arange(history.steps) / DAY_STEPS * 2.1)
    noise = np.random.default_rng(3).lognormal(0.0, 0.15, history.values.shape)
    forecasts = Forecasts(history.values, history.values * rooms * noise)
    played = PlayedChoices(history, {"seasonal": forecasts}, TASK, FLEET)
    bills = played.decided.ratios[played.numbers()[8 * DAY_STEPS - 1] :, 0]
    assert set(bills.round(6)) == {HEADROOM_RATIO}


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


def test_where_headroom_stands_in_for_proven_models_the_reason_is_their_record() -> None:
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


def test_before_anything_is_judged_a_proven_rise_acts() -> None:
    history = random_walk(1)
    upper = np.full_like(history.values, np.nan)
    upper[:, 5:10] = history.values[:, 5:10] * 1.4
    found = run_auto(history, {"trend": Forecasts(upper, upper)}, TASK, FLEET)
    load, acted = history.values[0], found.capacity
    np.testing.assert_allclose(acted[5:10], load[5:10] * 1.4)
    np.testing.assert_allclose(acted[:5], load[:5] * (1 + HEADROOM_RATIO))
    assert set(found.in_use[:5]) == {"trend"}
    assert found.decisions[0].reason is ChoiceReason.NOTHING_KNOWN


@pytest.mark.parametrize("budget", [None, 0.3])
def test_series_that_are_decided_together_have_the_bills_that_each_would_have_alone(budget: float | None) -> None:
    cycle, walk, young = bursts_every_day(10), random_walk(10), random_walk(10, 2)
    young.values[:, : -DAY_STEPS // 10] = np.nan
    rows = [each.values for each in (cycle, walk, young)]
    together = LoadHistory(walk.start_seconds, STEP_SECONDS, np.concatenate(rows))
    noise = np.random.default_rng(3).lognormal(0.0, 0.15, together.values.shape)
    rise = np.where(noise > 1.2, together.values * 1.4, np.nan)
    rise[1] = np.nan
    uppers = {"trend": rise, "linear": together.values * 1.3 * noise, "seasonal": of_yesterday(together).upper}
    task = replace(TASK, budget_ratio=budget)
    played = PlayedChoices(together, {name: Forecasts(each, each) for name, each in uppers.items()}, task, FLEET)
    for series in range(len(rows)):
        one = LoadHistory(walk.start_seconds, STEP_SECONDS, together.values[[series]])
        forecasts = {name: Forecasts(each[[series]], each[[series]]) for name, each in uppers.items()}
        alone = run_auto(one, forecasts, task, FLEET)
        np.testing.assert_allclose(played.capacity[series], alone.capacity)
        last = played.last_choice(series)
        assert (last.model, last.reason) == (alone.decisions[-1].model, alone.decisions[-1].reason)
        assert last.blend.headroom_ratio == pytest.approx(alone.decisions[-1].blend.headroom_ratio)
    assert last.model == ("headroom" if budget else "trend"), "nothing is known of the young one"


def test_a_model_that_comes_in_with_its_prior_does_not_act_by_the_rounding_of_its_weight() -> None:
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
