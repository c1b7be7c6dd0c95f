"""The metric that an explanation is about, and the explanation if it does not see everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.backends import only
from adapter.metrics.readings.explain.explainer import Explainer
from adapter.metrics.readings.explain.explanation import ExplanationVerdict, Question
from adapter.metrics.readings.explain.fresh_queries import SeenObjects
from adapter.metrics.readings.prometheus_uptime import always_there
from adapter.metrics.readings.reading_sources import ReadingSources
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from tests.adapter.metrics.readings.explain.explaining import RULES, resolve
from tests.support.readings import FakeClock, MadeUpObjects, ScriptedPrometheus, reply, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.sources.prometheus.answers.decoding import SeriesAnswer
    from adapter.metrics.readings.explain.explanation import Explanation
    from tests.support.readings import Reply


DEPTH = {"__name__": "depth", "namespace": "shop", "pod": "web-0"}
ANY = {"__name__": "any_depth", "namespace": "shop", "service": "web"}
BESIDE = "{0} provides the custom metric {1}, which is another: ask for {1} to explain that one"


def explained(
    question: Question,
    series: Collection[Mapping[str, str]] = (),
    warnings: tuple[str, ...] = (),
    matchers: Matchers | None = None,
) -> Explanation:
    prometheus = ScriptedPrometheus(
        answer=lambda _query: reply(({"pod": "web-0"}, "5")),
        series_answer=lambda selector: [one for one in series if one["__name__"][:3] in selector[:16]],
        series_warnings=warnings,
    )
    explainer = Explainer(
        ReadingSources(
            only(prometheus, always_there(Clock())),
            SeenObjects(resolve),
            ReadingSettings(matchers=matchers),
            Clock(),
            UNPACED,
        )
    )
    return explainer.explain(question, rulebook_of(RULES))


def test_a_query_is_shown_with_the_matchers_added_to_every_query() -> None:
    found = explained(Question("depth", api=Api.EXTERNAL, namespace="shop"), matchers=Matchers.read('cluster="eu-1"'))

    assert found.query == 'sum (depth{cluster="eu-1",namespace="shop"})'


@pytest.mark.parametrize("series", [(), (DEPTH,)], ids=["no series yet", "with series"])
@pytest.mark.parametrize(
    ("api", "rule", "query"),
    [
        (Api.CUSTOM, "rules[0]", 'sum by (pod) (depth{namespace="shop",pod!=""})'),
        (Api.EXTERNAL, "externalRules[0]", 'sum (depth{namespace="shop"})'),
    ],
)
def test_a_name_in_two_apis_is_explained_in_the_named_api(
    api: Api, rule: str, query: str, series: Collection[Mapping[str, str]]
) -> None:
    found = explained(Question("depth", api=api, namespace="shop"), series)

    assert (found.verdict, found.rule, found.query) == (ExplanationVerdict.VALUE, rule, query)


def test_a_question_without_a_kind_is_about_pods_and_mentions_the_other_kinds() -> None:
    found = explained(Question("depth", api=Api.CUSTOM, namespace="shop"), [DEPTH, ANY])

    assert (found.verdict, found.rule) == (ExplanationVerdict.VALUE, "rules[0]")
    assert [step.detail for step in found.steps if step.step == "rule"] == [
        "rules[0] (rules.yaml:3) provides pods/depth from the series depth",
        BESIDE.format("rules[1] (rules.yaml:6)", "services/depth"),
    ]


def test_a_metric_of_the_other_api_is_mentioned_and_not_explained() -> None:
    found = explained(Question("depth", namespace="shop"), [DEPTH])

    assert found.rule == "externalRules[0]"
    assert [step.detail for step in found.steps if step.step == "rule"][1:] == [
        BESIDE.format("rules[0] (rules.yaml:3)", "pods/depth")
    ]


@pytest.mark.parametrize(
    ("question", "cause", "fix"),
    [
        (
            Question("queue", resource=resolve("", "pods"), namespace="shop"),
            "no rule provides pods/queue: externalRules[0] (rules.yaml:7) provides the external metric queue",
            "ask with --api=external to explain that one",
        ),
        (
            Question("depth", api=Api.EXTERNAL, namespace="shop"),
            "no rule provides depth: rules[0] (rules.yaml:3) provides the custom metric pods/depth",
            "ask for pods/depth to explain that one",
        ),
    ],
    ids=["external", "custom"],
)
def test_a_metric_that_only_the_other_api_has_is_named(question: Question, cause: str, fix: str) -> None:
    rules = """
