"""An explanation names the policy that stands in for a missing value, or that removes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.foundation.time.pace import UNPACED
from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.backends import only
from adapter.metrics.readings.explain.explainer import Explainer
from adapter.metrics.readings.explain.explanation import ExplanationVerdict, Question
from adapter.metrics.readings.prometheus_uptime import PrometheusUptime, always_there
from adapter.metrics.readings.reading_sources import ReadingSources
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.samples.no_data_and_sample_age import STANDS_IN
from adapter.metrics.rulebook.model import Api
from tests.support.readings import START, FakeClock, MadeUpObjects, Reply, ScriptedPrometheus, reply, rulebook_of

if TYPE_CHECKING:
    from adapter.metrics.readings.explain.explanation import Explanation

SECOND = START - START % 1
OBJECTS = MadeUpObjects({"shop": ["web-0", "web-1"]})
RULES = """
rules:
- seriesQuery: depth
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
  onNoData: 250m
  maxSampleAge: 2m
externalRules:
- seriesQuery: queue
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'
  onNoData: 7
  maxSampleAge: 2m
"""
PODS = OBJECTS.resource("", "pods")


def explained(
    question: Question, answer: Reply, times: Reply | None = None, steady: float | None = 86400.0
) -> Explanation:
    prometheus = ScriptedPrometheus(answer=lambda query: (times or reply()) if "timestamp(" in query else answer)
    clock = FakeClock().clock
    started = Started(0.0, START - (steady or 0.0))
    uptime = PrometheusUptime(clock, lambda _seconds: started)
    uptime.wanted = True
    explainer = Explainer(
        ReadingSources(
            only(prometheus, always_there(clock) if steady is None else uptime),
            OBJECTS,
            ReadingSettings(),
            clock,
            UNPACED,
        )
    )
    return explainer.explain(question, rulebook_of(RULES))


def depth(name: str | None = None) -> Question:
    return Question("depth", Api.CUSTOM, PODS, "shop", name)


QUEUE = Question("queue", Api.EXTERNAL, None, "shop")


def sample(name: str, value: float | str) -> tuple[dict[str, str], str]:
    return {"pod": name}, str(value)


def values(found: Explanation) -> dict[str, float]:
    return {value.object: value.value for value in found.values}


def details_of(found: Explanation, step: str) -> list[str]:
    return [one.detail for one in found.steps if one.step == step]


@pytest.mark.parametrize("answer", [reply(), reply(sample("web-0", "NaN")), reply(sample("gone-0", 5))])
def test_a_stand_in_for_missing_data_is_explained(answer: Reply) -> None:
    found = explained(depth(), answer)

    assert found.verdict is ExplanationVerdict.VALUE
    assert values(found) == {"web-0": 0.25, "web-1": 0.25}
    assert details_of(found, "onNoData") == [STANDS_IN]


def test_a_stand_in_for_an_external_metric_is_explained() -> None:
    found = explained(QUEUE, reply())

    assert (found.verdict, values(found)) == (ExplanationVerdict.VALUE, {"{}": 7.0})


def test_an_object_that_does_not_exist_has_no_stand_in() -> None:
    found = explained(depth("typo-0"), reply())

    assert (found.verdict, values(found), found.cause) == (
        ExplanationVerdict.NO_VALUE,
        {},
        "there is no pods/typo-0 in shop",
    )
    assert values(explained(depth("web-0"), reply())) == {"web-0": 0.25}


def test_there_is_no_stand_in_before_prometheus_has_been_up_long_enough() -> None:
    for question in (depth(), QUEUE):
        found = explained(question, reply(), steady=40.0)
        assert (found.verdict, values(found)) == (ExplanationVerdict.ERROR, {})
        assert (
            "back, for only 40 s: whether there is none is not known before 300 s" in details_of(found, "onNoData")[0]
        )


def test_an_unknown_start_of_prometheus_is_noted() -> None:
    found = explained(QUEUE, reply(), steady=None)

    assert values(found) == {"{}": 7.0}
    assert details_of(found, "onNoData") == [STANDS_IN, "this holds once Prometheus has been up for 300 s"]


@pytest.mark.parametrize("question", [depth(), QUEUE], ids=["pods", "external"])
def test_there_is_no_stand_in_for_young_samples_without_a_value(question: Question) -> None:
    found = explained(question, reply(), reply(sample("web-0", SECOND - 1)))

    assert (found.verdict, values(found)) == (ExplanationVerdict.ERROR, {})
    assert "there are samples, but the rule's query makes no value of them" in details_of(found, "onNoData")[0]


def test_a_nan_of_young_samples_is_no_data() -> None:
    found = explained(depth("web-0"), reply(sample("web-0", "NaN")), reply(sample("web-0", SECOND - 1)))

    assert values(found) == {"web-0": 0.25}


def test_there_is_no_stand_in_for_samples_that_are_too_old() -> None:
    found = explained(depth(), reply(), reply(sample("web-1", SECOND - 200)))

    assert (found.verdict, values(found)) == (ExplanationVerdict.ERROR, {})


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (reply(sample("web-0", "+Inf")), ExplanationVerdict.NO_VALUE),
        (reply(({"service": "a"}, "1")), ExplanationVerdict.NO_VALUE),
        (reply(({"pod": "web-0", "a": "1"}, "NaN"), ({"pod": "web-0", "a": "2"}, "NaN")), ExplanationVerdict.ERROR),
    ],
    ids=["infinite", "without a name", "twice"],
)
def test_there_is_no_stand_in_for_invalid_answers(answer: Reply, verdict: ExplanationVerdict) -> None:
    found = explained(depth(), answer)

    assert (found.verdict, values(found), details_of(found, "onNoData")) == (verdict, {}, [])


def test_there_is_no_stand_in_if_a_query_for_one_object_returns_another() -> None:
    found = explained(depth("web-0"), reply(sample("web-1", 5)))

    assert (found.verdict, values(found), details_of(found, "onNoData")) == (ExplanationVerdict.NO_VALUE, {}, [])


def test_values_of_young_samples_are_kept() -> None:
    times = reply(sample("web-0", SECOND - 5), sample("web-1", SECOND - 119))
    found = explained(depth(), reply(sample("web-0", 1), sample("web-1", 2)), times)

    assert values(found) == {"web-0": 1.0, "web-1": 2.0}
    assert details_of(found, "maxSampleAge") == []


def test_values_of_old_samples_are_removed_and_named() -> None:
    times = reply(sample("web-0", SECOND - 130))
    found = explained(depth(), reply(sample("web-0", 1), sample("web-1", 2)), times)

    assert found.verdict is ExplanationVerdict.ERROR
    assert details_of(found, "maxSampleAge") == [
        "the samples are older than the rule allows (120 s): web-0 (130 s), web-1 (no current sample)",
        found.cause,
    ]
    some = explained(depth(), reply(sample("web-0", 1), sample("web-1", 2)), reply(sample("web-1", SECOND)))
    assert (some.verdict, values(some)) == (ExplanationVerdict.VALUE, {"web-1": 2.0})
    assert "web-0 (no current sample)" in details_of(some, "maxSampleAge")[0]


def test_an_external_metric_with_old_samples_loses_all_rows() -> None:
    found = explained(QUEUE, reply(({}, "5")), reply(({}, str(SECOND - 121))))

    assert (found.verdict, values(found)) == (ExplanationVerdict.ERROR, {})
    assert f"its series' last samples are from {rfc3339(SECOND - 121)}" in found.cause
