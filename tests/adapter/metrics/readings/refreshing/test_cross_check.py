"""Plans are compared with the queries that they replace while the program runs, and given up where they differ."""

from __future__ import annotations

import logging
import math
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.refreshing.cross_check import difference_of
from tests.support.readings import Harness, MadeUpObjects, Reply, ScriptedPrometheus, make_harness, reply, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACES = [f"ns{number}" for number in range(6)]
OBJECTS = MadeUpObjects({ns: ["web-0", "web-1"] for ns in NAMESPACES})
WEB = BySelector(parse_selector("app=web"))
WIDE = 'namespace!=""'
CHECKS = "tidewatch_adapter_plan_cross_checks_total"
DISTRUSTED = "tidewatch_adapter_rule_plan_distrusted"


class Answers:
    """Right answers, except that `error` is added to the wide ones."""

    def __init__(self, error: float = 0.0) -> None:
        self.error = error
        self.ahead = 0.0
        """The number that is added to all values."""

    def __call__(self, query: str) -> Reply:
        if WIDE in query:
            return reply(
                *(
                    ({"namespace": ns, "pod": pod}, str(index + self.error + self.ahead))
                    for index, ns in enumerate(NAMESPACES)
                    for pod in ("web-0", "web-1")
                )
            )
        (index,) = [index for index, ns in enumerate(NAMESPACES) if f'"{ns}"' in query]
        value = str(index + self.ahead)
        return reply(*(({"namespace": NAMESPACES[index], "pod": pod}, value) for pod in ("web-0", "web-1")))


def ask(harness: Harness, namespace: str, name: str = "http_rps") -> dict[str, float]:
    return dict(harness.readings.objects(harness.pods(name), namespace, WEB, EVERYTHING).values)


def keep_asking(harness: Harness, seconds: float) -> None:
    for _ in range(round(seconds / 10)):
        for ns in NAMESPACES:
            ask(harness, ns)
        harness.pass_time(10)


def checks(harness: Harness, result: str, rule: str = "rules[0]") -> float:
    return harness.counter(CHECKS, rule=rule, result=result)


def test_a_wider_plan_is_compared_once_a_minute_at_one_instant_a_minute_ago() -> None:
    prometheus = ScriptedPrometheus(answer=Answers())
    harness = make_harness(prometheus, objects=OBJECTS, cross_checks=True)
    keep_asking(harness, 50)
    regular = set(prometheus.asked)
    keep_asking(harness, 200)

    compared = [
        (at, query)
        for at, query in zip(prometheus.times, prometheus.asked, strict=True)
        if query not in regular or (at is not None and at < harness.clock.now + harness.clock.wall_offset - 50 - 200)
    ]
    exact_times = [at for at, query in compared if query not in regular]
    assert checks(harness, "equal") == len(exact_times)
    assert 3 <= len(exact_times) <= 4
    for at in exact_times:
        assert sum(time == at for time in prometheus.times if time is not None) >= 2, "both forms, one instant"
    assert harness.counter(DISTRUSTED, rule="rules[0]") == 0