rules:
- seriesQuery: 'depth{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
externalRules:
- seriesQuery: 'queue'
  resources: {namespaced: false}
  metricsQuery: 'sum (<<.Series>>{<<.LabelMatchers>>})'
"""
    found = explained_by(rules, question)

    assert (found.verdict, found.fix) == (ExplanationVerdict.NO_VALUE, fix)
    assert found.cause == f"{cause}, which is another"


def test_a_metric_missing_from_a_cut_answer_is_not_reported_as_absent() -> None:
    whole = explained(Question("unheard_of"), [DEPTH])
    cut = explained(Question("unheard_of"), [DEPTH], warnings=("results truncated due to limit",))

    assert (whole.verdict, cut.verdict) == (ExplanationVerdict.NO_VALUE, ExplanationVerdict.ERROR)
    assert cut.cause == "it is not known whether a rule provides unheard_of"
    assert any("Prometheus returned only a part of its series" in step.detail for step in cut.steps)


def test_slow_look_ups_end_at_their_common_deadline() -> None:
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
        ReadingSources(
            only(Slow(), always_there(Clock())), SeenObjects(resolve), ReadingSettings(), time.clock, UNPACED
        )
    )
    found = explainer.explain(Question("x", namespace="shop"), rulebook_of(f"externalRules:\n{rules}"))

    assert found.verdict is ExplanationVerdict.ERROR
    assert sum(waited) == 30
    assert "not looked up" in found.steps[-2].detail


USAGE = """
resourceRules:
  cpu:
    containerQuery: 'sum by (<<.GroupBy>>) (rate(cpu_seconds{<<.LabelMatchers>>,container!=""}[2m]))'
    nodeQuery: 'sum by (<<.GroupBy>>) (rate(node_cpu_seconds{<<.LabelMatchers>>}[2m]))'
    resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}
    containerLabel: container
