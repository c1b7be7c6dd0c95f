"""Labels whose names need quotes in a query, such as `service.name` of OpenTelemetry in Prometheus 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.promql.tree import TreeMatcher, selectors_of
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.readings.explain.sample_ages import timestamps_query
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.objects.confining import confined_rule
from adapter.metrics.rulebook.parsing.notes import Notes
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.plans.sample_age import times_of
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.requests import Asked, Fold
from tests.support.metrics import metrics_of
from tests.support.plan_trials import custom_metric, external_metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Metric, Rulebook

_ANY = "x{<<.LabelMatchers>>}"
_OTEL = "{k8s.namespace.name: {resource: namespace}, k8s.pod.name: {resource: pod}}"


def _asked(selector: str = "", names: tuple[str, ...] = ("web-0",)) -> Asked:
    return Asked("shop", names, parse_selector(selector))


@pytest.fixture
def pods(read: Callable[..., Rulebook], resolve: ResolveResource) -> Callable[..., Metric]:
    """Return a function that returns the metric of pods that a rule with OpenTelemetry's labels provides."""

    def metric(mapping: str = f"overrides: {_OTEL}", **keys: str) -> Metric:
        more = "".join(f"  {key}: {value}\n" for key, value in keys.items())
        (rule,) = read(
            "rules:\n- seriesQuery: '{\"http.requests\"}'\n"
            f"  resources: {{{mapping}}}\n"
            "  metricsQuery: 'sum by (<<.GroupBy>>) ({\"<<.Series>>\",<<.LabelMatchers>>})'\n" + more
        ).rules
        series = {"__name__": "http.requests", "k8s.namespace.name": "shop", "k8s.pod.name": "web-0", "a.b": "c"}
        found = {metric.qualified: metric for metric in metrics_of(rule, [series], resolve)}
        assert found.keys() == {"namespaces/http.requests", "pods/http.requests"}
        return found["pods/http.requests"]

    return metric


@pytest.mark.parametrize(
    ("selector", "matcher"),
    [
        ("service.name=checkout", '"service.name"="checkout"'),
        ("service.name!=checkout", '"service.name"!="checkout"'),
        ("http.route in (b,a)", '"http.route"=~"a|b"'),
        ("http.route notin (a)", '"http.route"!~"a"'),
        ("k8s.pod.name", '"k8s.pod.name"!=""'),
        ("!k8s.pod.name", '"k8s.pod.name"=""'),
        ("app.kubernetes.io/name=web", '"app.kubernetes.io/name"="web"'),
        ("a-b=c", '"a-b"="c"'),
        ("1a=c", '"1a"="c"'),
        ("a.b=c,a_b=d", '"a.b"="c",a_b="d"'),
    ],
)
def test_a_label_of_a_selector_is_quoted_where_it_must_be(selector: str, matcher: str) -> None:
    query = exact_query(external_metric(_ANY), _asked(selector, ()))
    assert query == f'x{{{matcher},namespace="shop"}}'
    (selected,) = selectors_of(parse_query(query))
    assert {each.label for each in selected.matchers} == {"__name__", "namespace", *parse_selector(selector).keys}


def test_a_selector_with_such_a_label_shares_the_query_of_all_namespaces() -> None:
    """One query answers all requesters only if the label is in it: older servers would answer others without it."""
    summed = external_metric(f"sum({_ANY})")
    asked = _asked("service.name=checkout", ())
    assert plan_of(summed, asked.selector.keys).kind is PlanKind.WIDE
    planned = planned_query(summed, asked, PlanKind.WIDE)
    assert planned.text == 'sum by (namespace, "service.name") (x{namespace!=""})'
    assert planned.fold == Fold("sum", ())
    grouped = external_metric(f'sum by (namespace, "service.name") ({_ANY})')
    assert plan_of(grouped, asked.selector.keys).kind is PlanKind.WIDE
    assert plan_of(custom_metric(f"sum by (<<.GroupBy>>) ({_ANY})"), asked.selector.keys).kind is PlanKind.WIDE


