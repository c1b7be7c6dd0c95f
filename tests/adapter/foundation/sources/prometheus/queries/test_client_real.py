"""Queries to a real Prometheus."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, Sample
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    NotAVectorError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

PODS = 3000
AT = math.floor(time.time()) - 3600
"""When the samples were taken: in the past, so that the tests do not depend on scrapes."""

HISTORY = "\n".join(
    [
        "# TYPE connections gauge",
        *(f'connections{{namespace="chat",pod="gateway-{i}"}} {i}.5 {AT}' for i in range(PODS)),
        "# TYPE odd gauge",
        f'odd{{kind="nan"}} NaN {AT}',
        f'odd{{kind="plus"}} +Inf {AT}',
        f'odd{{kind="minus"}} -Inf {AT}',
        f'odd{{kind="tiny"}} 5e-324 {AT}',
        "# TYPE text gauge",
        rf'text{{value="quote \" backslash \\ newline \n snow ☃ boundary }},{{\"metric\":"}} 1 {AT}',
        "# EOF",
        "",
    ]
)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus(history=HISTORY)


def samples(answer: InstantAnswer) -> list[Sample]:
    return [sample for batch in answer.batches(UNPACED) for sample in batch]


def test_a_vector_is_returned_in_batches_with_every_sample_once(client: PrometheusClient) -> None:
    answer = client.instant("connections", at=AT, timeout_seconds=10)
    batches = list(answer.batches(UNPACED))
    assert answer.kind == "vector"
    assert len(batches) > 5
    values = {sample.labels["pod"]: sample.value for batch in batches for sample in batch}
    assert values == {f"gateway-{i}": i + 0.5 for i in range(PODS)}


def test_the_evaluation_time_is_the_last_whole_second_of_the_clock(prometheus: ScrapedPrometheus) -> None:
    second = float(int(time.time()) - 10)
    with PrometheusClient(PrometheusSettings(prometheus.url), clock=lambda: second + 0.987) as client:
        answer = client.instant("time()", timeout_seconds=10)
    assert answer.evaluated_at == second
    assert samples(answer) == [Sample({}, second, second)]


def test_a_given_evaluation_time_is_kept(client: PrometheusClient) -> None:
    answer = client.instant("vector(time())", timeout_seconds=10, at=1_700_000_000.125)
    assert answer.evaluated_at == 1_700_000_000.125
    assert samples(answer) == [Sample({}, 1_700_000_000.125, 1_700_000_000.125)]


def test_a_scalar_is_one_sample_without_labels(client: PrometheusClient) -> None:
    answer = client.instant("42.25", timeout_seconds=10)
    assert answer.kind == "scalar"
    assert [(sample.labels, sample.value) for sample in samples(answer)] == [({}, 42.25)]


@pytest.mark.parametrize(("expression", "value"), [("+Inf", math.inf), ("-Inf", -math.inf), ("0/0", math.nan)])
def test_a_scalar_may_be_infinity_or_nan(client: PrometheusClient, expression: str, value: float) -> None:
    (sample,) = samples(client.instant(expression, timeout_seconds=10))
    assert sample.value == pytest.approx(value, nan_ok=True)


def test_infinity_and_nan_are_returned_unchanged(client: PrometheusClient) -> None:
    values = {
        sample.labels["kind"]: sample.value for sample in samples(client.instant("odd", at=AT, timeout_seconds=10))
    }
    assert math.isnan(values.pop("nan"))
    assert values == {"plus": math.inf, "minus": -math.inf, "tiny": 5e-324}


def test_label_values_survive_quoting(client: PrometheusClient) -> None:
    (sample,) = samples(client.instant("text", at=AT, timeout_seconds=10))
    assert sample.labels["value"] == 'quote " backslash \\ newline \n snow ☃ boundary },{"metric":'


def test_an_empty_vector_has_no_batches(client: PrometheusClient) -> None:
    assert samples(client.instant("absent_metric", at=AT, timeout_seconds=10)) == []


@pytest.mark.parametrize(
    ("query", "error_type", "message"),
    [
        ("up{", "bad_data", "unexpected end of input"),
        ("connections / on () connections", "execution", "many-to-many|duplicate series"),
    ],
)
def test_the_error_for_a_refused_query_has_the_message_of_prometheus(
    client: PrometheusClient, query: str, error_type: str, message: str
) -> None:
    with pytest.raises(QueryRefusedError, match=message) as caught:
        client.instant(query, at=AT, timeout_seconds=10)
    assert caught.value.error_type == error_type
    assert caught.value.query == query


@pytest.mark.parametrize(("query", "kind"), [("connections[1m]", "matrix"), ('"text"', "string")])
def test_an_answer_without_single_values_is_an_error_of_the_query(
    client: PrometheusClient, query: str, kind: str
) -> None:
    with pytest.raises(NotAVectorError, match=f"the answer is a {kind}"):
        client.instant(query, at=AT, timeout_seconds=10)


def test_a_query_timeout_of_prometheus_is_reported(start_prometheus: Callable[..., ScrapedPrometheus]) -> None:
    hasty = start_prometheus(extra_flags=["--query.timeout=1ms"])
    with (
        PrometheusClient(PrometheusSettings(hasty.url)) as client,
        pytest.raises(PrometheusTimeoutError, match="Prometheus gave up: query timed out"),
    ):
        client.instant("count_over_time((vector(time()) + vector(time()))[2d:1s])", timeout_seconds=30)


def test_more_samples_than_allowed_are_refused(client: PrometheusClient) -> None:
    answer = client.instant("connections", at=AT, timeout_seconds=10, limits=AnswerLimits(max_samples=PODS))
    assert len(samples(answer)) == PODS
    with pytest.raises(AnswerTooLargeError, match="more than 2,999 samples"):
        samples(client.instant("connections", at=AT, timeout_seconds=10, limits=AnswerLimits(max_samples=PODS - 1)))


def test_more_bytes_than_allowed_are_refused(client: PrometheusClient) -> None:
    with pytest.raises(AnswerTooLargeError, match="more than 10,000 bytes"):
        client.instant("connections", at=AT, timeout_seconds=10, limits=AnswerLimits(max_bytes=10_000))


def test_series_are_returned_in_batches_with_their_names(client: PrometheusClient) -> None:
    answer = client.series('connections{pod!=""}', start=AT - 60, timeout_seconds=10)
    batches = list(answer.batches(UNPACED))
    assert len(batches) > 5
    label_sets = [labels for batch in batches for labels in batch]
    assert {labels["__name__"] for labels in label_sets} == {"connections"}
    assert sorted(labels["pod"] for labels in label_sets) == sorted(f"gateway-{i}" for i in range(PODS))


def test_series_that_ended_before_the_start_are_left_out(client: PrometheusClient) -> None:
    answer = client.series("connections", start=AT + 1800, timeout_seconds=10)
    assert list(answer.batches(UNPACED)) == []


def test_a_refused_selector_is_an_error(client: PrometheusClient) -> None:
    with pytest.raises(QueryRefusedError, match="match"):
        next(client.series("{}", start=0, timeout_seconds=10).batches(UNPACED))


def test_a_query_of_a_megabyte_is_posted(client: PrometheusClient) -> None:
    answer = client.instant("count(connections" + " " * 1_000_000 + ")", at=AT, timeout_seconds=30)
    assert [sample.value for sample in samples(answer)] == [PODS]


def test_compressed_answers_are_read_from_another_host(prometheus: ScrapedPrometheus) -> None:
    # The unspecified address reaches this machine without being a loopback address.
    elsewhere = prometheus.url.replace("127.0.0.1", "0.0.0.0")
    with PrometheusClient(PrometheusSettings(elsewhere)) as client:
        answer = client.instant("connections", at=AT, timeout_seconds=10)
    assert len(samples(answer)) == PODS


def test_queries_work_again_after_prometheus_was_paused_or_killed(
    start_prometheus: Callable[..., ScrapedPrometheus],
) -> None:
    process = start_prometheus().prometheus
    with PrometheusClient(PrometheusSettings(process.url)) as client:

        def answers() -> bool:
            return len(samples(client.instant("vector(1)", timeout_seconds=10))) == 1

        assert answers()
        process.pause()
        with pytest.raises(PrometheusTimeoutError, match=r"no answer from .* within 0\.2 s"):
            client.instant("vector(1)", timeout_seconds=0.2)
        process.resume()
        assert answers()
        process.kill()
        with pytest.raises(PrometheusUnreachableError, match="Connection refused"):
            client.instant("vector(1)", timeout_seconds=10)
        process.start_again()
        assert answers()
