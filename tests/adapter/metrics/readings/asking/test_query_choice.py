"""The query that serves a request is widened with demand, and narrowed when Prometheus refuses it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError, QueryRefusedError
from adapter.foundation.time.pace import Pace
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.asking import queries
from adapter.metrics.readings.asking.demand import DemandedRequest
from adapter.metrics.readings.errors import PartialAnswerError, QueryRefusedByPrometheusError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.refreshing.refresh_loop import let_go
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import planned_query
from adapter.metrics.rulebook.templates.matchers import RenderError
from tests.adapter.metrics.readings.asking.planning_harness import (
    ALL_SAMPLES,
    NAMESPACES,
    OBJECTS,
    WEB,
    WIDE,
    answer_as_asked,
    ask,
    refuse_wide,
    wide,
)
from tests.support.readings import PODS_RULES, MadeUpObjects, ScriptedPrometheus, Threads, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.time.pace import Slice
    from adapter.metrics.rulebook.model import Metric
    from adapter.metrics.rulebook.requests import Asked, PlannedQuery
    from tests.support.readings import Reply


def test_few_namespaces_are_queried_one_by_one_and_more_together() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)

    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    assert wide(prometheus.asked) == [False, False, False, False, True]
    prometheus.asked.clear()
    harness.pass_time(20)
    harness.pass_time(10)
    assert wide(prometheus.asked[-2:]) == [True, True]
    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]


def test_queries_replaced_by_a_wider_one_are_no_longer_sent() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    for ns in NAMESPACES:
        ask(harness, ns)
    harness.pass_time(20)
    prometheus.asked.clear()
    harness.pass_time(60)

    assert len(prometheus.asked) == 6
    assert all(wide(prometheus.asked))


def test_requests_with_an_answer_do_not_wait_for_the_wider_query() -> None:
    threads = Threads(held=True)
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(
        prometheus, objects=OBJECTS, submit=threads, settings=ReadingSettings(first_answer_wait_seconds=0.01)
    )
    for ns in NAMESPACES[:4]:
        harness.readings._scheduler.entry(harness.pods("http_rps"), request(ns))
    threads.run()
    harness.readings._scheduler.entry(harness.pods("http_rps"), request(NAMESPACES[4]))

    assert [ask(harness, ns) for ns in NAMESPACES[:4]] == [0, 1, 2, 3]
    threads.run()
    assert ask(harness, NAMESPACES[4]) == 4


def request(namespace: str) -> DemandedRequest:
    return DemandedRequest("pods/http_rps", namespace, WEB, EVERYTHING)


def test_namespaces_are_queried_one_by_one_again_when_few_are_left() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS, settings=ReadingSettings(demand_ttl_seconds=60))
    for ns in NAMESPACES:
        ask(harness, ns)
    for _ in range(10):
        harness.pass_time(10)
        assert ask(harness, NAMESPACES[0]) == 0
    prometheus.asked.clear()
    harness.pass_time(10)

    assert set(wide(prometheus.asked)) == {False}


def test_a_metric_selector_is_part_of_the_query() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    metric = harness.pods("http_rps")
    harness.readings.objects(metric, "ns0", WEB, parse_selector("path=a"))
    harness.readings.objects(metric, "ns0", WEB, parse_selector("path=b"))

    assert ['path="a"' in query for query in prometheus.asked] == [True, False]


def test_a_refused_wide_query_is_replaced_by_namespace_queries_unnoticed_by_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    prometheus = ScriptedPrometheus(answer=refuse_wide)
    harness = make_harness(prometheus, objects=OBJECTS)

    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    assert sum(wide(prometheus.asked)) == 1
    assert harness.counter("tidewatch_adapter_plan_narrowings_total", rule="rules[0]", plan="wide") == 1
    assert [record.getMessage() for record in caplog.records] == [
        (
            "pods/http_rps (rules[0]): its wide query fails; "
            "until it works again, the metric is queried by the namespace plan: "
            'query sum by (namespace,pod) (rate(http_requests_total{namespace!="",pod!=""}[1m])): '
            "Prometheus refused it (execution): too many"
        )
    ]
    harness.pass_time(60)
    assert sum(wide(prometheus.asked)) == 1, "there were no requests meanwhile"


def test_a_refused_namespace_query_is_replaced_by_the_exact_one() -> None:
    def refuse_wider(query: str) -> Reply | QueryRefusedError:
        return QueryRefusedError(query, "bad_data", "no") if 'pod!=""' in query else answer_as_asked(query)

    prometheus = ScriptedPrometheus(answer=refuse_wider)
    harness = make_harness(prometheus, objects=OBJECTS)

    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]
    harness.pass_time(60)
    assert sum("!=" in query for query in prometheus.asked) == len(NAMESPACES), "each namespace's own was refused"
    assert any('pod=~"web-0"' in query or 'pod="web-0"' in query for query in prometheus.asked)


def test_a_refused_plan_keeps_its_answers_until_the_narrower_one_has_its_own() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    for ns in NAMESPACES:
        ask(harness, ns)
    prometheus.answer = refuse_wide
    for _ in range(60):
        harness.pass_time(1)
        assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]

    assert not any(wide(prometheus.asked[-6:]))


def test_an_answer_that_is_too_large_narrows_the_plan() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked, limits=AnswerLimits(max_samples=3))
    harness = make_harness(prometheus, objects=OBJECTS)

    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]


def test_an_exact_answer_that_is_too_large_is_an_error() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: ALL_SAMPLES, limits=AnswerLimits(max_samples=3))
    harness = make_harness(prometheus, objects=OBJECTS)

    with pytest.raises(PartialAnswerError, match="3"):
        ask(harness, "ns0", "only_exact")


def test_an_outage_does_not_narrow_the_plan() -> None:
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)
    for ns in NAMESPACES:
        ask(harness, ns)
    harness.pass_time(20)
    prometheus.answer = lambda query: PrometheusUnreachableError(query, "connection refused")
    harness.pass_time(60)
    prometheus.answer = answer_as_asked
    prometheus.asked.clear()
    harness.pass_time(30)

    assert prometheus.asked
    assert all(wide(prometheus.asked))


def test_a_bad_selector_does_not_narrow_other_requests() -> None:
    def refuse_bad(query: str) -> Reply | QueryRefusedError:
        return QueryRefusedError(query, "bad_data", "bad") if "bad" in query else answer_as_asked(query)

    prometheus = ScriptedPrometheus(answer=refuse_bad)
    harness = make_harness(prometheus, objects=OBJECTS)
    for ns in NAMESPACES:
        ask(harness, ns)
    with pytest.raises(QueryRefusedByPrometheusError):
        harness.readings.objects(harness.pods("http_rps"), "ns0", ByName("web-0"), parse_selector("path in (bad)"))
    harness.pass_time(20)
    prometheus.asked.clear()
    harness.pass_time(30)

    assert [WIDE in query for query in prometheus.asked if "bad" not in query] == [True, True, True]


def test_two_rules_with_the_same_query_share_it() -> None:
    twice = PODS_RULES.replace(
        "\nrules:\n",
        """
rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {as: same_rps}
  metricsQuery: 'sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[1m]))'
""",
    )
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS, rules=twice)

    assert ask(harness, "ns1", "http_rps") == ask(harness, "ns1", "same_rps") == 1
    assert len(prometheus.asked) == 1


def test_a_plan_without_a_query_is_replaced_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_wide_query(metric: Metric, asked: Asked, kind: PlanKind) -> PlannedQuery:
        if kind is PlanKind.WIDE:
            raise RenderError("no such query")
        return planned_query(metric, asked, kind)

    monkeypatch.setattr(queries, "planned_query", no_wide_query)
    prometheus = ScriptedPrometheus(answer=answer_as_asked)
    harness = make_harness(prometheus, objects=OBJECTS)

    assert [ask(harness, ns) for ns in NAMESPACES] == [0, 1, 2, 3, 4, 5]


def test_a_replaced_reading_is_freed_in_slices() -> None:
    slices: list[int] = []
    parts: list[Sized] = [dict.fromkeys(map(str, range(900)), 1.0) for _ in range(10)]

    class Counting(Pace):
        @contextmanager
        def slice(self) -> Iterator[Slice]:
            before = sum(map(len, parts))
            with super().slice() as slice_:
                yield slice_
            slices.append(before - sum(map(len, parts)))

    let_go(parts, Counting(pause_seconds=0.0))

    assert parts == []
    assert sum(slices) == 9000
    assert max(slices) < 3000


def test_a_label_that_names_pods_in_one_rule_and_services_in_another_is_queried_for_each() -> None:
    class PodsAndServices(MadeUpObjects):
        def names(self, resource: Resource, namespace: str | None, selector: Selector) -> tuple[str, ...]:
            assert (namespace, selector) == ("ns0", WEB.selector)
            return (f"{resource.singular}-0",)

    rule = """
- seriesQuery: 'load{namespace!="",target!=""}'
  resources: {overrides: {namespace: {resource: namespace}, target: {resource: %s}}}
  metricsQuery: 'topk(3, <<.Series>>{<<.LabelMatchers>>})'
