"""Errors that servers other than Prometheus give for outages and timeouts under the status of a refused query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.errors import (
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
    with_repair,
)
from tests.adapter.foundation.sources.prometheus.asking_client import ClientOf, ask
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient

ABORTED = 'proxy Series(): rpc error: code = Aborted desc = fetch series for {cluster="a"} Addr: 10.0.0.7:10901'


def error_of(client: PrometheusClient, query: str) -> PrometheusError:
    with pytest.raises(PrometheusError) as caught:
        client.instant(query, timeout_seconds=10.0)
    return caught.value


@pytest.mark.parametrize(
    ("error_type", "message", "expected"),
    [
        ("422", "timeout exceeded during query execution: 30.000 seconds (elapsed 31 seconds)", PrometheusTimeoutError),
        ("422", "cannot execute request in 30 seconds: deadline exceeded", PrometheusTimeoutError),
        ("503", 'cannot execute funcName="search_v7" on vmstorage: deadline exceeded', PrometheusTimeoutError),
        ("503", "cannot perform search on vmstorage: cannot dial: refused", PrometheusUnreachableError),
        ("422", "cannot select more than -search.maxSamplesPerQuery=1000 samples", QueryRefusedError),
        ("422", "not enough memory for processing up, which returns 692272000 data points", QueryRefusedError),
        ("422", "on vmstorage with timeout 30 seconds: the number of matching timeseries exceeds 3", QueryRefusedError),
    ],
)
def test_a_timeout_of_victoriametrics_is_no_refusal(
    client_of: ClientOf, error_type: str, message: str, expected: type[PrometheusError]
) -> None:
    """Its 422 means any failure while a query is evaluated; only the words tell a timeout from a limit."""
    body = json.dumps({"status": "error", "errorType": error_type, "error": message}).encode()
    with raw_server(answering(body, f"{error_type} Said")) as server, pytest.raises(expected):
        ask(client_of(server.url))


def test_the_words_of_a_query_that_is_quoted_are_no_timeout(client_of: ClientOf) -> None:
    query = 'errors_total{reason="deadline exceeded"}'
    message = f"error when executing query={json.dumps(query)} for (time=1, step=15000): unsupported function"
    body = json.dumps({"status": "error", "errorType": "422", "error": message}).encode()
    with raw_server(answering(body, "422 Unprocessable Entity")) as server:
        assert isinstance(error_of(client_of(server.url), query), QueryRefusedError)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"{ABORTED}: rpc error: code = Unavailable desc = dial tcp: connection refused", PrometheusUnreachableError),
        (f"expanding series: {ABORTED}: EOF", PrometheusUnreachableError),
        (f"{ABORTED}: rpc error: code = Canceled desc = grpc: closing", PrometheusUnreachableError),
        (f"{ABORTED}: rpc error: code = DeadlineExceeded desc = context deadline exceeded", PrometheusTimeoutError),
        (f"{ABORTED}: rpc error: code = ResourceExhausted desc = limit 1000 violated (got 1001)", QueryRefusedError),
        (f"{ABORTED}: rpc error: code = Unknown desc = failed to send series: limit 10 violated", QueryRefusedError),
        ("expanding series: the query hit the max number of series limit (limit: 10 series)", QueryRefusedError),
        ("query processing would load too many samples into memory in query execution", QueryRefusedError),
        ('found duplicate series: [{why="rpc error: code = Unavailable"}, {why=""}]', QueryRefusedError),
    ],
)
def test_a_store_of_thanos_that_is_away_is_no_refusal(
    client_of: ClientOf, message: str, expected: type[PrometheusError]
) -> None:
    """With `partial_response=false`, its querier calls the failure of a store an error of the execution."""
    body = json.dumps({"status": "error", "errorType": "execution", "error": message}).encode()
    with raw_server(answering(body, "422 Unprocessable Entity")) as server, pytest.raises(expected):
        ask(client_of(server.url))


def test_a_prometheus_that_runs_as_an_agent_is_at_fault_and_no_query_is(client_of: ClientOf) -> None:
    """It refuses every query, so a narrower one would not work, and no rule needs a correction."""
    body = b'{"status":"error","errorType":"execution","error":"unavailable with Prometheus Agent"}'
    with raw_server(answering(body, "422 Unprocessable Entity")) as server:
        found = error_of(client_of(server.url), "up")
    assert isinstance(found, UnexpectedAnswerError)
    assert "runs as an agent" in found.public_cause


@pytest.mark.parametrize("body", [b"upstream request timeout", b'{"status":"error","errorType":"timeout","error":"x"}'])
def test_a_gateway_that_gives_up_is_a_timeout(client_of: ClientOf, body: bytes) -> None:
    """A narrower query may be answered in time, so callers divide the query as after their own timeout."""
    with raw_server(answering(body, "504 Gateway Timeout")) as server, pytest.raises(PrometheusTimeoutError):
        ask(client_of(server.url))


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        pytest.param(
            "401 Unauthorized",
            b"no org id\n",
            "has tenants, and the request names none in the header X-Scope-OrgID (HTTP 401): no org id: name it with"
            " --prometheus-header=X-Scope-OrgID=TENANT, or in a configuration file under `headers`",
            id="a tenant that is not named",
        ),
        pytest.param(
            "429 Too Many Requests",
            b'{"status":"error","errorType":"too_many_requests","error":"too many outstanding requests"}',
            "accepts no more queries at present (HTTP 429): too many outstanding requests: raise its limits on"
            " queries, or let fewer clients query it",
            id="too many queries",
        ),
    ],
)
def test_what_mimir_and_cortex_need_is_said_in_place_of_a_general_advice(
    client_of: ClientOf, status: str, body: bytes, shown: str
) -> None:
    """Neither a token nor another address would help."""
    with raw_server(answering(body, status)) as server:
        found = error_of(client_of(server.url), "up")
        assert with_repair(found) == f"{server.url} {shown}"