def test_after_three_differences_in_a_row_a_metric_is_queried_exactly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    prometheus = ScriptedPrometheus(answer=Answers(error=0.5))
    harness = make_harness(prometheus, objects=OBJECTS, cross_checks=True)
    with caplog.at_level(logging.ERROR):
        keep_asking(harness, 170)
        assert checks(harness, "different") == 2
        assert ask(harness, "ns3") == {"web-0": 3.5, "web-1": 3.5}, "two may be chance: still the wide plan"
        keep_asking(harness, 60)

    assert checks(harness, "different") == 3
    assert [ask(harness, ns)["web-0"] for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    assert harness.counter(DISTRUSTED, rule="rules[0]") == 1
    (record,) = caplog.records
    assert "gives other values than its exact query" in record.getMessage()
    prometheus.asked.clear()
    keep_asking(harness, 120)
    assert not [query for query in prometheus.asked if WIDE in query]


@pytest.mark.parametrize("servers", ["AB", "AAB", "ABBA", "AABB"])
def test_servers_that_answer_in_turn_with_values_of_their_own_are_no_difference_between_plans(servers: str) -> None:
    answers, turns = {"A": Answers(), "B": Answers()}, cycle(servers)
    answers["B"].ahead = 0.25

    def answer(query: str) -> Reply:
        return answers[next(turns)](query)

    harness = make_harness(ScriptedPrometheus(answer=answer), objects=OBJECTS, cross_checks=True)
    keep_asking(harness, 400)
    assert checks(harness, "different") == harness.counter(DISTRUSTED, rule="rules[0]") == 0
    assert checks(harness, "equal") >= 5


def test_differences_are_forgotten_after_an_equal_result() -> None:
    answers = Answers(error=0.5)
    harness = make_harness(ScriptedPrometheus(answer=answers), objects=OBJECTS, cross_checks=True)
    keep_asking(harness, 170)
    answers.error = 0.0
    keep_asking(harness, 60)
    answers.error = 0.5
    keep_asking(harness, 120)

    assert checks(harness, "different") == 4
    assert checks(harness, "equal") == 1
    assert harness.counter(DISTRUSTED, rule="rules[0]") == 0


def test_differences_are_forgotten_with_the_last_request() -> None:
    settings = ReadingSettings(demand_ttl_seconds=20)
    prometheus = ScriptedPrometheus(answer=Answers(error=0.5))
    harness = make_harness(prometheus, objects=OBJECTS, cross_checks=True, settings=settings)
    keep_asking(harness, 130)
    harness.pass_time(300)
    assert checks(harness, "different") == 2

    keep_asking(harness, 70)
    assert checks(harness, "different") == 3
    assert harness.counter(DISTRUSTED, rule="rules[0]") == 0


def test_a_reload_restores_trust_in_a_plan() -> None:
    answers = Answers(error=0.5)
    prometheus = ScriptedPrometheus(answer=answers)
    harness = make_harness(prometheus, objects=OBJECTS, cross_checks=True)
    keep_asking(harness, 240)
    answers.error = 0.0
    harness.readings.replace_rulebook(rulebook_of())
    prometheus.asked.clear()
    keep_asking(harness, 30)

    assert [query for query in prometheus.asked if WIDE in query]
    assert harness.counter(DISTRUSTED, rule="rules[0]") == 0


def test_new_requests_for_a_distrusted_metric_are_queried_exactly() -> None:
    prometheus = ScriptedPrometheus(answer=Answers(error=0.5))
    harness = make_harness(prometheus, objects=OBJECTS, cross_checks=True)
    keep_asking(harness, 240)
    prometheus.asked.clear()
    (found,) = harness.readings.objects(harness.pods("http_rps"), "ns5", ByName("web-1"), EVERYTHING).values

    assert found == ("web-1", 5.0)
    assert not [query for query in prometheus.asked if WIDE in query]


def test_a_failed_check_does_not_count_against_the_plan() -> None:
    right = Answers(error=0.5)

    def only_wide(query: str) -> Reply | QueryRefusedError:
        return right(query) if WIDE in query else QueryRefusedError(query, "execution", "too many")

    prometheus = ScriptedPrometheus(answer=right)
    harness = make_harness(prometheus, objects=OBJECTS, cross_checks=True)
    keep_asking(harness, 50)
    prometheus.answer = only_wide
    keep_asking(harness, 300)

    assert checks(harness, "failed") >= 3
    assert checks(harness, "different") == 0
    assert harness.counter(DISTRUSTED, rule="rules[0]") == 0


def test_external_rows_are_compared_by_their_labels() -> None:
    def rows(query: str) -> Reply:
        wide = [({"namespace": ns, "queue": f"q{n}"}, str(n)) for ns in NAMESPACES for n in range(3)]
        if WIDE in query:
            return reply(*wide)
        named = [(labels, value) for labels, value in wide if f'"{labels["namespace"]}"' in query]
        return reply(*((labels, "7") if labels["queue"] == "q1" else (labels, value) for labels, value in named))

    harness = make_harness(ScriptedPrometheus(answer=rows), cross_checks=True)
    for _ in range(24):
        for ns in NAMESPACES:
            harness.readings.external(harness.external("queue_rows"), ns, EVERYTHING)
        harness.pass_time(10)

    assert checks(harness, "different", "externalRules[1]") == 3
    assert harness.counter(DISTRUSTED, rule="externalRules[1]") == 1


@pytest.mark.parametrize(
    ("exact", "wider", "differs"),
    [
        pytest.param({"a": 1.0}, {"a": 1.0}, False, id="equal"),
        pytest.param({"a": math.nan}, {"a": math.nan}, False, id="NaN equals NaN"),
        pytest.param({"a": math.inf}, {"a": math.inf}, False, id="infinity equals itself"),
        pytest.param({"a": math.inf}, {"a": -math.inf}, True, id="other sign"),
        pytest.param({"a": 1e12}, {"a": 1e12 + 100}, False, id="a billionth of the larger"),
        pytest.param({"a": 1e12}, {"a": 1e12 + 10_000}, True, id="more than a billionth"),
        pytest.param({"a": 0.0}, {"a": 5e-17}, False, id="rounding beside zero"),
        pytest.param({"a": 1.0}, {}, True, id="absent in the wider"),
        pytest.param({}, {"a": 1.0}, True, id="absent in the exact"),
        pytest.param({"a": 1.0}, {"a": "ambiguous"}, True, id="a value and a reason for none"),
        pytest.param({"a": "ambiguous"}, {"a": "ambiguous"}, False, id="no value in both"),
        pytest.param({frozenset({("q", "1")}): 1.0}, {frozenset({("q", "1")}): 2.0}, True, id="rows"),
    ],
)
def test_answers_differ_by_more_than_rounding_or_by_missing_values(
    exact: Mapping[object, float | str], wider: Mapping[object, float | str], *, differs: bool
) -> None:
    assert (difference_of(exact, wider) is not None) == differs
