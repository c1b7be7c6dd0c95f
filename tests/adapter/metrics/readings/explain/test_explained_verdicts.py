"""Whatever Prometheus answers, an explanation agrees with the API for the same answers."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
)
from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.apis.status import code_of
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.backends import only
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.explain.explainer import Explainer
from adapter.metrics.readings.explain.explanation import ExplanationVerdict, Question, explanation_of
from adapter.metrics.readings.prometheus_uptime import PrometheusUptime
from adapter.metrics.readings.reading_sources import ReadingSources
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.samples.series import as_series
from adapter.metrics.rulebook.model import Api
from tests.adapter.metrics.apis.fakes import NODES, PODS
from tests.support.readings import START, MadeUpObjects, make_harness, rulebook_of
from tests.support.scripted_answers import Came, Script, Scripted, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from adapter.metrics.readings.explain.explanation import Explanation
    from tests.support.readings import Harness

    Verdict: TypeAlias = tuple[ExplanationVerdict, list[tuple[str, float]]]

LABELS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}"
RULES = f"""
rules:
- seriesQuery: raw
  resources: {LABELS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: summed
  resources: {LABELS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 250m
  maxSampleAge: 1m
- seriesQuery: highest
  resources: {LABELS}
  metricsQuery: 'topk(3, sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}}))'
  onNoData: error
- seriesQuery: unrestricted
  resources: {LABELS}
  metricsQuery: 'sum by (namespace, pod) (<<.Series>>)'
  onNoData: 250m
externalRules:
- seriesQuery: rows
  resources: {LABELS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: total
  resources: {LABELS}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 7
  maxSampleAge: 1m
resourceRules:
  cpu:
    containerQuery: 'sum by (<<.GroupBy>>) (rate(cpu{{<<.LabelMatchers>>,container!=""}}[2m]))'
    nodeQuery: 'sum by (<<.GroupBy>>) (rate(node_cpu{{<<.LabelMatchers>>}}[2m]))'
    resources: {LABELS}
    containerLabel: container
  memory:
    containerQuery: 'sum by (<<.GroupBy>>) (memory{{<<.LabelMatchers>>,container!=""}})'
    nodeQuery: 'sum by (<<.GroupBy>>) (node_memory{{<<.LabelMatchers>>}})'
    resources: {LABELS}
    containerLabel: container
"""
RULEBOOK = rulebook_of(RULES)
OBJECTS = MadeUpObjects({"shop": ["web-0", "web-1"], "other": ["web-0"], None: ["node-0"]})
VALUES = st.sampled_from(["1", "5.5", "0", "-1", "NaN", "+Inf", "-Inf", "histogram"])
FAILURES: tuple[PrometheusError, ...] = (
    PrometheusUnreachableError("q", "connection refused"),
    PrometheusTimeoutError("q", "it did not answer in time"),
    AnswerTooLargeError("q", "more than 100,000 samples"),
    QueryRefusedError("q", "execution", "found duplicate series"),
    QueryRefusedError("q", "http_502", "no gateway"),
)
WARNINGS = ("a store is away", "PromQL warning: bucket label is missing", 'PromQL info: no counter: "raw"')


@pytest.fixture(autouse=True, scope="module")
def without_logs() -> Iterator[None]:
    """Keep hundreds of failures from being logged."""
    log = logging.getLogger("adapter")
    former = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(former)


def scripts(came: st.SearchStrategy[Came]) -> st.SearchStrategy[Script]:
    samples = st.lists(came, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Script, samples),
        st.builds(Script, samples, st.sampled_from(WARNINGS).map(lambda one: (one,))),
        st.builds(Script, failure=st.sampled_from(FAILURES)),
    )


OF_PODS = labels_of(
    pod=st.sampled_from(["web-0", "web-0", "web-1", "gone-0", ""]),
    namespace=st.sampled_from(["", "shop", "shop", "other"]),
    path=st.sampled_from(["", "a"]),
)
OF_ROWS = labels_of(queue=st.sampled_from(["", "a", "b"]), namespace=st.sampled_from(["", "shop", "other"]))
LATE = st.sampled_from([0.0, 0.0, 0.0, 30.0, 120.0])
MOMENTS = st.sampled_from([str(START - age) for age in (1, 30, 59, 62, 300)])
STARTS = st.sampled_from([Started(0.0, 0.0), Started(START - 40, START - 40)])

OF_ANOTHER_POD = Script((Came((("pod", "web-1"), ("namespace", "shop")), "1"),))


def summed(script: Script) -> Script:
    """Return what a query for one sum without labels can answer."""
    return replace(script, samples=tuple(replace(came, labels=()) for came in script.samples[:1]))


def of_pod_asked(query: str, script: Script) -> Script:
    """Return what Prometheus can answer to a query: one that is restricted to a pod finds no sample of another.

    The API may query the whole namespace where the explanation queries the pod alone. A sample of another pod means
    that this one has no data in the first case, and that the rule ignores the restriction in the second.
    A stale sample stays: it makes the whole answer of a namespace doubtful.
    """
    restricted = re.search(r'pod="([^"]+)"', query)
    if restricted is None:
        return script
    possible = {None, restricted[1]}
    return replace(
        script,
        samples=tuple(
            came for came in script.samples if came.seconds_late > 60 or dict(came.labels).get("pod") in possible
        ),
    )


def times(labels: st.SearchStrategy[tuple[tuple[str, str], ...]]) -> st.SearchStrategy[Script]:
    return scripts(st.builds(Came, labels, MOMENTS))


def answer_of_api(harness: Harness, ask: Callable[[], Iterable[tuple[str, float]]]) -> Verdict:
    """Return the API's answer: a value, none (an empty list, or 404), or an error."""
    harness.readings.run_due()
    try:
        values = ask()
    except ReadingError as error:
        return (ExplanationVerdict.NO_VALUE if code_of(error) == 404 else ExplanationVerdict.ERROR), []
    return (ExplanationVerdict.VALUE if values else ExplanationVerdict.NO_VALUE), sorted(values)


def answer_of(found: Explanation) -> Verdict:
    assert explanation_of(found.as_json()) == found
    return found.verdict, sorted((value.object, value.value) for value in found.values)


def explained(prometheus: Scripted, question: Question, started: Started, harness: Harness) -> tuple[Verdict, Verdict]:
    """Return the answers of a running process and of a command by itself."""
    clock = harness.clock.clock
    uptime = PrometheusUptime(clock, lambda _seconds: started)
    uptime.wanted = True
    explainer = Explainer(ReadingSources(only(prometheus, uptime), OBJECTS, ReadingSettings(), clock, UNPACED))
    return answer_of(harness.readings.explain(question)), answer_of(explainer.explain(question, RULEBOOK))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["raw", "summed", "highest", "unrestricted"]),
    st.sampled_from([None, "web-0", "gone-0"]),
    scripts(st.builds(Came, OF_PODS, VALUES, LATE)),
    times(OF_PODS),
    STARTS,
)
@example("summed", "web-0", OF_ANOTHER_POD, Script(), Started(0.0, 0.0))
@example("unrestricted", "web-0", OF_ANOTHER_POD, Script(), Started(0.0, 0.0))
def test_explanations_of_pods_agree_with_the_api(
    name: str, pod: str | None, values: Script, moments: Script, started: Started
) -> None:
    prometheus = Scripted(lambda query: of_pod_asked(query, moments if query.startswith("min") else values))
    harness = make_harness(prometheus, objects=OBJECTS, rules=RULEBOOK, started=lambda _seconds: started)
    which = BySelector(EVERYTHING) if pod is None else ByName(pod)
    api = answer_of_api(harness, lambda: harness.readings.objects(harness.pods(name), "shop", which, EVERYTHING).values)

    by_process, by_itself = explained(prometheus, Question(name, Api.CUSTOM, PODS, "shop", pod), started, harness)
    assert (by_process, by_itself) == (api, api)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["rows", "total"]),
    scripts(st.builds(Came, OF_ROWS, VALUES, LATE)),
    times(OF_ROWS),
    STARTS,
)
def test_explanations_of_external_rows_agree_with_the_api(
    name: str, values: Script, moments: Script, started: Started
) -> None:
    values = summed(values) if name == "total" else values
    prometheus = Scripted(lambda query: summed(moments) if query.startswith("min") else values)
    harness = make_harness(prometheus, objects=OBJECTS, rules=RULEBOOK, started=lambda _seconds: started)

    def rows() -> list[tuple[str, float]]:
        found = harness.readings.external(harness.external(name), "shop", EVERYTHING).rows
        return [(as_series(row.labels), row.value) for row in found]

    api = answer_of_api(harness, rows)
    by_process, by_itself = explained(prometheus, Question(name, Api.EXTERNAL, None, "shop"), started, harness)
    assert (by_process, by_itself) == (api, api)


