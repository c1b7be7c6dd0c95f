"""Failures as callers see them hold nothing of other namespaces; the log has the whole texts."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from http.client import BadStatusLine
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import (
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.public_errors import public_text, without_series
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.transport.failures import answer_failure, transport_failure
from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer
from adapter.foundation.sources.prometheus.transport.transport import ConnectFailedError
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import AnswerTooOldError, PartialAnswerError, QueryRefusedByPrometheusError
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.readings.public_reasons import reason_for_requesters
from adapter.metrics.readings.refreshing.query_failures import failure_of
from adapter.metrics.rulebook.model import Api, PlanKind
from tests.support.raw_server import answering, raw_server
from tests.support.readings import MadeUpObjects, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Callable

POD = find_resource(BUILT_IN, "", "pod")
DUPLICATES = (
    'found duplicate series for the match group {zone="a"} on the right hand-side of the operation: '
    '[{__name__="cost", namespace="bank", pod="secret-0"}, {__name__="cost"}];many-to-many matching not allowed'
)
BUCKETS = 'PromQL warning: bucket label "le" is missing or has a malformed value of "bank-secret" for metric name "x"'


@pytest.mark.parametrize(
    ("text", "public"),
    [
        (DUPLICATES, "found duplicate series for the match group … (all of it is in the log)"),
        (BUCKETS, "PromQL warning: bucket label … (all of it is in the log)"),
        (
            "multiple matches for labels: many-to-one matching must be explicit",
            "multiple matches for labels: many-to-one matching must be explicit",
        ),
        ("many [a] and {b}", "many … (all of it is in the log)"),
        ("cannot parse 'bank'", "cannot parse … (all of it is in the log)"),
        ("unknown `bank`", "unknown … (all of it is in the log)"),
        ("dial tcp 10.0.0.7:10901: refused", "dial tcp … (all of it is in the log)"),
        ("cannot dial vmstorage-0:8400", "cannot dial … (all of it is in the log)"),
        ("dial tcp fd12:abcd::7: refused", "dial tcp … (all of it is in the log)"),
        ("lookup store: no such host", "… (all of it is in the log)"),
        ("from Addr: store LabelSets:", "from … (all of it is in the log)"),
        ("no store.bank.svc here", "no … (all of it is in the log)"),
        ("http://store/x", "… (all of it is in the log)"),
        ("the server's limit: 30.000 seconds (limit: 10)", "the server's limit: 30.000 seconds (limit: 10)"),
        ("", ""),
    ],
)
def test_the_text_of_prometheus_is_cut_where_it_quotes_series(text: str, public: str) -> None:
    assert without_series(text) == public


def test_an_error_in_the_text_of_a_query_is_shown_in_full() -> None:
    error = QueryRefusedError(
        "sum(", "bad_data", 'invalid parameter "query": 1:5: parse error: unclosed left parenthesis'
    )

    assert public_text(error) == str(error)


@pytest.mark.parametrize(
    "rest",
    [
        r""""\"service.n\"... in label matching, expected identifier or "}\"""",
        r""""\"service.n\"... in grouping opts, expected label""",
    ],
)
def test_a_server_that_knows_no_quoted_names_is_named_as_the_cause(rest: str) -> None:
    """As Prometheus 2.42 answers; Prometheus 3 accepts these names."""
    error = QueryRefusedError("q", "bad_data", f'invalid parameter "query": 1:7: parse error: unexpected string {rest}')
    beginning = "query q: Prometheus refused it (bad_data), because names between quotes need Prometheus 3: invalid"
    assert str(error).startswith(beginning)
    assert (public_text(error) or "").startswith(beginning)


@pytest.mark.parametrize("error_type", ["bad_data", "execution"])
def test_a_long_refusal_takes_no_long_search(error_type: str) -> None:
    began = time.process_time()
    QueryRefusedError("q", error_type, "unexpected string " * 8_000)
    assert time.process_time() - began < 0.5


IN_LOG = "… (all of it is in the log)"
CLOSED = PrometheusSettings("http://localhost:1/bank")


def answered(status: int, body: bytes = b"", **headers: str) -> PrometheusError:
    failure = answer_failure("q", HttpAnswer(status, headers, bytearray(body)), CLOSED.endpoint)
    assert failure is not None
    return failure


def broken_off(error: Exception) -> PrometheusError:
    return transport_failure("q", error, CLOSED.endpoint, Deadline(2.38), 9.0)


def asked(settings: PrometheusSettings) -> PrometheusError:
    with PrometheusClient(settings, awaits_credentials=True) as client, pytest.raises(PrometheusError) as raised:
        client.instant("q\r", timeout_seconds=10.0)
    return raised.value


