"""Checks of a Prometheus for `doctor` and `init`: whether it answers, its clock, and what its store holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.clocks import compared, time_of
from adapter.foundation.reports.lines import Line, error, ok, unknown
from adapter.foundation.reports.stores import CLUSTERS, FUTURE, judge_clusters, judge_future
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.queries.clocks import MOST_CLOCK_DIFFERENCE_SECONDS
from adapter.foundation.sources.prometheus.queries.clusters import clusters_in
from adapter.foundation.sources.prometheus.queries.connection import check_connection
from adapter.foundation.sources.prometheus.queries.future_samples import targets_of_the_future
from adapter.foundation.sources.prometheus.queries.server_time import TIME_QUERY, stated_time
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest
from adapter.foundation.sources.prometheus.transport.server import Server

if TYPE_CHECKING:
    from adapter.foundation.options.found_prometheus import FoundPrometheus
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

BACKEND_SECONDS: Final = 5.0
CLOCK: Final = "clock/prometheus"
"""Name of the line about the clock of the only Prometheus."""


def look_at_backend(name: str, settings: PrometheusSettings, whom: str) -> tuple[Line, ...]:
    """Check whether one of several Prometheus servers answers, its clock, and what its store holds.

    `whom` says what selects the server: `entries` or `rules`.
    """
    line = f"prometheus/{name}"
    fix = f"correct the backend {name} in `prometheus`; only the {whom} that use it are affected"
    return _look_at(settings, line, f"{line}/clock", fix)


def look_at_only_backend(settings: PrometheusSettings) -> tuple[Line, ...]:
    """Check whether the only Prometheus server of a configuration answers, its clock, and what its store holds."""
    return _look_at(settings, "prometheus", CLOCK, "correct `prometheus`: its address, CA and credentials")


def _look_at(settings: PrometheusSettings, line: str, clock: str, fix: str) -> tuple[Line, ...]:
    """Return the lines about a server; a server that does not answer gets a single line, with `fix`."""
    try:
        version = check_connection(settings, BACKEND_SECONDS)
    except (PrometheusError, SettingsError) as e:
        return (error(line, f"{settings.endpoint.shown} does not answer: {e}", fix),)
    return (
        ok(line, f"{settings.endpoint.shown} answers queries (version {version})"),
        look_at_clock(settings, clock),
        look_at_future(settings, f"{line}/future"),
        look_at_clusters(settings, f"{line}/clusters"),
    )


def refuse_several_clusters(found: FoundPrometheus, timeout_seconds: float) -> None:
    """Raise UsageError if the store has series of several clusters and no matchers select one.

    Raises PrometheusError and SettingsError, too.
    """
    if found.settings.matchers is not None:
        return
    clusters = clusters_in(found.settings, timeout_seconds)
    if clusters:
        line = judge_clusters(clusters, "", "--prometheus-matchers")
        raise UsageError(f"{found.url}: {line.message}: {line.fix}")


def look_at_clock(settings: PrometheusSettings, name: str = CLOCK) -> Line:
    """Compare the clock of Prometheus with this machine's."""
    try:
        server = Server(settings)
        try:
            found = compared("Prometheus", lambda: _time_of(server), MOST_CLOCK_DIFFERENCE_SECONDS)
        finally:
            server.close()
    except (PrometheusError, SettingsError) as e:
        return unknown(name, f"its clock is not known: {e}", "try again")
    return replace(found, name=name)


def _time_of(server: Server) -> float | None:
    """Return the time that the server states; otherwise that of the header `Date`, which may be a gateway's."""
    request = ApiRequest("/api/v1/query", (("query", TIME_QUERY),))
    answer = server.exchange(TIME_QUERY, request, Deadline(BACKEND_SECONDS))
    try:
        return stated_time(server.success(TIME_QUERY, answer).body)
    except PrometheusError:
        return time_of(answer.headers.get("date", ""))


def look_at_future(settings: PrometheusSettings, name: str = FUTURE) -> Line:
    """Query Prometheus for samples with timestamps in the future."""
    try:
        found = targets_of_the_future(settings, BACKEND_SECONDS)
    except (PrometheusError, SettingsError) as e:
        return unknown(name, f"it is not known whether the store holds samples of times to come: {e}", "try again")
    return replace(judge_future(found), name=name)


def look_at_clusters(settings: PrometheusSettings, name: str = CLUSTERS, setting: str = "prometheus.matchers") -> Line:
    """Query Prometheus for the clusters whose series it has; `setting` is the flag or key that sets matchers."""
    try:
        found = clusters_in(settings, BACKEND_SECONDS)
    except (PrometheusError, SettingsError) as e:
        return unknown(name, f"it is not known whether the store holds several clusters: {e}", "try again")
    return replace(judge_clusters(found, str(settings.matchers or ""), setting), name=name)