"""
    samples = {name: reply(({"namespace": "ns0", "target": name}, "1")) for name in ("pod-0", "service-0")}
    prometheus = ScriptedPrometheus(lambda query: next(samples[name] for name in samples if f'"{name}"' in query))
    harness = make_harness(prometheus, objects=PodsAndServices(), rules="rules:" + rule % "pod" + rule % "service")
    found = {}
    for _ in range(2):
        for kind in ("pods", "services"):
            metric = harness.readings.catalogue.find_custom(kind, namespaced=True, name="load")
            assert metric is not None
            found[kind] = harness.readings.objects(metric, "ns0", WEB, EVERYTHING).values
        harness.pass_time(20)

    assert found == {"pods": (("pod-0", 1.0),), "services": (("service-0", 1.0),)}


def test_a_plan_that_gave_other_values_is_given_up_for_its_own_metric_alone() -> None:
    harness = make_harness(ScriptedPrometheus(answer=answer_as_asked), objects=OBJECTS)
    for name in ("http_rps", "raw"):
        for ns in NAMESPACES:
            ask(harness, ns, name)
    scheduler = harness.readings._scheduler
    (group,) = [each for each in scheduler.state.groups() if each.metric.name == "http_rps"]
    scheduler.distrust(group, "the answers differ")
    kinds = {each.metric.name: each.kind for each in scheduler.state.groups()}
    assert kinds == {"http_rps": PlanKind.EXACT, "raw": PlanKind.WIDE}


def test_each_selector_of_an_external_metric_has_the_plan_that_is_proven_for_its_labels() -> None:
    rules = """
externalRules:
- seriesQuery: 'depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum without (queue) (<<.Series>>{<<.LabelMatchers>>})'
"""
    prometheus = ScriptedPrometheus(answer=lambda _: reply())
    harness = make_harness(prometheus, objects=OBJECTS, rules=rules)
    for selector in ("code=500", "queue=a", "code=404"):
        harness.readings.external(harness.external("depth"), "ns0", parse_selector(selector))
    assert prometheus.asked == [
        'sum without (queue) (depth{namespace="ns0"})',
        'sum without (queue) (depth{queue="a",namespace="ns0"})',
    ]


def test_plans_for_labels_of_selectors_are_forgotten_with_their_last_request() -> None:
    prometheus = ScriptedPrometheus(answer=refuse_wide)
    harness = make_harness(prometheus, objects=OBJECTS)
    for number in range(30):
        for ns in NAMESPACES:
            harness.readings.external(harness.external("queue_depth"), ns, parse_selector(f"label{number}=a"))
    harness.pass_time(620, step=5)

    planner = harness.readings._scheduler.state.planner
    assert (planner.plans._plans, planner._groups) == ({}, {})


def test_plans_of_short_lived_metrics_are_forgotten_with_their_last_request() -> None:
    harness = make_harness(ScriptedPrometheus(answer=answer_as_asked), objects=OBJECTS)
    metric, plans = harness.pods("http_rps"), harness.readings._scheduler.state.planner.plans
    for number in range(30):
        # As objects of the kind MetricRule do whose names are those of short-lived jobs.
        present = replace(metric, rule=replace(metric.rule, id=f"MetricRule ns0/job-{number}"))
        for selector in (EVERYTHING, parse_selector("code=200")):
            harness.readings.objects(present, "ns0", WEB, selector)
        assert len(plans._plans) == 1, "requests with several selectors share a plan"
    harness.pass_time(620, step=5)
    assert plans._plans == {}


@pytest.mark.parametrize("namespaces", [NAMESPACES[:2], NAMESPACES], ids=["of each namespace", "of all namespaces"])
def test_a_query_forgets_expired_requests_that_shared_it(namespaces: list[str]) -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _: reply()), objects=OBJECTS)
    for number in range(30):
        for ns in namespaces:
            for selector in ("app=web", f"label{number}=a"):
                harness.readings.external(harness.external("queue_rows"), ns, parse_selector(selector))
        harness.pass_time(70, step=10)

    planner = harness.readings._scheduler.state.planner
    for ns in namespaces:
        harness.readings.external(harness.external("queue_rows"), ns, parse_selector("app=web"))
    assert len(planner.queries) == (2 if namespaces == NAMESPACES[:2] else 1)
    assert all(query.kind is not PlanKind.EXACT for query in planner.queries.values())
    in_demand = set(planner.groups())
    assert [query.groups - in_demand for query in planner.queries.values()] == [set()] * len(planner.queries)


def test_the_number_of_indexed_labels_is_bounded() -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _: reply()), objects=OBJECTS)
    made_up = parse_selector(",".join(f"made_up_{number}=a" for number in range(40)))
    for selector in (parse_selector("app=web"), made_up):
        harness.readings.external(harness.external("queue_rows"), "shop", selector)

    planner = harness.readings._scheduler.state.planner
    (query,) = planner.queries.values()
    assert "app" in query.labels
    assert len(query.labels) == 16

    request = DemandedRequest("queue_rows", "shop", None, made_up)
    trials = [planner.trial(group, request, PlanKind.WIDE) for group in planner.groups()]
    assert {len(trial.labels) for trial in trials} == {16}
