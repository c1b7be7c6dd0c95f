"""The rare requests, sent with prometheus-api-client over our own transport."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    NotAVectorError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.connection import check_connection, range_values
from demo.machine.ports import free_port
from tests.support.raw_server import Peer, answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

TEXT = '# TYPE jobs_total counter\njobs_total{queue="a"} 1\njobs_total{queue="b"} 2\nload{zone="z"} 1\n'


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    server = start_prometheus(interval="1s", stamped=True)
    server.publish(TEXT, seen="jobs_total")
    return server


def test_a_real_prometheus_reports_its_version(prometheus: ScrapedPrometheus) -> None:
    assert check_connection(PrometheusSettings(prometheus.url), 10)[0].isdigit()


def test_a_real_prometheus_refuses_a_range_query_with_a_syntax_error(prometheus: ScrapedPrometheus) -> None:
    with pytest.raises(QueryRefusedError, match="parse error"):
        range_values(PrometheusSettings(prometheus.url), "jobs_total{", 60, 120, 60, 10)


def test_a_server_without_a_version_is_checked_by_a_query() -> None:
    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            if request.target.startswith("/p/api/v1/query?query=vector%281%29"):
                peer.answer(b'{"status":"success","data":{"resultType":"vector","result":[]}}')
            else:
                peer.answer(b"404 page not found", "404 Not Found")

    with raw_server(script) as server:
        assert check_connection(PrometheusSettings(server.url + "/p"), 10) == "unknown"


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        ("401 Unauthorized", b"no org id\n", AuthenticationRefusedError),
        ("404 Not Found", b"404 page not found\n", UnexpectedAnswerError),
        ("422 Unprocessable Entity", b"too many tenant IDs present in the request. max: 1 actual: 2", PrometheusError),
    ],
    ids=["no tenant", "no path", "two tenants"],
)
def test_a_server_that_states_its_version_and_answers_no_query_is_an_error(
    status: str, said: bytes, expected: type[PrometheusError]
) -> None:
    """Mimir states its version to anybody, at its root too, but needs a tenant and the path /prometheus for a query."""

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            if "/api/v1/status/buildinfo" in request.target:
                peer.answer(b'{"status":"success","data":{"application":"Grafana Mimir","version":"3.0.0"}}')
            else:
                peer.answer(said, status, Content_Type="text/plain; charset=utf-8")

    with raw_server(script) as server, pytest.raises(expected, match=said.decode().strip()):
        check_connection(PrometheusSettings(server.url), 10)


@pytest.mark.parametrize("status", ["400 Bad Request", "403 Forbidden", "404 Not Found", "503 Service Unavailable"])
def test_a_server_that_answers_queries_need_not_state_its_version(status: str) -> None:
    """A gateway may let only the paths of queries through."""

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            if "/api/v1/query" in request.target:
                peer.answer(b'{"status":"success","data":{"resultType":"vector","result":[]}}')
            else:
                peer.answer(b"not here", status)

    with raw_server(script) as server:
        assert check_connection(PrometheusSettings(server.url), 10) == "unknown"


def test_a_server_without_version_and_query_is_not_a_prometheus() -> None:
    with (
        raw_server(answering(b"404 page not found", "404 Not Found")) as server,
        pytest.raises(UnexpectedAnswerError, match="check the path of the URL"),
    ):
        check_connection(PrometheusSettings(server.url), 10)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"null", b'{"data":null}', b'{"data":{"a":"b"}}', b'{"status":"success"}']
)
def test_answers_of_another_api_are_unexpected(body: bytes) -> None:
    with raw_server(answering(body)) as server:
        settings = PrometheusSettings(server.url)
        with pytest.raises(UnexpectedAnswerError):
            range_values(settings, "up", 60, 120, 60, 10)


def test_a_failed_request_is_not_repeated() -> None:
    with raw_server(answering(b"busy", "503 Service Unavailable")) as server:
        with pytest.raises(PrometheusUnreachableError, match="HTTP 503"):
            check_connection(PrometheusSettings(server.url), 10)
        assert len(server.requests) == 1


def test_a_redirect_is_not_followed() -> None:
    with raw_server(answering(b"", "302 Found", Location="http://127.0.0.1:1/")) as server:
        with pytest.raises(UnexpectedAnswerError, match="redirects"):
            range_values(PrometheusSettings(server.url), "queue", 60, 120, 60, 10)
        assert len(server.requests) == 1


def test_a_request_to_a_trickling_server_ends_at_the_deadline() -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" * 100)

    with raw_server(script) as server, pytest.raises(PrometheusTimeoutError):
        check_connection(PrometheusSettings(server.url), 0.4)


def test_a_port_without_a_listener_is_an_error() -> None:
    with pytest.raises(PrometheusUnreachableError, match="Connection refused"):
        check_connection(PrometheusSettings(f"http://127.0.0.1:{free_port()}"), 10)


def test_credentials_headers_and_parameters_are_sent(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc")
    with raw_server(answering(b"no", "403 Forbidden")) as server:
        settings = PrometheusSettings(f"{server.url}/p?tenant=t", token_file=token, headers=(("X-Scope-OrgID", "a"),))
        with pytest.raises(AuthenticationRefusedError):
            range_values(settings, "a/b?c", 60, 120, 60, 10)
        (request,) = server.requests
    assert request.target == "/p/api/v1/query_range?tenant=t&query=a%2Fb%3Fc&start=60&end=120&step=60"
    assert request.headers["authorization"] == "Bearer abc"
    assert request.headers["x-scope-orgid"] == "a"


def test_packages_that_serving_does_not_need_are_not_imported() -> None:
    program = """
