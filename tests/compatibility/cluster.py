"""The objects of the cluster that all cases ask about."""

from __future__ import annotations

from typing import Any

from tests.support.serving import listed, pod


def _object(kind: str, api_version: str, name: str, namespace: str | None = None, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


_TOPICS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kafkatopics.messaging.example.com"},
    "spec": {
        "group": "messaging.example.com",
        "names": {"plural": "kafkatopics", "singular": "kafkatopic", "kind": "KafkaTopic"},
        "scope": "Namespaced",
        "versions": [{"name": "v1beta2", "served": True, "storage": True}],
    },
}

OBJECTS: dict[str, Any] = {
    "objects.json": listed(
        pod("web-0", app="web"),
        pod("web-1", app="web"),
        pod("db-0", app="db"),
        pod("idle-0", app="idle"),
        pod("web-0", namespace="other", app="web"),
        _object("Deployment", "apps/v1", "web", "shop", tier="front"),
        _object("Deployment", "apps/v1", "db", "shop", tier="back"),
        _object("Service", "v1", "front", "shop"),
        _object("Ingress", "networking.k8s.io/v1", "front", "shop"),
        _TOPICS,
        _object("KafkaTopic", "messaging.example.com/v1beta2", "orders", "shop"),
        _object("PersistentVolume", "v1", "v2"),
        _object("StorageClass", "storage.k8s.io/v1", "fast"),
        _object("Node", "v1", "n1", zone="a"),
        _object("Node", "v1", "n2", zone="b"),
        _object("Namespace", "v1", "shop", team="sales"),
        _object("Namespace", "v1", "other", team="ops"),
    )
}
"""`idle-0` has no series anywhere."""
