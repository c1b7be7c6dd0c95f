from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.time.timestamps import rfc3339
from adapter.metrics.readings.answers import ByName, BySelector, ObjectsAnswer
from adapter.metrics.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    NoObjectsMatchError,
    NoSampleError,
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
    UnanswerableSelectorError,
)
from tests.support.readings import (
    START,
    Harness,
    MadeUpObjects,
    Reply,
    ScriptedPrometheus,
    Threads,
    make_harness,
    reply,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

WEB = BySelector(parse_selector("app=web"))
PODS = reply(
    ({"namespace": "shop", "pod": "web-0"}, "1"),
    ({"namespace": "shop", "pod": "web-1"}, "2.5"),
    ({"namespace": "shop", "pod": "gone-0"}, "9"),
)
DOWN = PrometheusUnreachableError("q", "http://prometheus:9090: connection refused")


def ask(harness: Harness, name: str = "http_rps", which: ByName | BySelector = WEB) -> ObjectsAnswer:
    return harness.readings.objects(harness.pods(name), "shop", which, EVERYTHING)


def test_values_of_selected_objects_are_sorted_by_name_and_have_their_time() -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: PODS))

    assert ask(harness) == ObjectsAnswer((("web-0", 1.0), ("web-1", 2.5)), START - START % 1)


def test_the_answer_states_the_evaluation_time_of_its_query() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)

    assert [ask(harness).evaluated_at] == prometheus.times


def test_an_object_requested_by_name_need_not_be_known() -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: PODS), objects=MadeUpObjects(not_synced=True))

    assert ask(harness, which=ByName("gone-0")).values == (("gone-0", 9.0),)


def test_an_object_without_a_sample_is_an_error_and_a_list_of_them_is_empty() -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: PODS))

    with pytest.raises(NoSampleError, match="'db-0' has no value: Prometheus has no sample for it"):
        ask(harness, which=ByName("db-0"))
    assert ask(harness, which=BySelector(parse_selector("app=db"))).values == ()


def test_a_selector_without_objects_is_an_error_and_creates_no_demand() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)

    with pytest.raises(NoObjectsMatchError, match="no pods in namespace 'shop' match the selector 'app=nobody'"):
        ask(harness, which=BySelector(parse_selector("app=nobody")))
    assert prometheus.asked == []


def test_objects_that_are_not_known_yet_are_an_error() -> None:
    harness = make_harness(ScriptedPrometheus(), objects=MadeUpObjects(not_synced=True))

    with pytest.raises(ObjectsNotKnownError, match="first list of pods has not arrived"):
        ask(harness)


def test_a_metric_selector_that_promql_cannot_express_is_an_error_without_demand() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)

    with pytest.raises(UnanswerableSelectorError, match="pods/http_rps"):
        harness.readings.objects(harness.pods("http_rps"), "shop", WEB, parse_selector("size>5"))
    assert prometheus.asked == []
    assert harness.counter("tidewatch_adapter_demanded_metrics") == 0


def test_a_second_request_is_answered_from_memory() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    first = ask(harness)
    prometheus.answer = lambda _query: DOWN
    harness.clock.forward(5)

    assert ask(harness) == first
    assert len(prometheus.asked) == 1


def test_a_refresh_brings_new_values_and_a_new_time() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    ask(harness)
    prometheus.answer = lambda _query: reply(({"pod": "web-0"}, "7"))
    harness.pass_time(10)

    assert ask(harness) == ObjectsAnswer((("web-0", 7.0),), START // 1 + 10)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (DOWN, SourceUnreachableError),
        (PrometheusTimeoutError("q", "no answer within 10 s"), SourceSlowError),
        (QueryRefusedError("q", "execution", "too many samples"), QueryRefusedByPrometheusError),
        (AuthenticationRefusedError("q", "HTTP 401"), SourceUnreachableError),
        (UnexpectedAnswerError("q", "an HTML page"), SourceUnreachableError),
    ],
)
def test_failures_of_prometheus_become_reading_errors(failure: PrometheusError, error: type[ReadingError]) -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: failure))

    with pytest.raises(error, match=failure.cause.replace("(", r"\(").replace(")", r"\)")):
        ask(harness)


