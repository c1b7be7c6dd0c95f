"""The Prometheus and the cluster that the flags name, for commands that need no configuration file."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.options.backend_checks import refuse_several_clusters
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.options.found_prometheus import FoundPrometheus, find_prometheus, given_prometheus
from adapter.foundation.reports.questions import ask_on_terminal
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.prometheus.queries.budget import Budgeted, Prometheus
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.commands.init.proposing import Surroundings, look_around

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.sources.kubernetes.client import KubernetesClient

_ALL_QUERIES_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True)
class AskedSources:
    """The Prometheus and the cluster that the flags name, and the facts found there."""

    prometheus: FoundPrometheus
    queries: Prometheus
    seen: Surroundings


@contextmanager
def asked_sources(values: FlagValues) -> Iterator[AskedSources]:
    """Yield the sources that the flags name, and the facts on which recommendations are based.

    Raises UsageError, SettingsError, PrometheusError, KubernetesError and ClusterFilesError.
    """
    client = _client(values)
    found = _prometheus(values, client)
    with PrometheusClient(found.settings) as prometheus:
        refuse_several_clusters(found)
        queries = Budgeted(prometheus, _ALL_QUERIES_SECONDS)
        seen = look_around(queries, values.path("cluster"), client)
        yield AskedSources(found, queries, seen)


def _client(values: FlagValues) -> KubernetesClient | None:
    """Return a client of the cluster if one is named, or if it is needed to find Prometheus. Raises UsageError."""
    settings = cluster_settings(values)
    has_url = "prometheus-url" in values.given
    if not settings.is_named and has_url:
        return None
    if settings.is_named and has_url and values.path("cluster") is not None:
        raise UsageError("--cluster replaces the cluster: leave --kubeconfig and --context out, or --cluster")
    try:
        return kubernetes_client(settings)
    except KubernetesError as error:
        raise UsageError(f"{error}; or give --prometheus-url to do without a cluster") from error


def _prometheus(values: FlagValues, client: KubernetesClient | None) -> FoundPrometheus:
    if "prometheus-url" in values.given:
        return given_prometheus(values)
    assert client is not None, "without --prometheus-url, a cluster is always asked"
    try:
        return find_prometheus(client, cluster_settings(values), values, ask_on_terminal)
    except KubernetesError as error:
        raise UsageError(f"{error}; or give --prometheus-url to do without a cluster") from error
