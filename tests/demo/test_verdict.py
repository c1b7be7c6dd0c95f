from __future__ import annotations

import re
from dataclasses import replace

import pytest

from demo.moments import Moment
from demo.records import Served, Sync
from demo.settings import PREDICTIVE, REACTIVE, Settings, target_of
from demo.verdict import FleetDay, has_refused_more, judge, judge_both
from demo.verify import Findings

SETTINGS = Settings()
SIZES = (2, 8, 20, 20, 6, 2)
FORECAST = Served(0.0, 0.0, {"": 1000})


def day(
    namespace: str = REACTIVE,
    sizes: tuple[int, ...] = SIZES,
    refused: int = 0,
    findings: Findings | None = None,
    forecast: Served | None = FORECAST,
) -> FleetDay:
    moments = [
        Moment(
            seconds=20.0 * place,
            wanted=10,
            open=10,
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
    return FleetDay(target_of(namespace, 120.0), moments, [sync] * 10, findings or Findings())


def test_a_day_that_was_held_has_no_objections() -> None:
    assert judge_both(day(), day(PREDICTIVE), SETTINGS)[1].held


@pytest.mark.parametrize(
    ("given", "objection"),
    [
        (day(refused=39), r"39 of 1900 connections were refused \(2\.1%\), more than 2%"),
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
def test_a_fleet_refuses_more_only_if_the_difference_is_no_chance(refused: int, other: int, *, more: bool) -> None:
    assert has_refused_more(refused, other) is more


def test_a_fleet_with_a_forecast_must_not_refuse_more() -> None:
    (objection,) = judge_both(day(refused=5), day(PREDICTIVE, refused=16), SETTINGS)[1].objections
    assert objection == "16 of its connections were refused, of the reactive fleet 5"


def test_a_fleet_with_a_forecast_must_not_cost_much_more() -> None:
    dear = day(PREDICTIVE, sizes=(2, 12, 28, 28, 8, 2))
    (objection,) = judge_both(day(), dear, SETTINGS)[1].objections
    assert "39% more pod-seconds" in objection


def test_a_fleet_that_has_lost_its_forecast_may_keep_its_size() -> None:
    kept = day(PREDICTIVE, sizes=(2, 8, 20, 20, 20, 20), forecast=None)
    assert judge_both(day(), kept, SETTINGS)[1].held
    assert not judge_both(day(), day(PREDICTIVE, sizes=(2, 8, 20, 20, 20, 20)), SETTINGS)[1].held
