"""`doctor` checks whether Prometheus answers, its version, whether the clocks agree, and what its store holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.options.backend_checks import look_at_store
from adapter.foundation.reports.lines import Line, error, ok
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    SettingsError,
)
from adapter.foundation.sources.prometheus.queries.connection import check_connection

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

PROMETHEUS_SECONDS = 5.0


def look_at_prometheus(settings: PrometheusSettings) -> tuple[Line, ...]:
    """Ask Prometheus for its version, its time, and what its store holds."""
    try:
        version = check_connection(settings, PROMETHEUS_SECONDS)
    except (PrometheusError, SettingsError) as e:
        return (judge_prometheus(settings.endpoint.shown, e),)
    return (
        ok("prometheus", f"{settings.endpoint.shown} answers queries, version {version}"),
        *look_at_store(settings, setting="--prometheus-matchers"),
    )


def judge_prometheus(address: str, failure: PrometheusError | SettingsError) -> Line:
    """Return the line about a Prometheus that does not answer."""
    cause = failure.cause if isinstance(failure, PrometheusError) else str(failure)
    return error("prometheus", f"{address} does not answer queries: {cause}", _repair(failure))


def _repair(failure: PrometheusError | SettingsError) -> str:
    if isinstance(failure, SettingsError):
        return "correct the --prometheus flags"
    if failure.repair:
        return failure.repair
    if isinstance(failure, AuthenticationRefusedError):
        return "set credentials that it accepts: --prometheus-token-file, --prometheus-username or a client certificate"
    if isinstance(failure, PrometheusTimeoutError):
        return "check whether it is overloaded: `vector(1)` reads no data"
    if isinstance(failure, PrometheusUnreachableError):
        return (
            "check --prometheus-url, whether Prometheus runs, --prometheus-ca-file, and whether a NetworkPolicy keeps "
            "this pod from it"
        )
    return "check whether --prometheus-url is Prometheus's base URL, with the prefix of its API"