@pytest.mark.parametrize(
    ("make", "public"),
    [
        (lambda: asked(CLOSED), "no connection to Prometheus: Connection refused"),
        (lambda: asked(PrometheusSettings(f"http://bank.{'x' * 64}")), "the name of Prometheus cannot be resolved: "),
        (
            lambda: asked(replace(CLOSED, token_file=Path("/nowhere/bank/token"))),
            "the credentials for Prometheus cannot be used",
        ),
        (
            lambda: asked(replace(CLOSED, matchers=Matchers.read('tenant="bank"'))),
            "it was not sent, because the configured matchers cannot be added to each of its selectors (it has a ",
        ),
        (
            lambda: broken_off(ConnectFailedError("with bank failed", "with Prometheus failed", "it is not 'p.bank'")),
            f"with Prometheus failed: it is not {IN_LOG}",
        ),
        (
            lambda: broken_off(TimeoutError("timed out")),
            "no answer from Prometheus within 2.38 s: timed out",
        ),
        (
            lambda: broken_off(ConnectionResetError(104, "Connection reset by peer")),
            "Prometheus cut the answer off: Connection reset by peer",
        ),
        (lambda: broken_off(BadStatusLine("x")), "Prometheus does not answer in valid HTTP: check the port"),
        (lambda: answered(502, b"Bad Gateway of bank.svc"), f"Prometheus answers HTTP 502: Bad Gateway of {IN_LOG}"),
        (lambda: answered(401), "Prometheus refuses the credentials (HTTP 401)"),
        (
            lambda: answered(403, b"Forbidden (user=system:serviceaccount:watch:tidewatch)"),
            "Prometheus refuses the credentials (HTTP 403)",
        ),
        (
            lambda: answered(429, b'{"status": "error", "error": "too many queries of user watch"}'),
            "Prometheus accepts no more queries at present (HTTP 429)",
        ),
        (lambda: answered(404), "Prometheus answers HTTP 404: check the path of the URL"),
        (
            lambda: answered(302, location="https://bank/login"),
            "Prometheus redirects (HTTP 302) to another address, which is not followed",
        ),
    ],
)
def test_servers_files_and_matchers_are_not_public(make: Callable[[], PrometheusError], public: str) -> None:
    """Events of HPAs repeat the message to everybody who may read them."""
    error = make()
    text = public_text(error) or ""
    assert "bank" in str(error)
    assert text.startswith(f"query q: {public}")
    assert not [word for word in ("bank", "localhost", "/nowhere", "watch") if word in text]


def test_no_more_of_a_long_text_is_searched_than_is_shown() -> None:
    shown = without_series("a" * (1 << 20))
    assert len(shown) < 250


def test_a_text_without_quotes_needs_no_public_form() -> None:
    assert public_text(PrometheusTimeoutError("up", "no answer")) is None


ABORTED = 'proxy Series(): rpc error: code = Aborted desc = fetch series for {tenant="bank"} Addr: 10.0.0.7:10901'


