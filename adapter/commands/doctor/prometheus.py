"""Doctor: whether Prometheus answers, which version it has, and whether all clocks agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.reports.clocks import compared, time_of
from adapter.foundation.reports.lines import Line, error, ok, unknown
from adapter.foundation.reports.stores import CLUSTERS, FUTURE, judge_clusters, judge_future
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    SettingsError,
)
from adapter.foundation.sources.prometheus.queries.clocks import MOST_CLOCK_DIFFERENCE_SECONDS
from adapter.foundation.sources.prometheus.queries.clusters import clusters_in
from adapter.foundation.sources.prometheus.queries.connection import check_connection
from adapter.foundation.sources.prometheus.queries.future_samples import targets_of_the_future
from adapter.foundation.sources.prometheus.queries.server_time import TIME_QUERY, stated_time
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest
from adapter.foundation.sources.prometheus.transport.server import Server

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

PROMETHEUS_SECONDS = 5.0


def look_at_prometheus(settings: PrometheusSettings) -> tuple[Line, ...]:
    """Ask Prometheus for its version, its time, and what its store holds."""
    try:
        version = check_connection(settings, PROMETHEUS_SECONDS)
        clock = _prometheus_clock(settings)
    except (PrometheusError, SettingsError) as e:
        return (judge_prometheus(settings.endpoint.shown, e),)
    answers = ok("prometheus", f"{settings.endpoint.shown} answers queries, version {version}")
    return answers, clock, _future(settings), _clusters(settings)


def _future(settings: PrometheusSettings) -> Line:
    try:
        return judge_future(targets_of_the_future(settings, PROMETHEUS_SECONDS))
    except PrometheusError as e:
        return unknown(
            FUTURE, f"it is not known whether the store holds samples of times to come: {e.cause}", "try again"
        )


def _clusters(settings: PrometheusSettings) -> Line:
    try:
        found = clusters_in(settings, PROMETHEUS_SECONDS)
    except PrometheusError as e:
        return unknown(CLUSTERS, f"it is not known whether the store holds several clusters: {e.cause}", "try again")
    return judge_clusters(found, str(settings.matchers or ""), "--prometheus-matchers")


def judge_prometheus(address: str, failure: PrometheusError | SettingsError) -> Line:
    """Return the line about a Prometheus that does not answer."""
    cause = failure.cause if isinstance(failure, PrometheusError) else str(failure)
    return error("prometheus", f"{address} does not answer queries: {cause}", _repair(failure))


def _repair(failure: PrometheusError | SettingsError) -> str:
    if isinstance(failure, SettingsError):
        return "correct the --prometheus flags"
    if isinstance(failure, AuthenticationRefusedError):
        return "set credentials that it accepts: --prometheus-token-file, --prometheus-username or a client certificate"
    if isinstance(failure, PrometheusTimeoutError):
        return "check whether it is overloaded: `vector(1)` reads no data"
    if isinstance(failure, PrometheusUnreachableError):
        return "check --prometheus-url and --prometheus-ca-file, and whether a NetworkPolicy keeps this pod from it"
    return "check whether --prometheus-url is Prometheus's base URL, with the prefix of its API"


def _prometheus_clock(settings: PrometheusSettings) -> Line:
    server = Server(settings)
    try:
        return compared("Prometheus", lambda: _time_of(server), MOST_CLOCK_DIFFERENCE_SECONDS)
    finally:
        server.close()


def _time_of(server: Server) -> float | None:
    """Return the server's own time if it states that; else that of the `Date`, which may be a gateway's."""
    request = ApiRequest("/api/v1/query", (("query", TIME_QUERY),))
    answer = server.exchange(TIME_QUERY, request, Deadline(PROMETHEUS_SECONDS))
    try:
        return stated_time(server.success(TIME_QUERY, answer).body)
    except PrometheusError:
        return time_of(answer.headers.get("date", ""))