import sys
import adapter.foundation.sources.prometheus.queries.client, adapter.foundation.sources.prometheus.queries.connection
heavy = {"requests", "prometheus_api_client", "numpy", "pandas", "matplotlib", "scipy"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
import adapter.foundation.sources.prometheus.queries.library
heavy -= {"requests", "prometheus_api_client"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"warnings": ["store gateway-3 did not answer"]}, "may be partial: store gateway-3 did not answer"),
        ({"isPartial": True}, r"may be partial: the answer is partial \(isPartial\)"),
    ],
    ids=["Thanos", "VictoriaMetrics"],
)
def test_a_range_that_may_be_partial_is_an_error(fields: dict[str, object], expected: str) -> None:
    body = json.dumps(
        {
            "status": "success",
            **fields,
            "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[60, "1"], [120, "2"]]}]},
        }
    )
    with raw_server(answering(body.encode())) as server:
        settings = PrometheusSettings(server.url)
        with pytest.raises(PrometheusError, match=expected):
            range_values(settings, "load", 60, 120, 60, 5.0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": "error", "error": "store is down"}, "the answer has the status error: store is down"),
        ({"status": "success", "error": "a store is away", "data": {}}, "has the status success: a store is away"),
        ({"status": "success", "data": {"resultType": "scalar", "result": [60, "1"]}}, "is not a matrix"),
    ],
)
def test_the_error_for_an_invalid_range_says_what_came(body: dict[str, object], expected: str) -> None:
    with raw_server(answering(json.dumps(body).encode())) as server:
        settings = PrometheusSettings(server.url)
        with pytest.raises(UnexpectedAnswerError, match=expected):
            range_values(settings, "load", 60, 120, 60, 5.0)


@pytest.mark.parametrize("values", [{}, {"values": [[60, "1"]]}], ids=["alone", "after numbers"])
def test_a_range_of_native_histograms_is_an_error_that_says_so(values: dict[str, object]) -> None:
    histogram = {"count": "10", "sum": "4.5", "buckets": [[0, "1", "1.1892071150027212", "10"]]}
    series = {"metric": {}, **values, "histograms": [[120, histogram]]}
    body = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    with raw_server(answering(json.dumps(body).encode())) as server:
        settings = PrometheusSettings(server.url)
        with pytest.raises(NotAVectorError, match=r"its values are native histograms: write .* histogram_count"):
            range_values(settings, "latency", 60, 120, 60, 5.0)
