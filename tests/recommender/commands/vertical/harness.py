"""A scripted API server with one Deployment whose container is resized, and a client of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from tests.support.apiserver_kinds import DEPLOYMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.object_apiserver import ObjectApiServer

NAMESPACE = "kube-system"
NAME = "thing"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def deployment_of(server: ObjectApiServer, **resources: dict[str, str]) -> None:
    """Put a Deployment with two containers into the cluster, of which `main` has the given resources."""
    containers = [
        {"name": "main", "image": "i", "resources": resources},
        {"name": "other", "image": "i", "resources": {"requests": {"cpu": "1"}}},
    ]
    spec = {"template": {"spec": {"containers": containers}}}
    server.objects.put(DEPLOYMENTS, NAMESPACE, NAME, {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec})


def resources_of(server: ObjectApiServer) -> dict[str, Any]:
    """Return the resources of `main`, having checked that the other container is unchanged."""
    found = server.objects.get_without_rights(DEPLOYMENTS, NAMESPACE, NAME)
    main, other = found["spec"]["template"]["spec"]["containers"]
    assert other["resources"] == {"requests": {"cpu": "1"}}
    assert main["image"] == "i"
    resources: dict[str, Any] = main["resources"]
    return resources


def client_of(server: ObjectApiServer, folder: Path) -> KubernetesClient:
    return KubernetesClient(from_kubeconfig(str(server.kubeconfig(folder / "kubeconfig"))))


def patches(server: ObjectApiServer) -> int:
    """Return how many patches were sent."""
    return sum(1 for request in server.requests if request.verb == "PATCH")