def test_a_failure_is_repeated_without_a_query_and_recovers_by_itself() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: DOWN)
    harness = make_harness(prometheus)
    for _ in range(3):
        with pytest.raises(SourceUnreachableError, match="connection refused"):
            ask(harness)
    assert len(prometheus.asked) == 1

    harness.pass_time(60)
    while_down = len(prometheus.asked)
    prometheus.answer = lambda _query: PODS
    harness.pass_time(5)

    assert while_down == pytest.approx(14, abs=2)
    assert ask(harness).values == (("web-0", 1.0), ("web-1", 2.5))


def test_answers_are_served_during_an_outage_until_too_old_and_then_fail_with_the_reason() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    first = ask(harness)
    prometheus.answer = lambda _query: DOWN
    harness.pass_time(59.5)
    stale = ask(harness)
    assert stale == replace(first, warnings=stale.warnings)
    assert stale.warnings == ("this answer is 60 s old: Prometheus cannot be asked",)
    harness.pass_time(1)

    limit = "and answers older than 60 s are not served"
    refused = f"connection refused; the last good answer is from {rfc3339(first.evaluated_at)}, {limit}"
    for _ in range(3):
        with pytest.raises(AnswerTooOldError, match=re.escape(refused)):
            ask(harness)
        harness.pass_time(5)
    prometheus.answer = lambda _query: PODS
    harness.pass_time(5)
    assert ask(harness).values == first.values


def test_an_answer_is_too_old_after_the_machine_slept() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    ask(harness)
    harness.clock.wall_offset += 3600

    with pytest.raises(AnswerTooOldError):
        ask(harness)


def test_a_wall_clock_set_back_does_not_make_an_answer_young() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    ask(harness)
    prometheus.answer = lambda _query: DOWN
    harness.clock.wall_offset -= 3600
    harness.pass_time(61)

    with pytest.raises(AnswerTooOldError):
        ask(harness)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([({"pod": "web-0"}, "NaN")], NoSampleError, "its value is NaN"),
        ([({"pod": "web-0"}, "+Inf")], NoSampleError, "its value is infinite"),
        ([({"pod": "web-0"}, "1764195000123456789")], NoSampleError, "its value is too large: .* end at 9.2e15"),
        ([({"pod": "web-0", "x": "1"}, "1"), ({"pod": "web-0", "x": "2"}, "2")], AmbiguousSamplesError, "differ in x"),
        ([({"instance": "i"}, "1")], NoSampleError, "without the label 'pod'"),
    ],
)
def test_unusable_samples_are_errors_and_never_numbers(
    samples: Sequence[tuple[dict[str, str], str]], error: type[ReadingError], message: str
) -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: reply(*samples)))

    with pytest.raises(error, match=message):
        ask(harness, which=ByName("web-0"))


def test_a_partial_answer_is_an_error_and_not_a_number() -> None:
    partial = Reply(PODS.samples, ("2 of 3 stores did not answer",))
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: partial))

    with pytest.raises(PartialAnswerError, match="2 of 3 stores did not answer"):
        ask(harness)


def test_a_partial_answer_does_not_replace_a_whole_one() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    whole = ask(harness)
    prometheus.answer = lambda _query: Reply(PODS.samples[:1], ("a store is missing",))
    harness.pass_time(30)

    stale = ask(harness)
    assert (stale.values, stale.evaluated_at) == (whole.values, whole.evaluated_at)
    assert stale.warnings == ("this answer is 30 s old: Prometheus answers only a part",)


def test_remarks_of_promql_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    texts = (f"PromQL info: buckets needed to be fixed, with a max diff of {number}" for number in count(1))
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: reply(*PODS.samples, infos=[next(texts)])))
    with caplog.at_level(logging.WARNING):
        ask(harness)
        harness.pass_time(60)

    assert [record.getMessage() for record in caplog.records] == [
        "pods/http_rps (rules[0]): PromQL info: buckets needed to be fixed, with a max diff of 1"
    ]


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    with caplog.at_level(logging.INFO):
        for name in ("http_rps", "raw"):
            ask(harness, name)
        prometheus.answer = lambda _query: DOWN
        harness.pass_time(60)
        prometheus.answer = lambda _query: PODS
        harness.pass_time(20)

    messages = [record.getMessage() for record in caplog.records]
    assert [message.split(";")[0] for message in messages] == ["queries to Prometheus fail", "Prometheus answers again"]


