"""MetricRule objects are read as rule files are, and confined to their namespace."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.promql.tree import SelectorNode, TreeMatcher, operands_of
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked
from benchmarks.usage import usage
from tests.support.rule_objects import QUEUE, RATE, rule_object, spec_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.promql.tree import Node
    from adapter.metrics.rulebook.model import Metric
    from adapter.metrics.rulebook.objects.rule_object import RuleObject

OWN: Final = TreeMatcher("namespace", "=", "shop")
_RESOLVE = partial(find_resource, BUILT_IN)


def metrics_of(found: RuleObject) -> dict[str, Metric]:
    assert found.rule is not None, [str(finding) for finding in found.findings]
    return {metric.qualified: metric for metric in static_metrics(found.rule, _RESOLVE)}


def selectors(node: Node) -> Iterator[SelectorNode]:
    if isinstance(node, SelectorNode):
        yield node
    for operand in operands_of(node):
        yield from selectors(operand)


def errors(found: RuleObject) -> list[str]:
    return [finding.code for finding in found.findings if finding.severity == "error"]


def test_the_namespace_label_need_not_be_written() -> None:
    found = rule_object(QUEUE)
    assert found.findings == ()
    assert found.rule is not None
    assert (found.rule.id, found.rule.place) == ("MetricRule shop/web", "MetricRule shop/web")
    assert found.rule.series_query == 'jobs_waiting{namespace="shop"}'


def test_all_objects_share_one_value_of_a_label_of_own_metrics() -> None:
    rules = [rule_object(QUEUE, place).rule for place in ("shop/web", "bank/web")]
    assert {rule.label_value for rule in rules if rule} == {"MetricRule"}


@pytest.mark.parametrize(
    ("query", "selector"),
    [
        ("sum(<<.Series>>{<<.LabelMatchers>>})", ""),
        ("<<.Series>> or other_series", ""),
        ('<<.Series>>{namespace="bank"}', ""),
        ('<<.Series>>{namespace!="shop"} or {__name__=~".+"}', ""),
        ("max_over_time(sum(<<.Series>>)[5m:1m] offset 1h) / scalar(count(up))", ""),
        ('label_replace(<<.Series>>, "namespace", "bank", "", "") # {', ""),
        ("<<if .LabelValuesByName>><<.Series>><<else>>up<<end>>", "a=b"),
        ("<<.Series>>{<<.LabelMatchers>>} unless on () absent(up)", 'a in (b,c),d!="}"'.replace('"}"', "e")),
    ],
)
def test_every_selector_of_every_query_names_the_namespace(query: str, selector: str) -> None:
    metric = metrics_of(rule_object(spec_with(QUEUE, metricsQuery=query)))["jobs_waiting"]
    asked = Asked("shop", (), parse_selector(selector) if selector else EVERYTHING)
    kinds = [kind for kind in PlanKind if kind in plan_of(metric, asked.selector.keys).proven]
    for kind in kinds:
        found = list(selectors(parse_query(planned_query(metric, asked, kind).text)))
        assert found
        assert [each for each in found if OWN not in each.matchers] == []


PIECES: Final = (
    *(
        "<<.Series>>",
        "{",
        "}",
        "(",
        ")",
        "up",
        " or ",
        ",",
        '"',
        "'",
        "`",
        "#",
        "\n",
        "\\",
        "[5m]",
        " offset 1m",
        "@ 1",
    ),
    *('namespace="bank"', "<<.LabelMatchers>>", "sum", "by", "{a=~'b|{'}", "info(up)", " ", "1", "+", "<<.GroupBy>>"),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_no_query_text_escapes_the_namespace(query: str) -> None:
    found = rule_object(spec_with(QUEUE, metricsQuery=query))
    for metric in metrics_of(found).values() if found.rule else ():
        try:
            text = exact_query(metric, Asked("shop", (), EVERYTHING))
        except RenderError:
            continue
        assert all(OWN in each.matchers for each in selectors(parse_query(text)))


def test_a_query_answers_one_namespace_and_never_several() -> None:
    plan = plan_of(metrics_of(rule_object(RATE))["pods/hit_rate"])
    assert plan.kind is PlanKind.NAMESPACE
    assert plan.reason == "the rule is confined to one namespace"


def test_the_namespace_label_is_configurable() -> None:
    found = rule_object(RATE, label="kube_namespace")
    assert found.rule is not None
    assert found.rule.series_query == 'hits_total{kube_namespace="shop",pod!=""}'
    assert found.rule.resources.namespace_label() == "kube_namespace"


OVERRIDES: Final = {"pod": {"resource": "pod"}}
REFUSED: Final[dict[str, tuple[object, str, str]]] = {
    "nothing": (None, "wrong-kind", "found null"),
    "no API": ({"rule": QUEUE["rule"]}, "missing-key", "`api` is missing"),
    "another API": ({**QUEUE, "api": "resource"}, "wrong-kind", "'resource' is not an API of rules"),
    "no rule": ({"api": "external"}, "missing-key", "`rule` is missing"),
    "an unknown key": (spec_with(QUEUE, metricQuery="up"), "unknown-key", "metricQuery"),
    "an unknown key beside the rule": ({**QUEUE, "rules": []}, "unknown-key", "'rules' is not known"),
    "samples of others": (spec_with(QUEUE, foreignNamespaces="allow"), "unknown-key", "`foreignNamespaces`"),
    "memory of silent series": (
        spec_with(QUEUE, holdSilent="1h"),
        "unknown-key",
        "`holdSilent` cannot be set in an object: series that fall silent are held for half an hour",
    ),
    "another Prometheus": (spec_with(QUEUE, backend="eu"), "unknown-key", "`backend`"),
    "for all namespaces": (spec_with(QUEUE, resources={"namespaced": False}), "unknown-key", "`namespaced`"),
    "another label for the namespace": (
        spec_with(RATE, resources={"overrides": {**OVERRIDES, "env": {"resource": "namespace"}}}),
        "not-confined",
        "must say of the label namespace alone",
    ),
    "another kind for the label": (
        spec_with(RATE, resources={"template": "<<.Resource>>", "overrides": {"namespace": {"resource": "node"}}}),
        "not-confined",
        "must say of the label namespace alone",
    ),
    "a query that reads other series": (
        spec_with(QUEUE, metricsQuery="info(<<.Series>>)"),
        "not-confined",
        "info() reads series without a selector",
    ),
    "a query that is not read": (spec_with(QUEUE, metricsQuery="new_function(<<.Series>>)"), "not-confined", "shop"),
    "a selector that is not read": (spec_with(QUEUE, seriesQuery="jobs{a=~b}"), "not-confined", "shop"),
    "an unknown kind of object": (
        spec_with(RATE, resources={"overrides": {"brand": {"resource": "brand"}}}),
        "unknown-resource",
        "brand",
    ),
    "a template that repeats": (
        spec_with(QUEUE, metricsQuery="<<range 9>>1 + <<end>><<.Series>>"),
        "bad-template",
        "`range`",
    ),
    "a template within a condition that repeats": (
        spec_with(QUEUE, metricsQuery='<<define "a">>1<<end>><<if true>><<template "a">> * <<end>><<.Series>>'),
        "bad-template",
        "`template`",
    ),
    "a template of a label that repeats": (
        spec_with(RATE, resources={"template": "<<range 1>>x<<end>>_<<.Resource>>"}),
        "bad-template",
        "`range`",
    ),
    "a query that is made too long": (
        spec_with(
            QUEUE,
            metricsQuery="<<$a := printf `%1000s` `` >>" + "<<$a = print $a $a>>" * 7 + "<<$a>><<.Series>>",
        ),
        "not-confined",
        "which is too long",
    ),
    "a filter that takes long to compile": (
        spec_with(QUEUE, seriesFilters=[{"isNot": "(?i)" + 300 * r"\pL"}]),
        "bad-regex",
        "cannot be used here: it is too large",
    ),
    "filters that take much memory together": (
        spec_with(QUEUE, seriesFilters=[{"isNot": rf"[\pL\pN]{{3}}{number}"} for number in range(32)]),
        "bad-regex",
        "`isNot` '[\\\\pL\\\\pN]{3}4' cannot be used here: it is too large together with those before it",
    ),
    "a name that takes long to compile": (
        spec_with(QUEUE, name={"matches": "((a?){1000}){1}b" + 300 * r"\pN"}),
        "bad-regex",
        "cannot be used here: it is too large",
    ),
    "a label that takes long to compile": (
        spec_with(RATE, resources={"template": "<<.Resource>>" + 300 * r"\pL"}),
        "bad-label-template",
        "it is too large",
    ),
    "a list": ([], "wrong-kind", "found a list"),
}


@pytest.mark.parametrize(("spec", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_an_object_that_cannot_be_confined_or_read_is_refused(spec: object, code: str, message: str) -> None:
    found = rule_object(spec)
    assert found.rule is None
    assert code in errors(found)
    assert any(message in finding.message for finding in found.findings)
    assert {finding.rule for finding in found.findings} == {"MetricRule shop/web"}


def test_many_usual_filters_are_accepted() -> None:
    filters = [{"isNot": f"^(http|grpc)_{number}_.*(_bucket|_created)$"} for number in range(32)]
    found = rule_object(spec_with(QUEUE, seriesFilters=filters))
    assert found.rule is not None
    assert [each.passes("grpc_7_seconds_bucket") for each in found.rule.series_filters].count(False) == 1


def test_filters_take_little_memory_while_they_are_used() -> None:
    """RE2 keeps what it has found out about a pattern, up to 3 MiB for each of these."""
    filters = [{"isNot": f"(a|b){{900}}{number}"} for number in range(6)]
    dice = random.Random(3)
    names = ["".join(dice.choices("ab", k=1000)) for _ in range(10)]
    before = usage(os.getpid()).rss_mib
    found = rule_object(spec_with(QUEUE, seriesFilters=filters, name={"matches": "(a|b){900}", "as": "x"}))
    assert found.rule is not None
    for name in names:
        assert all(each.passes(name) for each in found.rule.series_filters)
        assert found.rule.naming.name_for(name) == "x"
    assert usage(os.getpid()).rss_mib - before < 8


def test_deeply_nested_content_is_refused() -> None:
    nested: Any = "x"
    for _ in range(100):
        nested = [nested]
    assert errors(rule_object({"api": "external", "rule": nested})) == ["wrong-kind"]


def test_json_numbers_are_accepted() -> None:
    found = rule_object(spec_with(QUEUE, onNoData=0))
    assert found.rule is not None
    assert found.rule.policy.no_data_value == 0.0


def test_an_object_waits_for_a_kind_that_the_cluster_lacks() -> None:
    missing = spec_with(RATE, resources={"overrides": {"brand": {"resource": "brand"}}})
    assert [rule_object(spec).waits_for_a_kind for spec in (RATE, missing)] == [False, True]


def test_two_namespaces_never_share_a_query() -> None:
    one, other = (metrics_of(rule_object(QUEUE, place))["jobs_waiting"] for place in ("shop/web", "bank/web"))
    asked = Asked("shop", (), EVERYTHING)
    assert exact_query(one, asked) != exact_query(replace(other, name=one.name), replace(asked, namespace="bank"))
