"""A cluster on the scripted API server, as the recommender's commands find it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import Resource
from tests.support.apiserver_kinds import DEPLOYMENTS
from tests.support.cluster_objects import autoscaler_object, node_object
from tests.support.object_apiserver import HPAS, ObjectApiServer
from tests.support.recommenders import Recommender, forked_recommender

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.apiserver_store import Json

NAMESPACE = "kube-system"
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "scaledobject", "ScaledObject", namespaced=True)
COREDNS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"}


def cluster_server(context: ssl.SSLContext | None = None) -> ObjectApiServer:
    """Return a server, with TLS if there is a context, on which HPAs are watched, with a Deployment of two replicas."""
    server = ObjectApiServer(context=context)
    server.watched.add(HPAS)
    deploy(server, "coredns", 2)
    return server


@contextmanager
def running(command: str, *flags: str, log_path: Path) -> Iterator[Recommender]:
    """Run a command as in a pod of the namespace `monitoring`; it is stopped at the end of the block."""
    environment = {"no_proxy": "*", "POD_NAMESPACE": "monitoring"}
    recommender = forked_recommender(log_path, command, *flags, environment=environment)
    with recommender.process:
        yield recommender


def deploy(server: ObjectApiServer, name: str, replicas: int) -> None:
    spec = {"replicas": replicas}
    server.objects.put(DEPLOYMENTS, NAMESPACE, name, {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec})


def replicas_of(server: ObjectApiServer, name: str = "coredns") -> int:
    replicas = server.objects.get_without_rights(DEPLOYMENTS, NAMESPACE, name)["spec"]["replicas"]
    assert isinstance(replicas, int)
    return replicas


def put_nodes(server: ObjectApiServer, number: int) -> None:
    """Give the cluster so many nodes, with four cores each."""
    present = {node["metadata"]["name"] for node in server.store.page(_resource(server, "nodes"), "", {})["items"]}
    wanted = {f"n{place}" for place in range(number)}
    for name in sorted(present - wanted):
        server.remove("nodes", "", name)
    for name in sorted(wanted - present):
        _put(server, "nodes", "", node_object(name))


def put_hpa(server: ObjectApiServer, name: str, **spec: object) -> None:
    """Put an HPA that scales CoreDNS into the cluster."""
    _put(server, "horizontalpodautoscalers", NAMESPACE, autoscaler_object(name, NAMESPACE, COREDNS, None, **spec))


def put_scaled_object(server: ObjectApiServer, name: str) -> None:
    """Install KEDA with a ScaledObject of CoreDNS, which has no HPA since it is paused."""
    if SCALED_OBJECTS not in server.resources:
        server.define(SCALED_OBJECTS)
    annotations = {"autoscaling.keda.sh/paused": "true"}
    metadata = {"namespace": NAMESPACE, "name": name, "labels": {}, "annotations": annotations}
    _put(server, "scaledobjects", NAMESPACE, {"metadata": metadata, "spec": {"scaleTargetRef": COREDNS}})


def _put(server: ObjectApiServer, plural: str, namespace: str, content: Json) -> None:
    metadata = content["metadata"]
    rest = {key: value for key, value in content.items() if key not in {"kind", "apiVersion", "metadata"}}
    server.store.put(_resource(server, plural), namespace, metadata["name"], metadata["labels"], rest)


def _resource(server: ObjectApiServer, plural: str) -> Resource:
    return next(resource for resource in server.resources if resource.plural == plural)