"""


def test_usage_of_pods_is_explained_by_the_resource_rule_without_a_look_up() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: reply(({"pod": "web-0", "container": "app"}, "0.25")))
    found = usage_explained(prometheus)

    assert (found.verdict, found.rule) == (ExplanationVerdict.VALUE, "resourceRules.cpu")
    assert [(value.object, value.value) for value in found.values] == [("web-0/app", 0.25)]
    assert "web-1 is left out: Prometheus has no sample for it" in [step.detail for step in found.steps]
    assert prometheus.looked_up == []
    assert len(prometheus.asked) == 1, "samples of no certain series have no age that could be asked for"


def test_a_pod_not_listed_because_of_its_memory_has_no_value_of_cpu() -> None:
    memory = USAGE.replace("cpu:", "memory:").replace("\nresourceRules:", "").replace("cpu_seconds", "memory_bytes")
    container = reply(({"pod": "web-0", "container": "app"}, "0.25"))
    prometheus = ScriptedPrometheus(answer=lambda query: reply() if "memory" in query else container)
    found = usage_explained(prometheus, USAGE + memory)

    assert (found.verdict, found.values) == (ExplanationVerdict.NO_VALUE, ())
    assert "cpu_seconds" in (found.query or "")
    assert "it has no value of memory: Prometheus has no sample for it" in found.cause
    (listed,) = [step.detail for step in found.steps if step.step == "listed"]
    assert listed.startswith("the API only lists objects with values of CPU and memory")


def usage_explained(prometheus: ScriptedPrometheus, rules: str = USAGE) -> Explanation:
    explainer = Explainer(
        ReadingSources(
            only(prometheus, always_there(Clock())),
            MadeUpObjects({"shop": ["web-0", "web-1"]}),
            ReadingSettings(),
            Clock(),
            UNPACED,
        )
    )
    question = Question("cpu", api=Api.RESOURCE, resource=resolve("", "pods"), namespace="shop")
    return explainer.explain(question, rulebook_of(rules))


def test_a_resource_without_a_rule_is_reported_with_those_that_have_one() -> None:
    question = Question("memory", api=Api.RESOURCE, resource=resolve("", "pods"), namespace="shop")
    explainer = Explainer(
        ReadingSources(
            only(ScriptedPrometheus(), always_there(Clock())), SeenObjects(resolve), ReadingSettings(), Clock(), UNPACED
        )
    )
    found = explainer.explain(question, rulebook_of(USAGE))

    assert found.verdict is ExplanationVerdict.NO_VALUE
    assert found.cause == "no rule under `resourceRules` provides pods/memory; they provide: pods/cpu, nodes/cpu"


def test_a_namespace_without_objects_has_no_value_and_that_cause() -> None:
    explainer = Explainer(
        ReadingSources(
            only(ScriptedPrometheus(series_answer=lambda _selector: [ONLY_EXACT]), always_there(Clock())),
            MadeUpObjects({}),
            ReadingSettings(),
            Clock(),
            UNPACED,
        )
    )
    question = Question("only_exact", resource=resolve("", "pods"), namespace="shop")
    found = explainer.explain(question, rulebook_of())

    assert (found.verdict, found.cause) == (ExplanationVerdict.NO_VALUE, "there are no pods in shop")


ONLY_EXACT = {"__name__": "only_exact_total", "namespace": "shop", "pod": "web-0"}


def explained_by(
    rules: str,
    question: Question,
    *,
    answer: Reply | PrometheusTimeoutError | None = None,
    objects: MadeUpObjects | None = None,
    settings: ReadingSettings | None = None,
) -> Explanation:
    """Return the explanation of a command by itself for rules that may be refused."""
    explainer = Explainer(
        ReadingSources(
            only(ScriptedPrometheus(answer=lambda _query: answer or reply()), always_there(Clock())),
            objects or SeenObjects(resolve),
            settings or ReadingSettings(),
            Clock(),
            UNPACED,
        )
    )
    return explainer.explain(question, parse_rulebook([load_documents(rules, "rules.yaml")], resolve))


def test_a_timeout_suggests_checking_prometheus_before_the_query() -> None:
    late = PrometheusTimeoutError("q", "it did not answer in time")
    found = explained_by(RULES, Question("depth", resource=resolve("", "pods"), namespace="shop"), answer=late)

    assert found.verdict is ExplanationVerdict.ERROR
    assert found.fix is not None
    assert found.fix.startswith("check whether Prometheus answers other queries; if it does, make this one cheaper")


@pytest.mark.parametrize("resource", [None, resolve("", "pods")])
def test_cpu_without_an_api_is_usage_unless_another_rule_provides_it(resource: Resource | None) -> None:
    container = reply(({"pod": "web-0", "container": "app"}, "0.25"))
    question = Question("cpu", resource=resource, namespace="shop")
    found = explained_by(USAGE, question, answer=container)
    other = explained_by(RULES.replace("depth", "cpu") + USAGE, question, answer=container)

    assert (found.verdict, found.rule) == (ExplanationVerdict.VALUE, "resourceRules.cpu")
    assert other.rule in {"rules[0]", "externalRules[0]"}


def test_a_missing_object_is_the_cause_and_targets_are_not_suggested() -> None:
    question = Question("depth", api=Api.CUSTOM, resource=resolve("", "pods"), namespace="shop", object="nosuch")
    found = explained_by(RULES, question, objects=MadeUpObjects({"shop": ["web-0"]}))

    assert (found.verdict, found.cause) == (ExplanationVerdict.NO_VALUE, "there is no pods/nosuch in shop")
    assert found.fix is not None
    assert "targets" not in found.fix


def test_a_deleted_object_with_samples_has_a_value_as_in_the_api() -> None:
    question = Question("depth", api=Api.CUSTOM, resource=resolve("", "pods"), namespace="shop", object="gone-0")
    found = explained_by(
        RULES, question, answer=reply(({"pod": "gone-0"}, "5")), objects=MadeUpObjects({"shop": ["web-0"]})
    )

    assert found.verdict is ExplanationVerdict.VALUE
    assert ("objects", "there is no pods/gone-0 in shop") in [(step.step, step.detail) for step in found.steps]


NAMESPACE_LOAD = """
rules:
- seriesQuery: 'load{namespace!=""}'
  name: {matches: "^load$", as: load}
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""