@pytest.mark.parametrize("kind", PlanKind)
@pytest.mark.parametrize(
    ("status", "error_type", "said", "shown"),
    [
        (422, "execution", f"{ABORTED}: rpc error: code = Unavailable desc = EOF", "cannot answer (execution): proxy"),
        (422, "execution", f"{ABORTED}: rpc error: code = DeadlineExceeded desc = late", "Prometheus gave up: proxy"),
        (422, "422", 'error when executing query="bank": timeout exceeded', "Prometheus gave up: error when"),
        (503, "503", "cannot dial 10.0.0.7:8400 of bank", "cannot answer (503): cannot dial …"),
        (500, "internal", 'expanding series: "bank"', "cannot answer (internal): expanding series: …"),
        (422, "execution", "cannot read 10.0.0.7:8400 of bank", "Prometheus refuse"),
        (400, "bad_data", "cannot dial 10.0.0.7:8400 of bank", "refused it (bad_data): cannot dial …"),
        (400, "http://bank.svc:9", "no", "refused it (unknown): no"),
        (503, "http://bank.svc:9", "no", "cannot answer (unknown): no"),
        (503, "Type of bank", "no", "cannot answer (unknown): no"),
        (503, None, "no healthy upstream", "answers HTTP 503: no healthy upstream"),
        (503, None, "upstream bank.svc is away", "answers HTTP 503: upstream …"),
        (504, None, "upstream 'bank' is slow", "answers HTTP 504: upstream …"),
        (403, None, 'tenant "bank" is unknown', "refuses the credentials (HTTP 403)"),
        (404, None, '{"path": "bank"}', "check the path of the URL: …"),
        (200, "execution", '{tenant="bank"} is away', "the answer has the status error: …"),
    ],
)
def test_what_a_server_says_of_its_failure_is_cut(
    status: int, error_type: str | None, said: str, shown: str, kind: PlanKind
) -> None:
    body = said if error_type is None else json.dumps({"status": "error", "errorType": error_type, "error": said})
    with raw_server(answering(body.encode(), f"{status} Said")) as server:
        client = PrometheusClient(PrometheusSettings(server.url))
        with client, pytest.raises(PrometheusError) as raised:
            client.instant("up", timeout_seconds=10.0)
    failure = failure_of(raised.value)
    reason = reason_for_requesters(failure, kind)

    assert said in failure.message
    if kind is not PlanKind.WIDE or failure.of_source:
        assert shown in reason
    assert not [word for word in ("bank", "10.0.0.7", "{", '"') if word in reason]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"status": "error-of-bank-store"}, "query up: the answer has an unknown status"),
        ({"status": "bank", "error": "it is away"}, "query up: the answer has an unknown status: it is away"),
        ({"status": "error", "error": "it is away"}, "query up: the answer has the status error: it is away"),
        ({"data": {"resultType": "bank", "result": []}}, "query up: the answer has an unknown resultType"),
        ({"data": {"resultType": "scalar", "result": [1, "bank"]}}, "query up: the answer cannot be read"),
    ],
)
def test_an_answer_out_of_form_is_not_quoted(answer: dict[str, object], shown: str) -> None:
    with raw_server(answering(json.dumps({"status": "success", **answer}).encode())) as server:
        client = PrometheusClient(PrometheusSettings(server.url))
        with client, pytest.raises(UnexpectedAnswerError) as raised:
            list(client.instant("up", timeout_seconds=10.0).batches(UNPACED))
    assert public_text(raised.value) == shown
    assert "bank" in str(raised.value) or str(raised.value) == shown


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (QueryRefusedError("q", "execution", DUPLICATES), QueryRefusedByPrometheusError),
        (reply(({"pod": "web-0"}, "5"), warnings=[BUCKETS]), PartialAnswerError),
        (reply(({"pod": "web-0"}, "5"), warnings=['store {cluster="bank"} is away']), PartialAnswerError),
    ],
)
def test_an_error_has_a_full_message_for_the_log_and_a_public_one_for_clients(
    answer: Reply | PrometheusError, error: type[QueryRefusedByPrometheusError | PartialAnswerError]
) -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: answer))

    with pytest.raises(error) as raised:
        harness.readings.objects(harness.pods("only_exact"), "shop", ByName("web-0"), EVERYTHING)
    assert "bank" in raised.value.message
    assert "bank" not in raised.value.public_message
    assert "(all of it is in the log)" in raised.value.public_message


@pytest.mark.parametrize(
    ("error", "warnings"),
    [
        (QueryRefusedError("q", "execution", DUPLICATES), ()),
        (PrometheusUnreachableError("q", "a store is away", ABORTED), ()),
        (None, ('store {cluster="bank"} is away',)),
        (ValueError("bank"), ()),
    ],
)
def test_a_failed_look_up_is_explained_without_series_of_others(
    error: Exception | None, warnings: tuple[str, ...]
) -> None:
    """Look-ups select the series of all namespaces, and hints and explanations repeat why they fail."""

    def series(_: str) -> list[dict[str, str]]:
        if error is not None:
            raise error
        return []

    harness = make_harness(ScriptedPrometheus(series_answer=series, series_warnings=warnings))
    harness.readings.run_due()

    failures = {str(look_up.failure) for look_up in harness.readings.look_ups()}
    explained = harness.readings.explain(Question("http_rps", api=Api.CUSTOM, resource=POD, namespace="shop"))
    (line,) = [step.detail for step in explained.steps if step.step == "series" and "look-up" in step.detail]
    assert any(failure in line for failure in failures)
    assert "log)" in line
    assert not [word for word in ("bank", "10.0.0.7") if word in f"{failures}{line}"]


def test_the_error_of_a_wide_query_is_shown_without_text_of_prometheus() -> None:
    failing: list[PrometheusError] = []
    names = [f"ns-{number}" for number in range(9)]

    def of(query: str) -> list[dict[str, str]]:
        return [{}] if "namespace=" in query else [{"namespace": name} for name in names]

    prometheus = ScriptedPrometheus(
        answer=lambda query: (
            failing["namespace=" in query] if failing else reply(*(({"pod": "web-0", **own}, "5") for own in of(query)))
        )
    )
    harness = make_harness(prometheus, objects=MadeUpObjects({name: ["web-0"] for name in names}))
    for name in names:
        harness.readings.objects(harness.pods("http_rps"), name, BySelector(EVERYTHING), EVERYTHING)
    harness.pass_time(30)
    failing[:] = [QueryRefusedError("q", "execution", DUPLICATES), PrometheusTimeoutError("q", "bank is slow")]
    harness.pass_time(70)

    with pytest.raises(AnswerTooOldError) as raised:
        harness.readings.objects(harness.pods("http_rps"), "ns-1", BySelector(EVERYTHING), EVERYTHING)
    assert "the query for all namespaces fails: Prometheus refuses the query" in raised.value.public_message
    assert not [word for word in ("bank", "secret", "cost") if word in raised.value.message]
