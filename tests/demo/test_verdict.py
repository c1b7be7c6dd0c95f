from __future__ import annotations

import re
from dataclasses import replace

import pytest

from demo.forecasts import NO_CHOICE, Choice, choice_of
from demo.moments import Moment
from demo.records import Served, Sync
from demo.settings import PREDICTIVE, REACTIVE, Settings, target_of
from demo.verdict import FleetDay, has_refused_more, judge, judge_both, summary
from demo.verify import Findings

SETTINGS = Settings()
SIZES = (2, 8, 20, 20, 6, 2)
CHOICE = Choice("boosted", "auto: boosted leads", 0.4, is_made=True)
FORECAST = Served(0.0, 0.0, {"": 1000})


def day(
    namespace: str = REACTIVE,
    sizes: tuple[int, ...] = SIZES,
    refused: int = 0,
    findings: Findings | None = None,
    forecast: Served | None = FORECAST,
    took_seconds: float = 141.0,
    open_connections: int = 10,
) -> FleetDay:
    moments = [
        Moment(
            seconds=20.0 * place,
            wanted=10,
            open=open_connections,
            attempted=1900,
            refused=refused,
            dropped=0,
            lost=0,
            replicas=size,
            serving=size,
            limit=60,
            over=place == len(sizes) - 1,
        )
        for place, size in enumerate(sizes)
    ]
    sync = Sync(0.0, 2, 2, ("a",), (), None, None, forecast, (), 2, "")
    return FleetDay(target_of(namespace, 140.0), moments, [sync] * 10, findings or Findings(), took_seconds)


def test_a_day_that_was_held_has_no_objections() -> None:
    assert judge_both(day(), day(PREDICTIVE), CHOICE, SETTINGS)[1].held


def test_pods_that_the_load_needs_at_the_end_may_be_left() -> None:
    left = (2, 20, 4)
    assert judge(day(sizes=left, open_connections=120), SETTINGS).held
    assert not judge(day(sizes=left, open_connections=100), SETTINGS).held
    assert judge(day(sizes=left, open_connections=100), SETTINGS, headroom_ratio=0.1).held


@pytest.mark.parametrize(
    ("given", "objection"),
    [
        (day(PREDICTIVE, refused=39), r"39 of 1900 connections were refused \(2\.1%\), more than 2%"),
        (day(refused=400), r"400 of 1900 connections were refused \(21\.1%\), more than 20%"),
        (day(sizes=(2, 5, 2)), "never more than 5 pods"),
        (day(sizes=(2, 20, 4)), "4 pods were left"),
        (replace(day(), syncs=[]), "no decision was made"),
        (day(findings=Findings(5, ["x"])), "1 of 5 answers differ"),
        (day(findings=Findings(0, [], 5, ["x"])), "1 of 5 decisions differ"),
    ],
)
def test_each_fault_is_an_objection_of_its_own(given: FleetDay, objection: str) -> None:
    (found,) = judge(given, SETTINGS).objections
    assert re.search(objection, found)


@pytest.mark.parametrize(
    ("refused", "other", "more"),
    [(0, 0, False), (4, 0, False), (5, 0, True), (7, 5, False), (16, 5, True), (3, 20, False), (38, 20, True)],
)
def test_a_fleet_refuses_more_only_if_the_difference_is_significant(refused: int, other: int, *, more: bool) -> None:
    assert has_refused_more(refused, other) is more


def test_a_fleet_with_a_forecast_must_not_refuse_more() -> None:
    (objection,) = judge_both(day(refused=5), day(PREDICTIVE, refused=16), CHOICE, SETTINGS)[1].objections
    assert objection == "16 of its connections were refused, of the reactive fleet 5"


def test_a_fleet_with_a_forecast_must_not_cost_much_more() -> None:
    dear = day(PREDICTIVE, sizes=(2, 12, 28, 28, 8, 2))
    (objection,) = judge_both(day(), dear, CHOICE, SETTINGS)[1].objections
    assert "39% more pod-seconds" in objection


def test_a_fleet_that_has_lost_its_forecast_may_keep_its_size() -> None:
    kept = day(PREDICTIVE, sizes=(2, 8, 20, 20, 20, 20), forecast=None)
    assert judge_both(day(), kept, CHOICE, SETTINGS)[1].held
    assert not judge_both(day(), day(PREDICTIVE, sizes=(2, 8, 20, 20, 20, 20)), CHOICE, SETTINGS)[1].held


@pytest.mark.parametrize(("choice", "is_held"), [(CHOICE, False), (NO_CHOICE, True)])
def test_a_model_that_is_chosen_during_the_day_may_cost_more_at_its_end(choice: Choice, *, is_held: bool) -> None:
    assert judge_both(day(), day(PREDICTIVE, sizes=(2, 8, 20, 20, 6, 5)), choice, SETTINGS)[1].held is is_held


@pytest.mark.parametrize(("choice", "took_seconds"), [(NO_CHOICE, 141.0), (CHOICE, 170.0)])
def test_fleets_are_not_compared_without_a_choice_or_out_of_step(choice: Choice, took_seconds: float) -> None:
    dear = day(PREDICTIVE, sizes=(2, 12, 28, 28, 8, 2), refused=16, took_seconds=took_seconds)
    verdicts = judge_both(day(refused=1), dear, choice, SETTINGS)
    assert verdicts[1].held
    assert summary((day(), dear), verdicts, choice, SETTINGS)["in_step"] is (took_seconds < 150)


def test_the_summary_says_what_was_chosen_and_what_it_costs() -> None:
    days = day(refused=20), day(PREDICTIVE)
    found = summary(days, judge_both(*days, CHOICE, SETTINGS), CHOICE, SETTINGS)
    assert found["verdict"] == "held"
    assert found["connections_refused"] == 20
    assert found["predictive"]["model_reason"] == "auto: boosted leads"
    assert found["predictive"]["cost_as_headroom_ratio"] == 0.4


def test_a_choice_is_made_when_models_have_been_compared() -> None:
    item: dict[str, object] = {
        "model": "headroom",
        "model_reason": "",
        "cost_as_headroom_ratio": None,
        "shortage_versus_headroom": {},
    }
    chosen = {**item, "model": "seasonal", "cost_as_headroom_ratio": 0.3, "shortage_versus_headroom": {"seasonal": 0.1}}
    assert choice_of({"items": []}) == choice_of({"items": [item]}) == NO_CHOICE
    assert choice_of({"items": [chosen]}) == Choice("seasonal", "", 0.3, is_made=True)


def test_a_fleet_out_of_step_may_see_the_next_morning_come() -> None:
    left = day(PREDICTIVE, sizes=(2, 8, 20, 20, 20, 9), took_seconds=170.0)
    assert judge(left, SETTINGS).held
    assert not judge(replace(left, took_seconds=141.0), SETTINGS).held
    assert not judge(day(sizes=(2, 8, 20, 20, 20, 9), took_seconds=170.0), SETTINGS).held
