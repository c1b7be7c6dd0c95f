"""Queries are counted by kind and result, in the registry that is passed in."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusUnreachableError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.prometheus_telemetry import PrometheusTelemetry
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from tests.support.raw_server import Peer, raw_server

DURATION_NAME = "prometheus_adapter_prometheus_client_request_duration_seconds"
EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


def test_each_query_is_counted_once_with_its_result() -> None:
    def script(peer: Peer) -> None:
        for answer, status in ((EMPTY, "200 OK"), (b"", "401 Unauthorized"), (b"<html>", "502 Bad Gateway")):
            peer.read()
            peer.answer(answer, status)
        peer.read()
        peer.answer(b'{"status":"success","data":[]}')

    registry = CollectorRegistry()
    with raw_server(script) as server:
        settings = PrometheusSettings(server.url.replace("//", "//me:secret@") + "/prefix")
        with PrometheusClient(
            settings, telemetry=PrometheusTelemetry(registry, "tidewatch_adapter", request_duration_name=DURATION_NAME)
        ) as client:
            client.instant("up", timeout_seconds=10)
            with pytest.raises(AuthenticationRefusedError):
                client.instant("up", timeout_seconds=10)
            with pytest.raises(PrometheusUnreachableError):
                client.instant("up", timeout_seconds=10)
            assert list(client.series("up", start=0, timeout_seconds=10).batches(UNPACED)) == []

    def counted(kind: str, result: str) -> float | None:
        return registry.get_sample_value("tidewatch_adapter_prometheus_queries_total", {"kind": kind, "result": result})

    assert counted("instant", "ok") == 1
    assert counted("instant", "unauthenticated") == 1
    assert counted("instant", "unreachable") == 1
    assert counted("series", "ok") == 1
    # The stand-in answers the query for its time without one.
    assert counted("clock", "unexpected") == 1
    assert registry.get_sample_value("tidewatch_adapter_prometheus_query_duration_seconds_count") == 5
    labels = {"path": "/api/v1/query", "server": f"{server.url}/prefix"}
    name = f"{DURATION_NAME}_count"
    assert registry.get_sample_value(name, labels) == 4
    assert b"secret" not in generate_latest(registry)


def test_a_server_that_is_gone_has_no_durations_and_one_that_returns_has_them_again() -> None:
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry, "t", request_duration_name=DURATION_NAME)

    def ask(server: str) -> None:
        telemetry.record_query(kind="instant", path="/api/v1/query", server=server, result="ok", seconds=0.1)

    def counted() -> dict[str, float | None]:
        labels = {server: {"path": "/api/v1/query", "server": server} for server in ("flags", "fleet")}
        return {server: registry.get_sample_value(f"{DURATION_NAME}_count", each) for server, each in labels.items()}

    for server in ("flags", "fleet"):
        ask(server)
    telemetry.keep_servers({"flags"})
    assert counted() == {"flags": 1, "fleet": None}
    ask("fleet")  # a query that was under way
    assert counted() == {"flags": 1, "fleet": None}
    telemetry.keep_servers({"flags", "fleet"})
    ask("fleet")
    assert counted() == {"flags": 1, "fleet": 1}


def test_too_many_series_are_counted_as_too_large() -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(b'{"status":"success","data":[{"__name__":"a"},{"__name__":"b"}]}')

    registry = CollectorRegistry()
    with raw_server(script) as server:
        settings = PrometheusSettings(server.url)
        with PrometheusClient(
            settings, telemetry=PrometheusTelemetry(registry, "tidewatch_adapter", request_duration_name=DURATION_NAME)
        ) as client:
            answer = client.series("up", start=0, timeout_seconds=10, limits=AnswerLimits(max_samples=1))
            with pytest.raises(AnswerTooLargeError):
                list(answer.batches(UNPACED))

    name = "tidewatch_adapter_prometheus_queries_total"
    assert registry.get_sample_value(name, {"kind": "series", "result": "too_large"}) == 1