def test_a_query_without_the_label_of_a_selector_stays_exact() -> None:
    """A server that does not know such labels refuses the exact query, and would answer the wider one with nothing."""
    plan = plan_of(external_metric(_ANY), frozenset({"service.name"}))
    assert plan.kind is PlanKind.EXACT
    assert plan.reason == (
        "only the exact query contains `service.name`, whose quotes not every server understands: a server that does "
        "not must refuse the request"
    )


def test_labels_of_objects_and_namespaces_may_need_quotes(
    pods: Callable[..., Metric], resolve: ResolveResource
) -> None:
    metric = pods()
    assert planned_query(metric, _asked("a.b=c"), PlanKind.EXACT).text == (
        'sum by ("k8s.pod.name") ({"http.requests","a.b"="c","k8s.namespace.name"="shop","k8s.pod.name"="web-0"})'
    )
    assert plan_of(metric).kind is PlanKind.WIDE
    wide = planned_query(metric, _asked(), PlanKind.WIDE)
    assert wide.text == (
        'sum by ("k8s.namespace.name","k8s.pod.name") ({"http.requests","k8s.namespace.name"!="","k8s.pod.name"!=""})'
    )
    assert (wide.namespace_label, wide.object_label) == ("k8s.namespace.name", "k8s.pod.name")
    assert {each.qualified for each in static_metrics(metric.rule, resolve)} == {
        "namespaces/http.requests",
        "pods/http.requests",
    }


def test_a_template_of_labels_may_need_quotes(pods: Callable[..., Metric]) -> None:
    assert pods("template: k8s.<<.Resource>>.name").object_label == "k8s.pod.name"


def test_the_times_of_samples_are_queried_with_the_quotes(pods: Callable[..., Metric]) -> None:
    metric = pods(maxSampleAge="1m")
    times = times_of(metric)
    assert times is not None
    assert planned_query(times, _asked(), PlanKind.EXACT).text == (
        'min by ("k8s.pod.name") '
        '(timestamp({__name__="http.requests","k8s.namespace.name"="shop","k8s.pod.name"="web-0"}))'
    )
    question = Question("http.requests", resource=metric.resource, namespace="shop")
    assert timestamps_query(metric, ["web-0"], question) == (
        'max by ("k8s.pod.name") '
        '(timestamp({__name__="http.requests","k8s.namespace.name"="shop","k8s.pod.name"="web-0"}))'
    )


def test_a_rule_can_be_confined_by_such_a_label(pods: Callable[..., Metric], resolve: ResolveResource) -> None:
    metric, label = pods(), "k8s.namespace.name"
    notes, document = Notes("a"), load_documents("a: b", "a.yaml")
    confined = confined_rule(metric.rule, "shop", label, resolve, document, notes)
    assert confined is not None, notes.findings
    (selected,) = selectors_of(parse_query(confined.series_query))
    assert TreeMatcher(label, "=", "shop") in selected.matchers


@pytest.mark.parametrize("label", ["", ".a", '"a', "a b", "a\\b", "é", "a'b", "a`b", "a\n"])
def test_a_label_that_could_end_a_string_is_no_label_of_objects(
    label: str, read: Callable[..., Rulebook], resolve: ResolveResource
) -> None:
    (rule,) = read(
        "rules:\n- seriesQuery: up\n  resources: {template: <<.Resource>>}\n  metricsQuery: up{<<.LabelMatchers>>}\n"
    ).rules
    series = {"__name__": "up", "namespace": "shop", label: "x"}
    assert {each.qualified for each in metrics_of(rule, [series], resolve)} == {"namespaces/up"}


def test_values_stay_values_behind_a_quoted_label() -> None:
    hostile = Asked("shop", ('web"} or y{"a', "web-1"), EVERYTHING)
    query = exact_query(custom_metric(f"sum by (<<.GroupBy>>) ({_ANY})"), hostile)
    (selected,) = selectors_of(parse_query(query))
    assert {each.label for each in selected.matchers} == {"__name__", "namespace", "pod"}
