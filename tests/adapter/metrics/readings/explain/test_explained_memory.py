"""An explanation shows values in memory as they are served, and ends within its deadline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import (
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
)
from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.backends import only
from adapter.metrics.readings.explain.explainer import Explainer
from adapter.metrics.readings.explain.explanation import ExplanationVerdict, Question
from adapter.metrics.readings.explain.explanation_progress import HASTY
from adapter.metrics.readings.explain.fresh_queries import SeenObjects
from adapter.metrics.readings.prometheus_uptime import always_there
from adapter.metrics.readings.reading_sources import ReadingSources
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.model import Api
from tests.adapter.metrics.readings.explain.explaining import RULES, resolve
from tests.support.readings import (
    PODS_RULES,
    FakeClock,
    MadeUpObjects,
    ScriptedPrometheus,
    make_harness,
    reply,
    rulebook_of,
)

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer
    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from tests.support.readings import Harness


RPS = Question("http_rps", api=Api.CUSTOM, resource=resolve("", "pods"), namespace="shop")


def memory_of(harness: Harness, question: Question = RPS) -> dict[str, list[str]]:
    """Return the details that a running process adds to an explanation, by step of the explanation."""
    details: dict[str, list[str]] = {}
    for step in harness.readings.explain(question).steps:
        details.setdefault(step.step, []).append(step.detail)
    return details


class TestMemory:
    def test_a_metric_without_requests_is_not_in_memory_and_needs_no_look_up(self) -> None:
        prometheus = ScriptedPrometheus()
        harness = make_harness(prometheus)
        harness.readings.run_due()
        before = len(prometheus.looked_up)
        details = memory_of(harness)

        assert details["memory"] == ["this process has no recent request for it, so nothing is in memory"]
        assert details["series"] == ["its series were looked up at 2027-01-15T08:00:00Z, 0 s ago"]
        assert len(prometheus.looked_up) == before

    def test_the_answer_in_memory_is_shown_with_plan_and_age(self) -> None:
        harness = make_harness(ScriptedPrometheus(answer=lambda _query: reply(({"pod": "web-0"}, "5"))))
        harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)
        harness.clock.forward(4)

        assert memory_of(harness)["memory"] == [
            "1 different request, the last 4 s ago",
            "queried by the namespace plan every 10 s; the answer in memory is 4 s old",
        ]
        assert "no recent request" in memory_of(harness, replace(RPS, namespace="other"))["memory"][0]

    def test_only_requests_for_the_namespace_in_question_are_shown(self) -> None:
        harness = make_harness(ScriptedPrometheus(answer=lambda _query: reply(({"namespace": "shop"}, "5"))))
        namespaces = resolve("", "namespaces")
        metric = harness.readings.catalogue.find_custom("namespaces", namespaced=False, name="http_rps")
        assert metric is not None
        harness.readings.objects(metric, None, ByName("shop"), EVERYTHING)
        of_shop = Question("http_rps", api=Api.CUSTOM, resource=namespaces, object="shop")

        assert memory_of(harness, of_shop)["memory"][0] == "1 different request, the last 0 s ago"
        assert "no recent request" in memory_of(harness, replace(of_shop, object="other"))["memory"][0]

    def test_the_last_failure_is_shown(self) -> None:
        answers: list[PrometheusError] = []
        prometheus = ScriptedPrometheus(
            answer=lambda query: answers[0] if answers else reply(({"pod": "web-0", "query": query}, "5"))
        )
        harness = make_harness(prometheus)
        harness.readings.objects(harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)
        answers.append(PrometheusUnreachableError("q", "no server"))
        harness.pass_time(11)
        found = harness.readings.explain(RPS)
        details = memory_of(harness)

        assert found.verdict is ExplanationVerdict.ERROR
        assert any("the last refresh failed: " in line and "no server" in line for line in details["memory"])

    def test_a_failure_of_the_query_for_all_namespaces_is_shown_without_its_text(self) -> None:
        failing: list[PrometheusError] = []
        names = [f"ns-{number}" for number in range(9)]
        prometheus = ScriptedPrometheus(
            answer=lambda query: failing[0] if failing and "namespace" in query else reply()
        )
        harness = make_harness(prometheus, objects=MadeUpObjects({name: ["web-0"] for name in names}))
        for name in names:
            harness.readings.objects(harness.pods("http_rps"), name, BySelector(EVERYTHING), EVERYTHING)
        harness.pass_time(2)
        failing.append(PrometheusTimeoutError("q", "series of the namespace secret are slow"))
        harness.pass_time(11)
        details = memory_of(harness, replace(RPS, namespace="ns-1"))["memory"]

        assert any("queried by the wide plan" in line for line in details), details
        assert any("the query for all namespaces fails" in line for line in details), details
        assert "secret" not in str(details)

    def test_a_failed_look_up_is_shown(self) -> None:
        harness = make_harness(
            ScriptedPrometheus(series_answer=lambda selector: PrometheusTimeoutError(selector, "slow"))
        )
        harness.readings.run_due()

        (line,) = memory_of(harness)["series"]
        assert line.startswith("the last look-up of its series failed: query http_requests_total")
        assert line.endswith("slow; the one before that succeeded: never")

    def test_the_look_ups_of_an_explanation_end_within_seconds(self) -> None:
        time, waited = FakeClock(), list[float]()

        class Slow(ScriptedPrometheus):
            def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
                assert start > 0
                waited.append(timeout_seconds)
                time.forward(timeout_seconds)
                raise PrometheusTimeoutError(selector, "slow")

        harness = make_harness(Slow(), clock=time)
        found = harness.readings.explain(Question("unheard_of", api=Api.EXTERNAL, namespace="shop"))

        assert found.verdict is ExplanationVerdict.ERROR
        assert sum(waited) <= 5


@pytest.mark.parametrize("name", ["http_rps", "unheard_of"])
def test_an_explanation_ends_in_time_even_if_prometheus_is_slow(name: str) -> None:
    time = FakeClock()
    began = time.now

    class Slow(ScriptedPrometheus):
        def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
            time.forward(timeout_seconds)
            return super().instant(query, timeout_seconds=timeout_seconds, at=at)

        def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
            time.forward(timeout_seconds)
            return super().series(selector, start=start, timeout_seconds=timeout_seconds)

    def started(seconds: float) -> Started:
        time.forward(seconds)
        return Started(0.0, 0.0)

    rules = PODS_RULES.replace("  name: {as: http_rps}", "  name: {as: http_rps}\n  onNoData: 1\n  maxSampleAge: 1m")
    harness = make_harness(Slow(), clock=time, rules=rules, started=started)
    time.forward(60)
    began = time.now
    harness.readings.explain(replace(RPS, name=name))

    assert time.now - began <= HASTY.total + 0.01


def test_a_timeout_of_an_explanation_does_not_count_as_an_outage() -> None:
    slow: list[PrometheusError] = []
    rules = PODS_RULES.replace("  name: {as: http_rps}", "  name: {as: http_rps}\n  onNoData: 1")
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: slow[0] if slow else reply()), rules=rules)
    ask = (harness.pods("http_rps"), "shop", ByName("web-0"), EVERYTHING)
    harness.readings.objects(*ask)
    slow.append(PrometheusTimeoutError("q", "it did not answer within 2.4 s"))
    harness.clock.forward(5)
    assert harness.readings.explain(RPS).verdict is ExplanationVerdict.ERROR
    slow.clear()
    harness.pass_time(11)

    assert harness.readings.objects(*ask).values == (("web-0", 1.0),)


def test_a_query_that_fails_for_a_whole_namespace_is_sent_for_its_objects() -> None:
    prometheus = ScriptedPrometheus(
        answer=lambda query: (
            QueryRefusedError(query, "execution", "too much") if 'pod!=""' in query else reply(({"pod": "web-0"}, "5"))
        )
    )
    harness = make_harness(prometheus)
    found = harness.readings.explain(RPS)

    assert found.verdict is ExplanationVerdict.VALUE
    assert 'pod=~"db-0|web-0|web-1"' in (found.query or "")


def test_a_failed_query_is_an_error_if_the_objects_are_unknown() -> None:
    question = Question("depth", api=Api.CUSTOM, resource=resolve("", "pods"), namespace="shop")
    explainer = Explainer(
        ReadingSources(
            only(
                ScriptedPrometheus(answer=lambda query: QueryRefusedError(query, "execution", "too much")),
                always_there(Clock()),
            ),
            SeenObjects(resolve),
            ReadingSettings(),
            Clock(),
            UNPACED,
        )
    )
    found = explainer.explain(question, rulebook_of(RULES))

    assert found.verdict is ExplanationVerdict.ERROR
    assert "too much" in found.cause
