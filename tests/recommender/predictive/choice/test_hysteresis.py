from __future__ import annotations

from dataclasses import replace

import pytest

from recommender.predictive.choice.hysteresis import ChoiceOptions, ModelStanding, next_standing
from recommender.predictive.choice.records import ChoiceReason, ModelRecord
from recommender.predictive.history import DAY_SECONDS

STEP_SECONDS = 600.0
DAY_STEPS = int(DAY_SECONDS / STEP_SECONDS)
OPTIONS = ChoiceOptions()
GOOD = ModelRecord("seasonal", 3 * DAY_SECONDS, 1200.0, 0.3, 0.5, 0.5, 0.5, 0.01, 0.6)
HEADROOM = ModelStanding("headroom", 0.1)
IN_USE = ModelStanding("seasonal", 0.1)


def after(
    standing: ModelStanding, *records: ModelRecord, excess_days: float = 0.0, step: int = 1000
) -> tuple[ModelStanding, ChoiceReason]:
    return next_standing(standing, records, excess_days, step, STEP_SECONDS, 0.1, OPTIONS)


@pytest.mark.parametrize(
    ("record", "comes_into_use"),
    [
        (GOOD, True),
        (replace(GOOD, tau_under_versus_headroom=1.0, theta_under_versus_headroom=0.59), True),
        (replace(GOOD, tau_under_versus_headroom=1.0, theta_under_versus_headroom=0.61), False),
        (replace(GOOD, pinball_versus_headroom=1.01), False),
        (replace(GOOD, lost_load_versus_headroom=0.91), False),
        (replace(GOOD, judged_seconds=2 * DAY_SECONDS - 1), False),
        (replace(GOOD, cost_as_headroom_ratio=1.1), False),
    ],
)
def test_a_model_comes_into_use_by_every_measure(record: ModelRecord, *, comes_into_use: bool) -> None:
    found, reason = after(HEADROOM, record)
    assert (found.model == "seasonal") is comes_into_use
    assert reason is (ChoiceReason.PROVED_BETTER if comes_into_use else ChoiceReason.NOT_BETTER)


@pytest.mark.parametrize(
    ("record", "excess_days", "reason"),
    [
        (GOOD, 0.7, ChoiceReason.STILL_BETTER),
        (GOOD, 0.8, ChoiceReason.RECENTLY_WORSE),
        (replace(GOOD, tau_under_versus_headroom=1.4), 0.0, ChoiceReason.STILL_BETTER),
        (replace(GOOD, tau_under_versus_headroom=1.6), 0.0, ChoiceReason.NO_LONGER_BETTER),
        (replace(GOOD, lost_load_versus_headroom=1.05), 0.0, ChoiceReason.STILL_BETTER),
        (replace(GOOD, lost_load_versus_headroom=1.15), 0.0, ChoiceReason.NO_LONGER_BETTER),
        (replace(GOOD, cost_as_headroom_ratio=1.4), 0.0, ChoiceReason.STILL_BETTER),
        (replace(GOOD, cost_as_headroom_ratio=1.6), 0.0, ChoiceReason.TOO_EXPENSIVE),
    ],
)
def test_a_model_goes_out_of_use_by_any_measure(record: ModelRecord, excess_days: float, reason: ChoiceReason) -> None:
    found, why = after(IN_USE, record, excess_days=excess_days)
    assert why is reason
    assert found.model == ("seasonal" if reason is ChoiceReason.STILL_BETTER else "headroom")


def test_headroom_after_a_model_costs_as_much_but_no_more_than_a_model_may() -> None:
    assert after(IN_USE, GOOD, excess_days=5.0)[0].headroom_ratio == 0.3
    assert after(IN_USE, replace(GOOD, cost_as_headroom_ratio=0.05), excess_days=5.0)[0].headroom_ratio == 0.1
    assert after(IN_USE, replace(GOOD, cost_as_headroom_ratio=2.0), excess_days=5.0)[0].headroom_ratio == 1.0


def test_each_return_takes_twice_as_long_up_to_a_week() -> None:
    standing, step, waits = IN_USE, 1000, []
    for _ in range(5):
        standing, _ = after(standing, GOOD, excess_days=5.0, step=step)
        given_up = step
        while standing.model == "headroom":
            step += 1
            standing, _ = after(standing, GOOD, step=step)
        waits.append((step - given_up) / DAY_STEPS)
    assert waits == [1, 2, 4, 7, 7]


def test_headroom_keeps_the_cost_of_a_model_that_may_come_back_for_a_week_at_most() -> None:
    waiting, _ = after(IN_USE, GOOD, excess_days=5.0)
    not_yet = replace(GOOD, pinball_versus_headroom=1.1)
    found = [after(waiting, not_yet, step=1000 + each) for each in (DAY_STEPS - 1, DAY_STEPS, 7 * DAY_STEPS)]
    assert [each.headroom_ratio for each, _ in found] == [0.3, 0.3, 0.1]
    assert [why for _, why in found] == [ChoiceReason.HELD_BACK, ChoiceReason.NOT_BETTER, ChoiceReason.NOT_BETTER]


def test_headroom_is_the_configured_one_once_the_model_is_not_worth_its_cost() -> None:
    bad = replace(GOOD, tau_under_versus_headroom=2.0)
    waiting, _ = after(IN_USE, GOOD, excess_days=5.0)
    assert after(waiting, bad, step=1001)[0].headroom_ratio == 0.1
    assert after(IN_USE, bad)[0].headroom_ratio == 0.1


@pytest.mark.parametrize(("shortage", "in_use"), [(0.41, "seasonal"), (0.39, "quantile")])
def test_another_model_takes_over_only_if_it_is_clearly_better(shortage: float, in_use: str) -> None:
    other = replace(GOOD, name="quantile", tau_under_versus_headroom=shortage, theta_under_versus_headroom=shortage)
    assert after(IN_USE, GOOD, other)[0].model == in_use
