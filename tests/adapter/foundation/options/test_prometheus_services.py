"""The Services that may be a Prometheus."""

from __future__ import annotations

import pytest

from adapter.foundation.options.prometheus_services import PrometheusService, distinct_servers, prometheus_services
from tests.support.prometheus_services import service

PROMETHEUS = {"app.kubernetes.io/name": "prometheus"}


@pytest.mark.parametrize(
    ("name", "ports", "labels", "urls"),
    [
        ("prometheus-kube-prometheus-prometheus", (9090, 8080), {}, ["http://{}.monitoring.svc:9090"]),
        ("prometheus-server", (80,), {}, ["http://{}.monitoring.svc:80"]),
        ("prometheus-operated", (9090,), {}, ["http://{}.monitoring.svc:9090"]),
        ("metrics-store", (9090,), PROMETHEUS, ["http://{}.monitoring.svc:9090"]),
        ("thanos-query", (9090, 10901), {}, ["http://{}.monitoring.svc:9090"]),
        ("mimir-query-frontend", (8080,), {}, ["http://{}.monitoring.svc:8080/prometheus"]),
        ("vmselect-main", (8481,), {}, ["http://{}.monitoring.svc:8481/select/0/prometheus"]),
        ("vmsingle-main", (8428,), {}, ["http://{}.monitoring.svc:8428"]),
        ("prometheus-tls", (443,), {}, ["https://{}.monitoring.svc:443"]),
        ("prometheus-node-exporter", (9100,), {}, []),
        ("web", (9090,), {}, []),
    ],
)
def test_a_service_is_recognised_by_its_name_labels_and_ports(
    name: str, ports: tuple[int, ...], labels: dict[str, str], urls: list[str]
) -> None:
    found = prometheus_services([service("monitoring", name, *ports, labels=labels)])

    assert [each.url for each in found] == [url.format(name) for url in urls]


def test_a_governing_service_counts_only_without_another_service_of_its_namespace() -> None:
    own, governing = PrometheusService("a", "prometheus-x", 9090), PrometheusService("a", "prometheus-operated", 9090)
    alone = PrometheusService("b", "prometheus-operated", 9090)

    assert distinct_servers([governing, own, alone]) == [own, alone]


def test_a_service_with_two_ports_that_answer_is_one_server() -> None:
    ports = [PrometheusService("a", "thanos-query", port) for port in (9090, 10902)]

    assert distinct_servers(ports) == ports[:1]
