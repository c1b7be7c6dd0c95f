"""Rules of which Prometheus returned only a part of the series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.commands.check.output import as_text
from adapter.commands.trials.served import served_by
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.prometheus.errors import NotAVectorError, PrometheusTimeoutError, QueryRefusedError
from adapter.foundation.sources.prometheus.queries.budget import Budgeted
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.plans import plan_of
from adapter.metrics.rulebook.report import RulebookReport, RuleReport
from tests.support.readings import FakeClock, Reply, ScriptedPrometheus, reply, rulebook_of

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer
    from adapter.metrics.rulebook.model import Metric, Plan
    from adapter.metrics.rulebook.report import ServedMetrics

RULES = """
rules:
- seriesQuery: '{__name__=~"^app_.*",namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""
SERIES = {"__name__": "app_rps", "namespace": "shop", "pod": "web-0"}


class Prometheus(ScriptedPrometheus):
    """A Prometheus that evaluates a query at some moment if the query names none."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        return super().instant(query, timeout_seconds=timeout_seconds, at=at or 1000.0)


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


def served(prometheus: Prometheus) -> ServedMetrics:
    return served_by(rulebook_of(RULES).rules, lambda _: prometheus, resolve, max_age_seconds=60)["rules[0]"]


def test_a_truncated_answer_is_reported_beside_its_metrics() -> None:
    prometheus = Prometheus(series_answer=lambda _: [SERIES], answer=lambda _: reply(({"__name__": "app_rps"}, "7")))
    prometheus.series_warnings = ("results truncated due to limit",)
    found = served(prometheus)

    assert [(metric.name, metric.series) for metric in found.metrics] == [
        ("namespaces/app_rps", 7),
        ("pods/app_rps", 7),
    ]
    assert [(finding.severity, finding.code) for finding in found.findings] == [("warning", "not-asked")]
    assert "results truncated due to limit" in found.findings[0].message


def test_a_truncated_answer_without_metrics_is_not_reported_as_no_series() -> None:
    prometheus = Prometheus(series_warnings=("results truncated due to limit",))

    assert [finding.code for finding in served(prometheus).findings] == ["not-asked"]
    assert [finding.code for finding in served(Prometheus()).findings] == ["no-series"]


def test_a_metric_that_the_rule_names_is_listed_before_its_series_exist() -> None:
    """The running process lists the metric too: otherwise nothing could scale up from zero."""
    spelled_out = rulebook_of(RULES.replace('{__name__=~"^app_.*",', "app_rps{"))
    seen = {"__name__": "app_rps", "namespace": "shop"}

    def of(prometheus: Prometheus) -> ServedMetrics:
        return served_by(spelled_out.rules, lambda _: prometheus, resolve, max_age_seconds=60)["rules[0]"]

    unseen = of(Prometheus())
    assert [(metric.name, metric.series) for metric in unseen.metrics] == [
        ("namespaces/app_rps", 0),
        ("pods/app_rps", 0),
    ]
    assert [(finding.severity, finding.code) for finding in unseen.findings] == [("warning", "no-series")]
    half = of(Prometheus(series_answer=lambda _: [seen], answer=lambda _: reply(({"__name__": "app_rps"}, "7"))))
    assert [(metric.name, metric.series) for metric in half.metrics] == [
        ("namespaces/app_rps", 7),
        ("pods/app_rps", 0),
    ]
    assert half.findings == ()


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", ["name-collision"]),
        ("sum by (<<.GroupBy>>) (app_rps{<<.LabelMatchers>>})", []),
    ],
)
def test_series_of_the_same_name_in_the_api_are_one_metric(query: str, codes: list[str]) -> None:
    rules = RULES.replace("sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", query)
    prometheus = Prometheus(
        series_answer=lambda _: [SERIES, SERIES | {"__name__": "app_old"}], answer=lambda _: reply()
    )
    (rule,) = rulebook_of(rules + "  name: {as: load}\n").rules
    found = served_by([rule], lambda _: prometheus, resolve, max_age_seconds=60)[rule.id]

    assert [metric.name for metric in found.metrics] == ["namespaces/load", "pods/load"]
    assert [finding.code for finding in found.findings] == codes


def test_a_count_that_is_not_finite_is_left_out() -> None:
    prometheus = Prometheus(series_answer=lambda _: [SERIES], answer=lambda _: reply(({"__name__": "app_rps"}, "+Inf")))

    assert {metric.series for metric in served(prometheus).metrics} == {0}


def test_series_that_could_not_be_counted_are_reported_as_not_counted() -> None:
    def answer(query: str) -> Reply | PrometheusTimeoutError:
        return PrometheusTimeoutError(query, "too slow") if query.startswith("count") else reply()

    found = served(Prometheus(series_answer=lambda _: [SERIES], answer=answer))
    assert {metric.series for metric in found.metrics} == {None}
    report = RuleReport("rules[0]", Api.CUSTOM, "f", 1, (), None, found.metrics, None)
    assert "pods/app_rps: series not counted" in as_text(RulebookReport(("f",), (report,), ()), {})


def test_metrics_that_differ_only_in_their_series_share_the_proof_of_their_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proof takes a millisecond, and a rule may serve ten thousand metrics."""
    proven: list[str] = []

    def prove(metric: Metric) -> Plan:
        proven.append(metric.qualified)
        return plan_of(metric)

    monkeypatch.setattr("adapter.commands.trials.served.plan_of", prove)
    names = [f"app_{number}" for number in range(50)]
    series = [{**SERIES, "__name__": name} for name in names]
    found = served(Prometheus(series_answer=lambda _: series))

    assert proven == ["namespaces/app_0", "pods/app_0"]
    assert {metric.name: metric.query for metric in found.metrics} == {
        **{f"namespaces/{name}": f'sum by (namespace) ({name}{{namespace!=""}})' for name in names},
        **{f"pods/{name}": f'sum by (namespace,pod) ({name}{{namespace!="",pod!=""}})' for name in names},
    }


