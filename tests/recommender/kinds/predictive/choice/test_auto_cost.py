"""The cost of the automatic choice: bills, budgets, and the cost at which models act."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.choice.auto import PlayedChoices, run_auto
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.forecast import Forecasts
from recommender.kinds.predictive.history import LoadHistory
from recommender.kinds.predictive.models.conformal import CONFORMAL, LARGEST_HOUR
from recommender.kinds.predictive.rolling_forecasts import rolling_forecasts
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate
from tests.recommender.kinds.predictive.choice.auto_runs import (
    FLEET,
    HEADROOM_RATIO,
    RARE_FITS,
    TASK,
    of_yesterday,
    together,
    versus_headroom,
)
from tests.recommender.kinds.predictive.waves import DAY_STEPS, STEP_SECONDS, bursts_every_day, random_walk, with_values

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray


def test_models_proven_only_at_the_configured_cost_act_at_that_cost() -> None:
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


def test_a_late_rise_of_the_cost_is_covered_by_earlier_gains_of_models() -> None:
    """Headroom of 10% for ten days and 28% afterwards is short more often than headroom of the mean cost throughout."""
    day = np.arange(22 * DAY_STEPS) / DAY_STEPS
    noise = np.stack([np.random.default_rng(seed).lognormal(0.0, 0.1, len(day)) for seed in (0, 1)])
    history = with_values(bursts_every_day(22), 1000 * (1 + 0.6 * np.sin(2 * np.pi * day)) * noise)
    rules = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    forecasts = {**rules, "seasonal": of_yesterday(history, 1.2)}
    played = PlayedChoices(history, forecasts, TASK, FLEET)
    for seed in range(len(noise)):
        versus = versus_headroom(played.capacity[seed], history, 8, seed)
        assert (versus.tau_under_versus_headroom or 0.0) <= 1.0, seed
        assert (versus.theta_under_versus_headroom or 0.0) <= 1.0, seed


def jobs_at_any_time(days: int, seed: int, strays: int) -> FloatArray:
    """Return a load with three jobs a day that need four times the load, and as many as `strays` at random times."""
    rng = np.random.default_rng(seed)
    load = np.full(days * DAY_STEPS, 40.0)
    begins = [day * DAY_STEPS + 20 + 48 * job + rng.normal(0, 2) for day in range(days) for job in range(3)]
    begins.extend(rng.integers(0, len(load) - 9, days * strays))
    for begin in begins:
        load[int(begin) : int(begin) + int(rng.integers(3, 9))] += 120.0
    return np.asarray(load * rng.lognormal(0.0, 0.08, len(load)))


def test_models_proven_too_late_to_afford_do_not_act_at_a_lower_cost() -> None:
    """Most of the room for jobs at random times is wasted."""
    loads = [jobs_at_any_time(16, *each) for each in ((1, 4), (4, 4), (9, 2))]
    history = with_values(bursts_every_day(16), np.stack(loads))
    rules = {model.name: rolling_forecasts(model, history, TASK, RARE_FITS) for model in (CONFORMAL, LARGEST_HOUR)}
    around = np.fmax.reduce([np.roll(of_yesterday(history, 1.0).upper, shift, axis=1) for shift in range(-6, 7)])
    around[:, : 2 * DAY_STEPS] = np.nan
    played = PlayedChoices(history, {**rules, "seasonal": Forecasts(around, around)}, TASK, FLEET)
    for series in range(len(loads)):
        versus = versus_headroom(played.capacity[series], history, 8, series)
        assert (versus.tau_under_versus_headroom or 0.0) <= 1.02, series
        assert (versus.theta_under_versus_headroom or 0.0) <= 1.02, series


def test_models_act_again_once_they_have_proven_themselves_again() -> None:
    """After two bad hours the record is bad for three days, while models gain nearly a usual day on each of them."""
    history = together(*(bursts_every_day(14, seed) for seed in (1, 2, 3)))
    upper = of_yesterday(history, 1.2).upper.copy()
    upper[:, 7 * DAY_STEPS : 7 * DAY_STEPS + 12] = 0.0
    played = PlayedChoices(history, {"seasonal": Forecasts(upper, upper)}, TASK, FLEET)
    for series, stands_in in enumerate(played.decided.stands_in.T):
        (stood,) = np.nonzero(stands_in)
        assert 7 * DAY_STEPS < stood[0] < 7.1 * DAY_STEPS, series
        assert 1.5 * DAY_STEPS < len(stood) < 2.6 * DAY_STEPS, series
        assert (np.diff(stood) == 1).all(), f"{series}: once"


def test_the_cost_of_the_first_week_is_not_charged() -> None:
    """Models that are proven within that week act at the full cost of their bill at once."""
    history = bursts_every_day(12)
    decided = PlayedChoices(history, {"seasonal": of_yesterday(history)}, TASK, FLEET).decided
    proven = int(np.flatnonzero(decided.acting[:, 0, 0] > 0)[0])
    assert proven < 7 * DAY_STEPS
    assert decided.ratios[proven, 0] > 2 * HEADROOM_RATIO


def test_parts_of_a_mixture_cost_the_same_whatever_room_they_forecast() -> None:
    history, hours = bursts_every_day(12), []
    upper = np.concatenate([of_yesterday(history, room).upper for room in (1.1, 1.3)])
    forecasts = {"seasonal": Forecasts(upper, upper)}
    played = PlayedChoices(together(history, history), forecasts, replace(TASK, budget_ratio=0.4), FLEET)
    for series in range(len(upper)):
        alone = Blend(0.0, (Part("seasonal", 1.0, played.last_choice(series).blend.parts[0].scale),))
        capacity = alone.capacity(history.values[0], {"seasonal": upper[series]}, HEADROOM_RATIO)
        fleet = simulate(desired_replicas(capacity, FLEET.load_per_replica), FLEET)
        hours.append(fleet.asked[5 * DAY_STEPS :].sum())
    assert hours[0] == pytest.approx(hours[1], rel=0.02)


@pytest.mark.parametrize("budget", [0.25, 0.4, 0.8])
def test_a_budget_bounds_the_cost_above_the_load(budget: float) -> None:
    history = bursts_every_day(14)
    found = run_auto(history, {"seasonal": of_yesterday(history)}, replace(TASK, budget_ratio=budget), FLEET)
    asked = simulate(desired_replicas(found.capacity, FLEET.load_per_replica), FLEET).asked[6 * DAY_STEPS :].sum()
    filled = (history.values[0, 6 * DAY_STEPS :] / FLEET.load_per_replica).sum()
    assert asked / filled - 1 <= budget * 1.03
    bill = found.decisions[-1].bill.above_load_ratio
    assert bill is not None
    assert bill == pytest.approx(budget, rel=0.05)


def test_a_budget_of_zero_gives_the_load_itself() -> None:
    history = bursts_every_day(8)
    found = run_auto(history, {"seasonal": of_yesterday(history)}, replace(TASK, budget_ratio=0.0), FLEET)
    np.testing.assert_allclose(found.capacity[DAY_STEPS:], history.values[0, DAY_STEPS:])


def test_the_bill_stays_after_a_week_while_headroom_leads() -> None:
    """Forecasts change by a third from day to day, and none of them is useful."""
    history = random_walk(14)
    rooms = 1.3 + 0.1 * np.sin(np.arange(history.steps) / DAY_STEPS * 2.1)
    noise = np.random.default_rng(3).lognormal(0.0, 0.15, history.values.shape)
    forecasts = Forecasts(history.values, history.values * rooms * noise)
    played = PlayedChoices(history, {"seasonal": forecasts}, TASK, FLEET)
    bills = played.decided.ratios[played.numbers()[8 * DAY_STEPS - 1] :, 0]
    assert set(bills.round(6)) == {HEADROOM_RATIO}


@pytest.mark.parametrize("budget", [None, 0.3])
def test_series_decided_together_have_the_same_bills_as_alone(budget: float | None) -> None:
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
