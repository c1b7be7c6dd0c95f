"""The names that a container of the stand-in can resolve."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.controlplane.kubelet.names import host_lines


def service(address: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "monitoring", "name": "prometheus"}, "spec": {"clusterIP": address}}


def endpoints(namespace: str = "monitoring", name: str = "prometheus") -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": "x", "labels": {"kubernetes.io/service-name": name}}
    return {"metadata": metadata, "endpoints": [{"addresses": ["10.99.0.1"]}, {"addresses": ["10.99.0.2"]}]}


NAMES = "prometheus.monitoring prometheus.monitoring.svc prometheus.monitoring.svc.cluster.local"


@pytest.mark.parametrize(
    ("address", "found", "lines"),
    [
        ("None", endpoints(), [f"10.99.0.1 {NAMES}", f"10.99.0.2 {NAMES}"]),
        ("10.96.0.7", endpoints(), []),
        ("None", endpoints(namespace="other"), []),
        ("None", endpoints(name="other"), []),
        ("None", {"metadata": {"namespace": "monitoring", "name": "x"}, "endpoints": None}, []),
    ],
)
def test_only_names_of_headless_services_are_resolved(address: str, found: dict[str, Any], lines: list[str]) -> None:
    assert list(host_lines([service(address)], [found])) == lines
