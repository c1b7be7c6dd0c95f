"""A reload keeps the readings of rules that have not changed, and forgets the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError, QueryRefusedError
from tests.adapter.metrics.readings.asking.planning_harness import (
    NAMESPACES,
    OBJECTS,
    WEB,
    answer_as_asked,
    ask,
    refuse_wide,
    wide,
)
from tests.support.readings import PODS_RULES, ScriptedPrometheus, Threads, make_harness, reply, rulebook_of

if TYPE_CHECKING:
    from tests.support.readings import Reply


def test_a_reload_keeps_the_readings_of_metrics_that_did_not_change() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    for ns in NAMESPACES:
        ask(harness, ns)
    harness.pass_time(20)
    prometheus.answer = lambda query: PrometheusUnreachableError(query, "connection refused")
    moved = PODS_RULES.replace(
        "\nrules:\n",
        """
rules:
- seriesQuery: 'another_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
""",
    )
    harness.readings.replace_rulebook(rulebook_of(moved))

    assert harness.pods("http_rps").rule.id == "rules[1]"
    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]


def test_a_reload_with_a_changed_rule_takes_effect_at_once() -> None:
    prometheus = ScriptedPrometheus(answer=lambda query: reply(({"pod": "web-0"}, "2" if "[2m]" in query else "1")))
    harness = make_harness(prometheus, objects=OBJECTS)
    assert ask(harness, "ns0") == 1
    harness.readings.replace_rulebook(rulebook_of(PODS_RULES.replace("[1m]", "[2m]")))

    assert ask(harness, "ns0") == 2
    harness.pass_time(20)
    prometheus.asked.clear()
    harness.pass_time(20)
    assert all("[2m]" in query for query in prometheus.asked)


def test_a_reload_forgets_refused_plans() -> None:
    prometheus = ScriptedPrometheus(answer=refuse_wide)
    harness = make_harness(prometheus, objects=OBJECTS)
    for ns in NAMESPACES:
        ask(harness, ns)
    prometheus.answer = answer_as_asked
    harness.readings.replace_rulebook(rulebook_of())
    harness.pass_time(20)
    prometheus.asked.clear()
    harness.pass_time(20)

    assert wide(prometheus.asked) == [True, True]
    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]


def test_a_reload_that_removes_a_metric_ends_its_queries() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    ask(harness, "ns0")
    harness.readings.replace_rulebook(rulebook_of("externalRules: []\nrules: []\n"))
    harness.pass_time(10)
    prometheus.asked.clear()
    harness.pass_time(60)

    assert prometheus.asked == []
    assert harness.readings.catalogue.custom == ()


@pytest.mark.parametrize("name", ["queue_depth", "queue_rows"])
def test_a_reload_that_returns_to_a_wider_plan_does_not_mix_up_answers(name: str) -> None:
    """An exact answer holds the rows of one request, so it may not stand in for another's."""

    def exact_only(query: str) -> Reply | QueryRefusedError:
        asked = [queue for queue in ("a", "b") if f'queue="{queue}"' in query]
        return reply(({}, str("ab".index(asked[0])))) if asked else QueryRefusedError(query, "execution", "no")

    def ask_queues() -> list[float]:
        selectors = [parse_selector(f"queue={queue}") for queue in "ab"]
        answers = [harness.readings.external(harness.external(name), "ns0", selector) for selector in selectors]
        return [row.value for answer in answers for row in answer.rows]

    threads = Threads()
    prometheus = ScriptedPrometheus(answer=exact_only)
    harness = make_harness(prometheus, objects=OBJECTS, submit=threads)
    assert ask_queues() == [0, 1]
    threads.held = True
    harness.readings.replace_rulebook(rulebook_of())

    assert ask_queues() == [0, 1]
    threads.run()
    assert ask_queues() == [0, 1]
    prometheus.answer = lambda _query: reply(({"queue": "a"}, "10"), ({"queue": "b"}, "11"))
    harness.readings.replace_rulebook(rulebook_of())
    assert ask_queues() == [0, 1]
    threads.run()
    assert ask_queues() == [10, 11]


def test_a_request_with_a_metric_from_before_a_reload_leaves_no_former_answer() -> None:
    answer = reply(({"pod": "web-0"}, "1"))
    prometheus = ScriptedPrometheus(answer=lambda query: reply(({"pod": "web-0"}, "2")) if "[2m]" in query else answer)
    harness = make_harness(prometheus, objects=OBJECTS)
    former = harness.pods("http_rps")
    harness.readings.replace_rulebook(rulebook_of(PODS_RULES.replace("[1m]", "[2m]")))
    harness.readings.objects(former, "ns0", WEB, EVERYTHING)

    assert ask(harness, "ns0") == 2
