"""Services of a cluster that may be a Prometheus, found by the names, labels and ports that charts give them (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

GOVERNING: Final = "prometheus-operated"
"""The Service that Prometheus Operator creates for the pods of all Prometheus objects of a namespace."""
_APPLICATION_LABELS: Final = ("app.kubernetes.io/name", "app", "app.kubernetes.io/component")


@dataclass(frozen=True, slots=True)
class _KnownServer:
    """How to recognize the Services of a server that has Prometheus's API."""

    name: re.Pattern[str]
    """Matches a part of the Service's name, or the whole value of one of `_APPLICATION_LABELS`."""
    ports: frozenset[int]
    prefix: str = ""
    """Path prefix of Prometheus's API."""


@dataclass(frozen=True, slots=True, order=True)
class PrometheusService:
    """A port of a Service that may answer as Prometheus."""

    namespace: str
    name: str
    port: int
    scheme: str = "http"
    prefix: str = ""

    @property
    def url(self) -> str:
        """The address for programs in the cluster."""
        return f"{self.scheme}://{self.name}.{self.namespace}.svc:{self.port}{self.prefix}"

    @property
    def proxy_path(self) -> str:
        """The path at the API server that proxies to this port."""
        service = f"{self.scheme}:{self.name}:{self.port}"
        return f"/api/v1/namespaces/{self.namespace}/services/{service}/proxy{self.prefix}"


_KNOWN: Final = (
    _KnownServer(re.compile(r"vmselect"), frozenset({8481}), "/select/0/prometheus"),
    _KnownServer(re.compile(r"vmsingle|victoria-metrics-single"), frozenset({8428, 8429})),
    _KnownServer(re.compile(r"mimir.*(?:query-frontend|nginx|gateway)|mimir"), frozenset({80, 8080}), "/prometheus"),
    _KnownServer(re.compile(r"thanos.*query|thanos-querier"), frozenset({80, 443, 9090, 9091, 10902})),
    _KnownServer(re.compile(r"prometheus"), frozenset({80, 443, 9090, 9091})),
)
"""The known servers; the first entry that matches a Service applies."""


def prometheus_services(services: Iterable[Mapping[str, Any]]) -> list[PrometheusService]:
    """Return the ports to try, from Services as the API server lists them."""
    return sorted({port for service in services for port in _ports(service)})


def distinct_servers(answering: Iterable[PrometheusService]) -> list[PrometheusService]:
    """Return the first port of each Service that answers, but governing Services only if the namespace has no other."""
    by_service: dict[tuple[str, str], PrometheusService] = {}
    for found in sorted(answering):
        by_service.setdefault((found.namespace, found.name), found)
    named = {namespace for namespace, name in by_service if name != GOVERNING}
    return [each for (space, name), each in by_service.items() if name != GOVERNING or space not in named]


def _ports(service: Mapping[str, Any]) -> Iterator[PrometheusService]:
    metadata, spec = service.get("metadata") or {}, service.get("spec") or {}
    labels = metadata.get("labels") or {}
    known = _known_server(str(metadata.get("name", "")), [str(labels.get(label, "")) for label in _APPLICATION_LABELS])
    if known is None or spec.get("type") == "ExternalName":
        return
    for port in spec.get("ports") or ():
        number = port.get("port")
        if number in known.ports and port.get("protocol", "TCP") == "TCP":
            is_tls = number == 443 or "https" in (port.get("name"), port.get("appProtocol"))
            yield PrometheusService(
                metadata["namespace"], metadata["name"], number, "https" if is_tls else "http", known.prefix
            )


def _known_server(name: str, labels: list[str]) -> _KnownServer | None:
    return next(
        (known for known in _KNOWN if known.name.search(name) or any(map(known.name.fullmatch, labels))),
        None,
    )
