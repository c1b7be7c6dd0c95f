"""Finds the Prometheus of a cluster if no address is given, and queries it through the API server's service proxy.

Port-forwarding, as by kubectl, needs a websocket for each connection; the service proxy is plain HTTP with the caller's
own credentials, and needs the right to `get` `services/proxy`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.options.prometheus import prometheus_matchers, prometheus_settings
from adapter.foundation.options.prometheus_services import PrometheusService, distinct_servers, prometheus_services
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.credentials.access import ProxyTarget, proxy_target
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from adapter.foundation.sources.prometheus.errors import AuthenticationRefusedError, PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from adapter.foundation.options.cluster import ClusterSettings
    from adapter.foundation.reports.questions import Ask
    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.sources.kubernetes.client import KubernetesClient

_GIVE: Final = "give its address with --prometheus-url"
_PROBE: Final = "vector(1)"
_PROBE_SECONDS: Final = 5.0
_AT_ONCE: Final = 8
_LISTED_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class FoundPrometheus:
    """A Prometheus server, and the way to query it from here."""

    settings: PrometheusSettings
    url: str
    """Its address for programs inside the cluster, without credentials."""
    is_behind_api_server: bool


def given_prometheus(values: FlagValues) -> FoundPrometheus:
    """Return the Prometheus that the flags name; raises UsageError."""
    settings = prometheus_settings(values)
    return FoundPrometheus(settings, settings.endpoint.shown, is_behind_api_server=False)


def find_prometheus(
    client: KubernetesClient, cluster: ClusterSettings, values: FlagValues, ask: Ask
) -> FoundPrometheus:
    """Return the one Prometheus that answers behind a Service, or the one that the user at the terminal chooses.

    Raises KubernetesError, and UsageError if no Prometheus answers or nobody chooses one of several.
    """
    listed = ObjectClient(client, _LISTED_SECONDS).get("/api/v1/services").document
    candidates = prometheus_services(listed.get("items") or ())
    if not candidates:
        raise UsageError(f"no Service of the cluster looks like Prometheus, Thanos, Mimir or VictoriaMetrics: {_GIVE}")
    kubeconfig = None if cluster.kubeconfig is None else str(cluster.kubeconfig)
    target = proxy_target(kubeconfig, cluster.context)
    matchers = prometheus_matchers(values)
    settings = {each: replace(_settings(target, each), matchers=matchers) for each in candidates}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        problems = dict(zip(candidates, threads.map(_problem, settings.values()), strict=True))
    found = distinct_servers(each for each, problem in problems.items() if not problem)
    if not found:
        first, problem = next(iter(problems.items()))
        raise UsageError(
            f"none of {len(candidates)} Services that look like Prometheus answers a query through the API server; "
            f"{first.namespace}/{first.name}: {problem}: {_GIVE}"
        )
    chosen = found[0] if len(found) == 1 else _ask_which(found, ask)
    return FoundPrometheus(settings[chosen], chosen.url, is_behind_api_server=True)


def _settings(target: ProxyTarget, service: PrometheusService) -> PrometheusSettings:
    try:
        return PrometheusSettings(
            url=f"{target.host}{service.proxy_path}",
            # For a POST, the proxy requires the right to `create`.
            verb="GET",
            ca_file=target.ca_file,
            client_cert_file=target.cert_file,
            client_key_file=target.key_file,
            headers=(("Authorization", target.authorization),) if target.authorization else (),
        )
    except SettingsError as error:
        raise UsageError(f"Prometheus cannot be looked up at the API server: {error}; {_GIVE}") from error


def _problem(settings: PrometheusSettings) -> str:
    """Return why this server cannot be used as a Prometheus; empty if it can."""
    try:
        with PrometheusClient(settings) as client:
            answer = client.instant(_PROBE, timeout_seconds=_PROBE_SECONDS)
            values = [sample.value for batch in answer.batches(UNPACED) for sample in batch]
    except AuthenticationRefusedError as error:
        return f"{error.cause} ({error.repair or 'the right to get services/proxy is needed'})"
    except (PrometheusError, SettingsError) as error:
        return error.cause if isinstance(error, PrometheusError) else str(error)
    return "" if values == [1.0] else f"{_PROBE} is {values}"


def _ask_which(found: list[PrometheusService], ask: Ask) -> PrometheusService:
    named = ", ".join(f"{number}: {each.namespace}/{each.name}" for number, each in enumerate(found, 1))
    numbers = {str(number): each for number, each in enumerate(found, 1)}
    answer = ask(
        f"Several Services answer as Prometheus ({named}). Which number?",
        lambda text: "" if text in numbers else f"write a number from 1 to {len(found)}",
    )
    if answer in numbers:
        return numbers[answer]
    choices = " or ".join(f"--prometheus-url {each.url}" for each in found)
    raise UsageError(f"several Services answer as Prometheus: choose one with {choices}")