def test_an_internal_error_fails_only_its_query_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    prometheus = ScriptedPrometheus(answer=lambda query: ZeroDivisionError() if "raw" in query else PODS)
    harness = make_harness(prometheus)

    with pytest.raises(ReadingError, match="internal error"):
        ask(harness, "raw")
    assert ask(harness).values
    harness.pass_time(20)
    assert harness.counter("tidewatch_adapter_refreshes_total", result="fault") == 3
    assert "ZeroDivisionError" in caplog.text
    prometheus.answer = lambda _query: PODS
    harness.pass_time(10)
    assert ask(harness, "raw").values


def test_an_answer_that_memory_cannot_hold_fails_only_its_query_and_is_not_reported_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A report may find no memory either, while the answer is held by the traceback; then the query never ended."""
    prometheus = ScriptedPrometheus(answer=lambda query: MemoryError() if "raw" in query else PODS)
    harness = make_harness(prometheus)

    with pytest.raises(ReadingError, match="raise the memory limit of the adapter"):
        ask(harness, "raw")
    assert ask(harness).values
    assert not [record for record in caplog.records if record.exc_info]
    prometheus.answer = lambda _query: PODS
    harness.pass_time(10)
    assert ask(harness, "raw").values


def test_an_exact_query_names_the_current_objects() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    objects = MadeUpObjects({"shop": ["web-0", "web-1"]})
    harness = make_harness(prometheus, objects=objects)
    assert ask(harness, "only_exact").values == (("web-0", 1.0), ("web-1", 2.5))
    objects.names_by_namespace["shop"] = ["web-1", "web-2"]
    harness.pass_time(10)

    assert ['pod=~"web-0|web-1"' in query for query in prometheus.asked] == [True, False]
    assert 'pod=~"web-1|web-2"' in prometheus.asked[1]
    assert ask(harness, "only_exact").values == (("web-1", 2.5),)


def test_an_exact_query_is_not_sent_while_there_is_no_object() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    objects = MadeUpObjects({"shop": ["web-0"]})
    harness = make_harness(prometheus, objects=objects)
    ask(harness, "only_exact")
    objects.names_by_namespace["shop"] = []
    harness.pass_time(30)

    assert len(prometheus.asked) == 1


def test_each_exact_request_has_a_query_of_its_own() -> None:
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    harness = make_harness(prometheus)
    ask(harness, "only_exact", ByName("web-0"))
    ask(harness, "only_exact", ByName("web-1"))
    ask(harness, "only_exact", WEB)

    assert len(prometheus.asked) == len(set(prometheus.asked)) == 3


def test_dropped_samples_are_counted_by_reason() -> None:
    answer = reply(
        ({"pod": "web-0"}, "NaN"),
        ({"pod": "web-1"}, "-Inf"),
        ({"pod": "web-2", "namespace": "bank"}, "1"),
        ({"job": "x"}, "1"),
        ({"pod": "web-3", "x": "1"}, "1"),
        ({"pod": "web-3", "x": "2"}, "1"),
    )
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: answer))
    with pytest.raises(NoSampleError):
        ask(harness, which=ByName("web-0"))

    counted = {
        reason: harness.counter("tidewatch_adapter_dropped_samples_total", reason=reason)
        for reason in ("nan", "inf", "stale", "foreign_namespace", "unknown_object", "duplicate")
    }
    assert counted == {"nan": 1, "inf": 1, "stale": 0, "foreign_namespace": 1, "unknown_object": 1, "duplicate": 2}


def test_the_number_of_concurrent_refreshes_is_bounded() -> None:
    threads = Threads()
    prometheus = ScriptedPrometheus(answer=lambda _query: PODS)
    objects = MadeUpObjects({"shop": [f"web-{number}" for number in range(12)]})
    harness = make_harness(prometheus, objects=objects, submit=threads)
    for number in range(12):
        with contextlib.suppress(NoSampleError):
            ask(harness, "only_exact", ByName(f"web-{number}"))
    threads.held = True
    asked = len(prometheus.asked)
    harness.pass_time(30)
    threads.run()

    assert (asked, len(prometheus.asked)) == (12, 12 + 4)
    for _ in range(3):
        harness.readings.run_due()
        threads.run()
    assert len(set(prometheus.asked[12:])) == 12
