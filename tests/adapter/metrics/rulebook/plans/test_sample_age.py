"""The query for the times of samples is made from the rule's own selectors, or not at all."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import parse_selector
from adapter.metrics.rulebook.model import Api, PlanKind
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.plans.sample_age import SampleAgeError, times_of, times_template
from adapter.metrics.rulebook.requests import Asked
from adapter.metrics.rulebook.templates.template import parse_query_template
from tests.support.plan_trials import EXTERNAL, PODS, Tally, custom_metric, external_metric, try_template

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Metric
    from tests.support.plan_samples import AskedPrometheus
    from tests.support.plan_trials import Field


def guarded(metric: Metric) -> Metric:
    rule = metric.rule
    return replace(metric, rule=replace(rule, times_query=times_template(rule.metrics_query, rule.api)))


def times_query(text: str, api: Api = Api.CUSTOM) -> str:
    return times_template(parse_query_template(text), api).text


def part(name: str, number: int) -> str:
    return f'label_replace(timestamp({name}{{<<.LabelMatchers>>}}), "tidewatch_part", "{number}", "", "")'


@pytest.mark.parametrize(
    ("query", "times"),
    [
        ("<<.Series>>{<<.LabelMatchers>>}", "timestamp(<<.Series>>{<<.LabelMatchers>>})"),
        ("rate(<<.Series>>{<<.LabelMatchers>>}[5m])", "timestamp(<<.Series>>{<<.LabelMatchers>>})"),
        ("max_over_time(rate(x{<<.LabelMatchers>>}[1m])[4m:])", "timestamp(x{<<.LabelMatchers>>})"),
        ("-(x{a!='1',<<.LabelMatchers>>})", 'timestamp(x{a!="1",<<.LabelMatchers>>})'),
        ('{__name__=~"a|b",<<.LabelMatchers>>}', 'timestamp({__name__=~"a|b",<<.LabelMatchers>>})'),
        ('{job="c",<<.LabelMatchers>>}', 'timestamp({job="c",<<.LabelMatchers>>})'),
        ('{"my.metric","my.label"="1",<<.LabelMatchers>>}',
         'timestamp({__name__="my.metric","my.label"="1",<<.LabelMatchers>>})'),
        ('{"<<.Series>>",a="1",<<.LabelMatchers>>}',
         'timestamp({__name__="<<.Series>>",a="1",<<.LabelMatchers>>})'),
        ("histogram_quantile(0.9, sum by (le, <<.GroupBy>>) (rate(x_bucket{<<.LabelMatchers>>}[2m])))",
         "timestamp(x_bucket{<<.LabelMatchers>>})"),
        # What one selector selects anyway need not be selected twice.
        ('x{code="500",<<.LabelMatchers>>} / x{<<.LabelMatchers>>}', "timestamp(x{<<.LabelMatchers>>})"),
        ("a{<<.LabelMatchers>>} / b{<<.LabelMatchers>>}", f"{part('a', 0)} or {part('b', 1)}"),
    ],
)  # fmt: skip
def test_the_times_query_selects_the_rules_own_series(query: str, times: str) -> None:
    assert times_query(query) == f"min by (<<.GroupBy>>) ({times})"
    assert times_query(query, Api.EXTERNAL) == times


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("vector(1)", "it selects no series"),
        ("<<.Series>>{<<.LabelMatchers>>} offset 5m", '{__name__="<<.Series>>"} is evaluated at another time'),
        ("rate(a{<<.LabelMatchers>>}[5m] offset 1m)", "another time by `offset` or `@`"),
        ("a{<<.LabelMatchers>>} @ 5", "another time by `offset` or `@`"),
        ("max_over_time(a{<<.LabelMatchers>>}[5m:] offset 3m)", "a subquery is evaluated at another time"),
        ('a{<<.LabelMatchers>>} * on (pod) group_left c{d="e"}', '{__name__="c", d="e"} does not contain'),
        ("topk(scalar(b), a{<<.LabelMatchers>>})", '{__name__="b"} does not contain'),
        ('{__name__=~"<<.Series>>_.*",<<.LabelMatchers>>}', "depends on the request"),
        ('a{b="<<.GroupBy>>",<<.LabelMatchers>>}', "depends on the request"),
        ('a{b="<<.LabelMatchers>>"}', "its template does not work"),
        ('a{b="1" or <<.LabelMatchers>>}', "combines matchers by `or`"),
        ("foo(", "it cannot be read"),
        (
            "rate(a{<<.LabelMatchers>>}[15m])",
            "samples that are up to 900 s old, but times are known only for samples of the last",
        ),
        ("max_over_time(rate(a{<<.LabelMatchers>>}[1m])[5m:])", "it uses samples that are up to 360 s old"),
        ("max_over_time(a{<<.LabelMatchers>>}[1m:])", "it uses samples that are up to 360 s old"),
        ("<<if true>>a{<<.LabelMatchers>>}<<end>>", "computes with values of the request"),
        ('a{b="\\x3c<.Series>>",<<.LabelMatchers>>}', "depends on the request"),
        ('a{b="\\x3c</* b */>>",<<.LabelMatchers>>}', "cannot be written on their own"),
        ('a{b="\\x3c<",<<.LabelMatchers>>}', "cannot be written in a template"),
    ],
)
def test_a_query_whose_samples_cannot_be_identified_has_no_times_query(query: str, reason: str) -> None:
    with pytest.raises(SampleAgeError) as refused:
        times_query(query)
    assert reason in str(refused.value)


def test_a_metric_without_an_age_limit_has_no_times_query() -> None:
    assert times_of(custom_metric("x{<<.LabelMatchers>>}")) is None


def test_the_times_query_has_the_same_plan_and_objects() -> None:
    times = times_of(guarded(custom_metric("sum by (<<.GroupBy>>) (rate(x{<<.LabelMatchers>>}[2m]))")))
    assert times is not None
    asked = Asked("shop", ("web-0", "web-1"), parse_selector("code=500"))
    texts = {kind: planned_query(times, asked, kind).text for kind in PlanKind}
    selected = 'timestamp(x{code="500",namespace'
    assert texts == {
        PlanKind.EXACT: f'min by (pod) ({selected}="shop",pod=~"web-0|web-1"}}))',
        PlanKind.NAMESPACE: f'min by (pod) ({selected}="shop",pod!=""}}))',
        PlanKind.WIDE: f'min by (namespace,pod) ({selected}!="",pod!=""}}))',
    }


def test_the_times_of_an_external_metric_are_those_of_each_series() -> None:
    times = times_of(guarded(external_metric("sum(x{<<.LabelMatchers>>})")))
    assert times is not None
    planned = planned_query(times, Asked("shop", (), parse_selector("queue=a")), PlanKind.WIDE)
    assert planned.text == 'timestamp(x{namespace!=""})'
    assert (planned.namespace_label, planned.fold) == ("namespace", None)


def test_a_rule_is_widened_only_as_far_as_both_of_its_queries_allow() -> None:
    widest = guarded(custom_metric("sum by (<<.GroupBy>>) (x{<<.LabelMatchers>>})"))
    assert plan_of(widest).kind is PlanKind.WIDE
    exact = guarded(custom_metric("topk(1, x{<<.LabelMatchers>>})"))
    assert plan_of(exact).kind is PlanKind.EXACT
    # The query for the times of two series writes this label, by which requesters may select as well.
    added = guarded(external_metric("x{<<.LabelMatchers>>} + y{<<.LabelMatchers>>}"))
    assert plan_of(added, frozenset({"queue"})).kind is PlanKind.WIDE
    selected = plan_of(added, frozenset({"tidewatch_part"}))
    assert selected.kind is PlanKind.EXACT
    assert selected.reason.endswith("in the query for the times of its samples")


@pytest.mark.parametrize("field", [pytest.param(PODS, id="pods"), pytest.param(EXTERNAL, id="external")])
def test_wide_times_queries_give_the_exact_times(prometheus: AskedPrometheus, field: Field) -> None:
    random, tally, made = Random(7), Tally(), 0
    for template, _ in zip(field.templates(random), range(100), strict=False):
        try:
            times = times_of(guarded(field.metric(template)))
        except SampleAgeError:
            continue
        assert times is not None
        made += 1
        try_template(prometheus, times, random.sample(field.requesters, 3), tally)
    assert not tally.differences, "\n".join(map(str, tally.differences))
    assert made > 20
    assert tally.with_values > made / 2
