"""Which metric an explanation is about, and what it says where it does not see everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.objects.resources import BUILT_IN, find_resource
from adapter.readings.explaining import Explainer
from adapter.readings.explanation import Question, Verdict
from adapter.readings.settings import Clock, ReadingSettings
from adapter.rulebook.model import Api
from adapter.sources.pace import UNPACED
from adapter.sources.prometheus.errors import PrometheusTimeoutError
from tests.support.readings import FakeClock, ScriptedPrometheus, reply, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.objects.resources import Resource
    from adapter.readings.explanation import Explanation
    from adapter.sources.prometheus.decoding import SeriesAnswer

RULES = """
rules:
- seriesQuery: 'depth{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}, service: {resource: service}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: '{__name__=~"^any_.*"}'
  resources: {overrides: {namespace: {resource: namespace}, service: {resource: service}}}
  name: {as: depth}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
externalRules:
- seriesQuery: 'depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum (<<.Series>>{<<.LabelMatchers>>})'
"""
DEPTH = {"__name__": "depth", "namespace": "shop", "pod": "web-0"}
ANY = {"__name__": "any_depth", "namespace": "shop", "service": "web"}
BESIDE = "{0} makes the custom metric {1}, which is another: ask for {1} to have that explained"


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


def explained(
    question: Question, series: Collection[Mapping[str, str]] = (), warnings: tuple[str, ...] = ()
) -> Explanation:
    prometheus = ScriptedPrometheus(
        answer=lambda _query: reply(({"pod": "web-0"}, "5")),
        series_answer=lambda selector: [one for one in series if one["__name__"][:3] in selector[:16]],
        series_warnings=warnings,
    )
    explainer = Explainer(
        prometheus=prometheus,
        objects=None,
        resolve=resolve,
        settings=ReadingSettings(),
        clock=Clock(),
        pace=UNPACED,
    )
    return explainer.explain(question, rulebook_of(RULES))


@pytest.mark.parametrize("series", [(), (DEPTH,)], ids=["no series yet", "with series"])
@pytest.mark.parametrize(
    ("api", "rule", "query"),
    [
        (Api.CUSTOM, "rules[0]", 'sum by (pod) (depth{namespace="shop",pod!=""})'),
        (Api.EXTERNAL, "externalRules[0]", 'sum (depth{namespace="shop"})'),
    ],
)
def test_a_name_in_two_apis_is_explained_in_the_one_that_is_named(
    api: Api, rule: str, query: str, series: Collection[Mapping[str, str]]
) -> None:
    found = explained(Question("depth", api=api, namespace="shop"), series)

    assert (found.verdict, found.rule, found.query) == (Verdict.VALUE, rule, query)


def test_who_names_no_kind_means_pods_and_is_told_of_the_others() -> None:
    found = explained(Question("depth", api=Api.CUSTOM, namespace="shop"), [DEPTH, ANY])

    assert (found.verdict, found.rule) == (Verdict.VALUE, "rules[0]")
    assert [step.detail for step in found.steps if step.step == "rule"] == [
        "rules[0] (rules.yaml:3) makes pods/depth of the series depth",
        BESIDE.format("rules[1] (rules.yaml:6)", "services/depth"),
    ]


def test_a_metric_of_the_other_api_is_no_rival() -> None:
    found = explained(Question("depth", namespace="shop"), [DEPTH])

    assert found.rule == "externalRules[0]"
    assert [step.detail for step in found.steps if step.step == "rule"][1:] == [
        BESIDE.format("rules[0] (rules.yaml:3)", "pods/depth")
    ]


def test_what_is_missing_from_a_cut_answer_is_not_called_absent() -> None:
    whole = explained(Question("unheard_of"), [DEPTH])
    cut = explained(Question("unheard_of"), [DEPTH], warnings=("results truncated due to limit",))

    assert (whole.verdict, cut.verdict) == (Verdict.NO_VALUE, Verdict.ERROR)
    assert cut.cause == "it cannot be told whether a rule makes unheard_of"
    assert any("only a part of its series came" in step.detail for step in cut.steps)


def test_look_ups_that_take_long_do_not_add_up_beyond_their_common_deadline() -> None:
    time, waited = FakeClock(), list[float]()

    class Slow(ScriptedPrometheus):
        def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
            assert start > 0
            waited.append(timeout_seconds)
            time.forward(timeout_seconds)
            raise PrometheusTimeoutError(selector, "it did not answer in time")

    query = "<<.Series>>{<<.LabelMatchers>>}"
    rules = "".join(
        f"- {{seriesQuery: 'x{number}', resources: {{namespaced: false}}, metricsQuery: '{query}'}}\n"
        for number in range(20)
    )
    explainer = Explainer(
        prometheus=Slow(), objects=None, resolve=resolve, settings=ReadingSettings(), clock=time.clock, pace=UNPACED
    )
    found = explainer.explain(Question("x", namespace="shop"), rulebook_of(f"externalRules:\n{rules}"))

    assert found.verdict is Verdict.ERROR
    assert sum(waited) == 30
    assert "not looked up any more" in found.steps[-2].detail