@pytest.mark.parametrize(("most", "shown"), [(None, 2), (1, 1), (0, 0)])
def test_only_the_queries_that_are_read_are_rendered(most: int | None, shown: int) -> None:
    prometheus, rules = Prometheus(series_answer=lambda _: [SERIES]), rulebook_of(RULES).rules
    (found,) = served_by(rules, lambda _: prometheus, resolve, max_age_seconds=60, most_queries=most).values()

    assert [metric.name for metric in found.metrics] == ["namespaces/app_rps", "pods/app_rps"]
    assert [metric.query is not None for metric in found.metrics] == [place < shown for place in range(2)]


def test_a_query_that_does_not_return_a_vector_is_an_error_of_the_rule() -> None:
    def answer(query: str) -> Reply | NotAVectorError:
        return reply() if query.startswith("count") else NotAVectorError(query, "the answer is a matrix")

    (finding,) = served(Prometheus(series_answer=lambda _: [SERIES], answer=answer)).findings
    assert (finding.severity, finding.code, finding.fix) == ("error", "query-refused", "correct `metricsQuery`")
    assert finding.message.startswith("Prometheus has no values for namespaces/app_rps: query ")


def test_a_query_that_is_valid_only_with_a_selector_is_a_warning() -> None:
    """Nothing but a selector fills the matchers of such a rule, and autoscalers have one."""

    def answer(query: str) -> Reply | QueryRefusedError:
        return QueryRefusedError(query, "bad_data", "unexpected ','") if "{," in query else reply()

    rule = (
        """{seriesQuery: depth, resources: {namespaced: false}, metricsQuery: 'sum(depth{<<.LabelMatchers>>,a="b"})'}"""
    )
    rules = rulebook_of(f"externalRules: [{rule}]").rules
    prometheus = Prometheus(series_answer=lambda _: [{"__name__": "depth"}], answer=answer)
    (found,) = served_by(rules, lambda _: prometheus, resolve, max_age_seconds=60).values()

    (finding,) = found.findings
    assert (finding.severity, finding.code) == ("warning", "query-refused")
    assert finding.message.startswith("Prometheus refuses the query of depth without a selector: ")
    assert finding.fix == "always request it with a selector, or write <<.LabelMatchers>> behind the other matchers"


def test_a_query_that_prometheus_cannot_evaluate_is_an_error_although_it_can_select_nothing() -> None:
    def answer(query: str) -> Reply | QueryRefusedError:
        return QueryRefusedError(query, "execution", "many-to-many") if query == "depth{} / size{}" else reply()

    query = "'depth{<<.LabelMatchers>>} / size{<<.LabelMatchers>>}'"
    rule = f"{{seriesQuery: depth, resources: {{namespaced: false}}, metricsQuery: {query}}}"
    rules = rulebook_of(f"externalRules: [{rule}]").rules
    prometheus = Prometheus(series_answer=lambda _: [{"__name__": "depth"}], answer=answer)
    (found,) = served_by(rules, lambda _: prometheus, resolve, max_age_seconds=60).values()

    assert [(finding.severity, finding.code) for finding in found.findings] == [("error", "query-refused")]


def test_series_are_not_counted_after_a_failed_lookup() -> None:
    prometheus = Prometheus(series_answer=lambda _: PrometheusTimeoutError("q", "too slow"))

    assert [finding.code for finding in served(prometheus).findings] == ["not-asked"]
    assert prometheus.asked == []


def test_after_a_minute_of_a_hanging_prometheus_the_remaining_queries_are_reported_as_not_sent() -> None:
    clock = FakeClock()
    timeouts: list[float] = []

    class Hanging(Prometheus):
        def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
            timeouts.append(timeout_seconds)
            clock.forward(timeout_seconds)
            return super().series(selector, start=start, timeout_seconds=timeout_seconds)

    hanging = Hanging(series_answer=lambda selector: PrometheusTimeoutError(selector, "no answer"))
    client = Budgeted(hanging, 70, lambda: clock.now)
    rules = rulebook_of("rules:" + "".join(RULES.partition("rules:")[2].replace("app_", f"{a}_") for a in "abcde"))
    found = served_by(rules.rules, lambda _: client, resolve, max_age_seconds=60)

    assert timeouts == [30, 30, 10]
    messages = [finding.message for served_metrics in found.values() for finding in served_metrics.findings]
    assert {finding.code for served_metrics in found.values() for finding in served_metrics.findings} == {"not-asked"}
    assert ["not sent: the queries before it took 70 s" in message for message in messages] == [False] * 3 + [
        True,
        True,
    ]