OF_CONTAINERS = labels_of(
    pod=st.sampled_from(["web-0", "web-0", "web-1", "gone-0"]),
    namespace=st.sampled_from(["shop", "shop", "other"]),
    container=st.sampled_from(["app", "app", "proxy", ""]),
)
OF_NODES = labels_of(node=st.sampled_from(["node-0", "node-0", "10.0.0.1", ""]))
USES = st.tuples(
    scripts(st.builds(Came, OF_CONTAINERS | OF_NODES, VALUES, LATE)),
    scripts(st.builds(Came, OF_CONTAINERS | OF_NODES, VALUES, LATE)),
)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["cpu", "memory"]),
    st.sampled_from([(PODS, None), (PODS, "web-0"), (PODS, "gone-0"), (NODES, None), (NODES, "node-0")]),
    USES,
)
def test_explanations_of_usage_agree_with_the_api(
    resource: str, of: tuple[object, str | None], uses: tuple[Script, Script]
) -> None:
    kind, name = (PODS if of[0] == PODS else NODES), of[1]
    namespace = "shop" if kind == PODS else None

    def script_of(query: str) -> Script:
        script = uses["memory" in query]
        # A query that is restricted to a namespace finds no sample of another.
        kept = (came for came in script.samples if ("namespace", "other") not in came.labels)
        return Script(tuple(kept), script.warnings, script.failure) if 'namespace="shop"' in query else script

    prometheus = Scripted(script_of)
    harness = make_harness(prometheus, objects=OBJECTS, rules=RULEBOOK)
    which = BySelector(EVERYTHING) if name is None else ByName(name)

    def used() -> list[tuple[str, float]]:
        answer = harness.readings.usage(kind, namespace, which)
        # The API answers with what it has of the other resource, and warns of this one.
        missing = f"{kind.qualified}/{resource} is missing: "
        if any(missing in warning for warning in answer.warnings):
            raise ReadingError(answer.warnings[0])
        return [
            (f"{item.name}/{container}" if container else item.name, own[resource])
            for item in answer.items
            for container, own in item.used.items()
            if resource in own
        ]

    api = answer_of_api(harness, used)
    question = Question(resource, Api.RESOURCE, kind, namespace, name)
    by_process, by_itself = explained(prometheus, question, Started(0.0, 0.0), harness)
    assert (by_process, by_itself) == (api, api)
