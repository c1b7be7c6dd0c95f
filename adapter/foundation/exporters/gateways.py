"""Metrics of proxies and gateways in front of workloads: ingress-nginx, Envoy, Istio, Traefik and HAProxy."""

from __future__ import annotations

from typing import Final

from adapter.foundation.exporters.known_metrics import KnownMetric, MetricSubject, SeriesType, pod_metric

_OF_INGRESSES: Final = ("exported_namespace", "namespace")
_NO_INGRESS: Final = "send requests that match an Ingress: those of the default server name none"
_OF_PROXIES: Final = "scrape HAProxy's own exporter, whose series carry the label `proxy`"

GATEWAYS: Final = (
    KnownMetric(
        exporter="ingress-nginx",
        series="nginx_ingress_controller_requests",
        type=SeriesType.COUNTER,
        meaning="requests that the controller answered for an Ingress",
        subject=MetricSubject.INGRESS,
        namespace_labels=_OF_INGRESSES,
        object_labels=("ingress",),
        repair=_NO_INGRESS,
    ),
    KnownMetric(
        exporter="ingress-nginx",
        series="nginx_ingress_controller_requests",
        type=SeriesType.COUNTER,
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
        SeriesType.GAUGE,
        "open client connections of a controller's pod, websockets included",
        matchers='state="active"',
    ),
    pod_metric(
        "envoy",
        "envoy_http_downstream_cx_upgrades_active",
        SeriesType.GAUGE,
        "open connections that were upgraded, which websockets are",
        matchers='envoy_http_conn_manager_prefix!="admin"',
    ),
    pod_metric(
        "envoy",
        "envoy_http_downstream_cx_active",
        SeriesType.GAUGE,
        "open connections of clients",
        matchers='envoy_http_conn_manager_prefix!="admin"',
    ),
    pod_metric(
        "envoy",
        "envoy_http_downstream_rq_total",
        SeriesType.COUNTER,
        "requests of clients",
        matchers='envoy_http_conn_manager_prefix!="admin"',
    ),
    KnownMetric(
        exporter="envoy",
        series="envoy_cluster_upstream_rq_active",
        type=SeriesType.GAUGE,
        meaning="requests that a cluster of Envoy is answering",
        subject=MetricSubject.EXTERNAL,
        labels=("envoy_cluster_name",),
        repair="scrape Envoy's path /stats/prometheus, whose series carry the label `envoy_cluster_name`",
    ),
    KnownMetric(
        exporter="istio",
        series="istio_requests_total",
        type=SeriesType.COUNTER,
        meaning="requests that reached a Service, counted where they arrive",
        subject=MetricSubject.SERVICE,
        # The sidecar of the client counts the same requests.
        matchers='reporter="destination"',
        namespace_labels=("destination_service_namespace",),
        object_labels=("destination_service_name",),
        repair="keep Istio's labels `destination_service_namespace` and `destination_service_name`",
    ),
    KnownMetric(
        exporter="istio",
        series="istio_tcp_connections_opened_total",
        type=SeriesType.COUNTER,
        meaning="TCP connections that were opened to a Service",
        subject=MetricSubject.SERVICE,
        matchers='reporter="destination"',
        namespace_labels=("destination_service_namespace",),
        object_labels=("destination_service_name",),
        repair="keep Istio's labels `destination_service_namespace` and `destination_service_name`",
    ),
    KnownMetric(
        exporter="traefik",
        series="traefik_service_requests_total",
        type=SeriesType.COUNTER,
        meaning="requests that Traefik sent to one of its services",
        subject=MetricSubject.EXTERNAL,
        labels=("exported_service", "service"),
        repair="turn on `addServicesLabels` of Traefik's metrics for Prometheus",
    ),
    KnownMetric(
        exporter="traefik",
        series="traefik_service_open_connections",
        type=SeriesType.GAUGE,
        meaning="open connections of one of Traefik's services (version 2)",
        subject=MetricSubject.EXTERNAL,
        labels=("exported_service", "service", "protocol"),
        repair="turn on `addServicesLabels` of Traefik's metrics for Prometheus",
    ),
    KnownMetric(
        exporter="traefik",
        series="traefik_open_connections",
        type=SeriesType.GAUGE,
        meaning="open connections of an entry point (version 3)",
        subject=MetricSubject.EXTERNAL,
        labels=("entrypoint", "protocol"),
        repair="turn on `addEntryPointsLabels` of Traefik's metrics for Prometheus",
    ),
    KnownMetric(
        exporter="haproxy",
        series="haproxy_backend_current_sessions",
        type=SeriesType.GAUGE,
        meaning="open sessions of a backend",
        subject=MetricSubject.EXTERNAL,
        labels=("proxy", "backend"),
        repair=_OF_PROXIES,
    ),
    KnownMetric(
        exporter="haproxy",
        series="haproxy_backend_current_queue",
        type=SeriesType.GAUGE,
        meaning="requests that wait for a server of a backend",
        subject=MetricSubject.EXTERNAL,
        labels=("proxy", "backend"),
        repair=_OF_PROXIES,
    ),
    KnownMetric(
        exporter="haproxy",
        series="haproxy_backend_http_requests_total",
        type=SeriesType.COUNTER,
        meaning="HTTP requests of a backend",
        subject=MetricSubject.EXTERNAL,
        labels=("proxy", "backend"),
        repair=_OF_PROXIES,
    ),
)
"""The metrics, in the order in which a rule file lists them."""
