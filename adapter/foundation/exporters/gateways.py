"""Metrics of proxies and gateways in front of workloads: ingress-nginx, Envoy, Istio, Traefik and HAProxy."""

from __future__ import annotations

from typing import Final

from adapter.foundation.exporters.known_metrics import (
    KnownMetric,
    MetricSubject,
    SeriesType,
    external_metrics,
    pod_metric,
)

_COUNTER, _GAUGE = SeriesType.COUNTER, SeriesType.GAUGE
_OF_INGRESSES: Final = ("exported_namespace", "namespace")
_NO_INGRESS: Final = "send requests that match an Ingress: those of the default server name none"
_NOT_OF_ENVOY_ITSELF: Final = 'envoy_http_conn_manager_prefix!="admin"'


def _istio_metric(series: str, meaning: str) -> KnownMetric:
    return KnownMetric(
        exporter="istio",
        series=series,
        type=_COUNTER,
        meaning=meaning,
        subject=MetricSubject.SERVICE,
        # The sidecar of the client counts the same requests.
        matchers='reporter="destination"',
        namespace_labels=("destination_service_namespace",),
        object_labels=("destination_service_name",),
        repair="keep Istio's labels `destination_service_namespace` and `destination_service_name`",
    )


GATEWAYS: Final = (
    KnownMetric(
        exporter="ingress-nginx",
        series="nginx_ingress_controller_requests",
        type=_COUNTER,
        meaning="requests that the controller answered for an Ingress",
        subject=MetricSubject.INGRESS,
        namespace_labels=_OF_INGRESSES,
        object_labels=("ingress",),
        repair=_NO_INGRESS,
    ),
    KnownMetric(
        exporter="ingress-nginx",
        series="nginx_ingress_controller_requests",
        type=_COUNTER,
        meaning="requests that the controller sent to a Service",
        subject=MetricSubject.SERVICE,
        served_as="nginx_ingress_controller_service_requests_per_second",
        namespace_labels=_OF_INGRESSES,
        object_labels=("exported_service", "service"),
        repair=_NO_INGRESS,
    ),
    pod_metric(
        "ingress-nginx",
        "nginx_ingress_controller_nginx_process_connections",
        _GAUGE,
        "open client connections of a controller's pod, websockets included",
        'state="active"',
    ),
    *(
        pod_metric("envoy", series, kind, meaning, _NOT_OF_ENVOY_ITSELF)
        for series, kind, meaning in (
            (
                "envoy_http_downstream_cx_upgrades_active",
                _GAUGE,
                "open connections that were upgraded, which websockets are",
            ),
            ("envoy_http_downstream_cx_active", _GAUGE, "open connections of clients"),
            ("envoy_http_downstream_rq_total", _COUNTER, "requests of clients"),
        )
    ),
    *external_metrics(
        "envoy",
        ("envoy_cluster_name",),
        "scrape Envoy's path /stats/prometheus, whose series carry the label `envoy_cluster_name`",
        ("envoy_cluster_upstream_rq_active", _GAUGE, "requests that a cluster of Envoy is answering"),
    ),
    _istio_metric("istio_requests_total", "requests that reached a Service, counted where they arrive"),
    _istio_metric("istio_tcp_connections_opened_total", "TCP connections that were opened to a Service"),
    *external_metrics(
        "traefik",
        ("exported_service", "service"),
        "turn on `addServicesLabels` of Traefik's metrics for Prometheus",
        ("traefik_service_requests_total", _COUNTER, "requests that Traefik sent to one of its services"),
    ),
    *external_metrics(
        "traefik",
        ("exported_service", "service", "protocol"),
        "turn on `addServicesLabels` of Traefik's metrics for Prometheus",
        ("traefik_service_open_connections", _GAUGE, "open connections of one of Traefik's services (version 2)"),
    ),
    *external_metrics(
        "traefik",
        ("entrypoint", "protocol"),
        "turn on `addEntryPointsLabels` of Traefik's metrics for Prometheus",
        ("traefik_open_connections", _GAUGE, "open connections of an entry point (version 3)"),
    ),
    *external_metrics(
        "haproxy",
        ("proxy", "backend"),
        "scrape HAProxy's own exporter, whose series carry the label `proxy`",
        ("haproxy_backend_current_sessions", _GAUGE, "open sessions of a backend"),
        ("haproxy_backend_current_queue", _GAUGE, "requests that wait for a server of a backend"),
        ("haproxy_backend_http_requests_total", _COUNTER, "HTTP requests of a backend"),
    ),
)
"""The metrics, in the order in which a rule file lists them."""