@pytest.mark.parametrize("objects", [None, MadeUpObjects({})], ids=["no cluster", "pods alone are known"])
@pytest.mark.parametrize("resource", [None, resolve("", "namespaces")], ids=["no kind named", "kind named"])
def test_a_metric_of_namespaces_is_explained_for_the_named_namespace(
    resource: Resource | None, objects: MadeUpObjects | None
) -> None:
    question = Question("load", resource=resource, namespace="shop")
    found = explained_by(NAMESPACE_LOAD, question, answer=reply(({"namespace": "shop"}, "8.25")), objects=objects)

    assert found.query == 'sum by (namespace) (load{namespace="shop"})'
    assert (found.metric, found.object) == ("namespaces/load", "namespaces/shop")
    assert [(value.object, value.value) for value in found.values] == [("shop", 8.25)]


TYPO = """
rules:
- seriesQuery: 'requests_total{pod!=""}'
  name: {matches: "^(.*)_total$", as: "${1}_per_second"}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQery: 'sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))'
resourceRules:
  cpu: {containerQuery: 'sum('}
"""


@pytest.mark.parametrize(
    ("question", "cause"),
    [
        (
            Question("requests_per_second", namespace="shop"),
            "rules[0] (rules.yaml:3) would provide requests_per_second, but is refused: ",
        ),
        (
            Question("cpu", api=Api.RESOURCE, resource=resolve("", "pods"), namespace="shop"),
            "resourceRules.cpu (rules.yaml:8) would provide pods/cpu, but is refused: ",
        ),
    ],
)
def test_a_refused_rule_is_the_cause_with_its_error(question: Question, cause: str) -> None:
    found = explained_by(TYPO, question)

    assert found.verdict is ExplanationVerdict.NO_VALUE
    assert found.cause.startswith(cause)
    assert len(found.cause) > len(cause)
    assert found.fix


@pytest.mark.parametrize(
    ("question", "cause", "fix"),
    [
        (Question("dept"), "no rule provides dept from", "did you mean depth?"),
        (Question("load", api=Api.EXTERNAL), "rules[0] (rules.yaml:3) provides", "ask for namespaces/load to explain"),
        (Question("depth", namespace="shop"), "Prometheus has no sample", "targets are up and still export the metric"),
    ],
)
def test_a_metric_without_series_is_known_only_if_it_is_served(question: Question, cause: str, fix: str) -> None:
    rules = NAMESPACE_LOAD + RULES[RULES.index("externalRules") :]
    served = explained_by(rules, question)
    found = explained_by(rules, question, settings=ReadingSettings(serves_unseen_series=False))

    assert cause in served.cause
    assert fix in (served.fix or "")
    assert found.cause == f"no rule provides {question.name} from the series that Prometheus has"
    assert found.fix == "check whether Prometheus has such a series at all"


def test_rule_files_without_rules_are_reported() -> None:
    found = explained_by("rules: []\n", Question("depth", namespace="shop"))

    assert found.cause == "no rule provides depth: the rule files hold no rule for custom or external metrics"


def test_an_explanation_waits_for_the_first_list_of_the_metrics_objects() -> None:
    objects = MadeUpObjects({"shop": ["web-0"]}, not_synced=True, syncs_when_awaited=True)
    question = Question("depth", api=Api.CUSTOM, namespace="shop")
    found = explained_by(RULES, question, answer=reply(({"pod": "web-0"}, "5")), objects=objects)

    assert found.verdict is ExplanationVerdict.VALUE, found.cause
