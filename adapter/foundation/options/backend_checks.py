"""Checks of a Prometheus for `doctor` and `init`: whether it answers, and for which clusters it has series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.lines import Line, error, ok, unknown
from adapter.foundation.reports.stores import CLUSTERS, judge_clusters
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.queries.clusters import clusters_in
from adapter.foundation.sources.prometheus.queries.connection import check_connection

if TYPE_CHECKING:
    from adapter.foundation.options.found_prometheus import FoundPrometheus
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

BACKEND_SECONDS: Final = 5.0


def look_at_backend(name: str, settings: PrometheusSettings, whom: str) -> tuple[Line, ...]:
    """Check whether one of several Prometheus servers answers, and for which clusters it has series.

    `whom` says what selects the server: `entries` or `rules`.
    """
    line = f"prometheus/{name}"
    try:
        version = check_connection(settings, BACKEND_SECONDS)
    except (PrometheusError, SettingsError) as e:
        fix = f"correct the backend {name} in `prometheus`; only the {whom} that use it are affected"
        return (error(line, f"{settings.endpoint.shown} does not answer: {e}", fix),)
    answers = ok(line, f"{settings.endpoint.shown} answers queries (version {version})")
    return answers, *look_at_clusters(settings, f"{line}/clusters")


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


def look_at_clusters(settings: PrometheusSettings | None, name: str = CLUSTERS) -> tuple[Line, ...]:
    """Query Prometheus for the clusters whose series it has; return no line if no Prometheus is configured."""
    if settings is None:
        return ()
    try:
        found = clusters_in(settings, BACKEND_SECONDS)
    except (PrometheusError, SettingsError) as e:
        return (unknown(name, f"it is not known whether the store holds several clusters: {e}", "try again"),)
    return (replace(judge_clusters(found, str(settings.matchers or ""), "prometheus.matchers"), name=name),)
