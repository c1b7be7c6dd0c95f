"""Deployments with a real HorizontalPodAutoscaler each, and the observed actions of its controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from tests.e2e.controlplane.audit import AuditTail
from tests.e2e.support.installed import CUSTOM, EXTERNAL, RESOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.controlplane.audit import AuditEvent
    from tests.e2e.controlplane.client import Document, Reply
    from tests.e2e.controlplane.cluster import Cluster

CONTROLLER: Final = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
QUICK: Final[Mapping[str, Any]] = {
    "scaleUp": {"stabilizationWindowSeconds": 0},
    "scaleDown": {"stabilizationWindowSeconds": 0},
}
"""A behaviour without look-back: a wrong number has its effect at once, and is not hidden for five minutes."""

_DESCRIBED: Final = {
    "Service": ("v1", "services"),
    "Deployment": ("apps/v1", "deployments.apps"),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses.storage.k8s.io"),
}
"""The API version of each kind that an Object metric may describe, and its plural in paths."""
_SYNC_SECONDS: Final = 90.0
"""How long one sync of the controller may take to come on a busy machine."""


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """One Deployment and its HPA, which share a name."""

    namespace: str
    name: str
    metric: Document
    """An entry of the HPA's `spec.metrics`."""
    replicas: int = 2
    """The replicas with which the Deployment starts."""
    minimum: int = 1
    maximum: int = 10
    behaviour: Mapping[str, Any] | None = field(default_factory=lambda: QUICK)
    requests: Mapping[str, str] | None = None
    """The requests of each pod's container."""
    further: tuple[Document, ...] = ()
    """Entries of the HPA's `spec.metrics` after the first."""

    @property
    def uri(self) -> str:
        """Return the request that the controller sends in each sync, decoded."""
        kind = self.metric["type"].lower()
        of = self.metric[kind]
        if kind == "resource":
            return f"{RESOURCE}/namespaces/{self.namespace}/pods?labelSelector=app={self.name}"
        metric = of["metric"]["name"]
        if kind == "pods":
            return f"{CUSTOM}/namespaces/{self.namespace}/pods/*/{metric}?labelSelector=app={self.name}"
        if kind == "external":
            selector = ",".join(f"{key}={value}" for key, value in of["metric"]["selector"]["matchLabels"].items())
            return f"{EXTERNAL}/namespaces/{self.namespace}/{metric}?labelSelector={selector}"
        described = of["describedObject"]
        resource = _DESCRIBED[described["kind"]][1]
        return f"{CUSTOM}/namespaces/{self.namespace}/{resource}/{described['name']}/{metric}"

    @property
    def documents(self) -> tuple[Document, Document]:
        """Return the Deployment and the HPA."""
        labels = {"app": self.name}
        container = {"name": "main", "image": "shop/web:1"} | self._resources
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        metadata = {"name": self.name, "namespace": self.namespace}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": self.replicas, "selector": {"matchLabels": labels}, "template": template},
        }
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name},
            "minReplicas": self.minimum,
            "maxReplicas": self.maximum,
            "metrics": [self.metric, *self.further],
        } | ({} if self.behaviour is None else {"behavior": dict(self.behaviour)})
        hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
        return deployment, hpa

    @property
    def _resources(self) -> Document:
        return {"resources": {"requests": dict(self.requests)}} if self.requests else {}


def pods_metric(name: str, average: str) -> Document:
    """Return an entry of `spec.metrics` with an average for each pod."""
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": average}},
    }


def resource_metric(name: str, **target: str | int) -> Document:
    """Return an entry for `cpu` or `memory`; `target` is `averageValue` or `averageUtilization`."""
    ((key, amount),) = target.items()
    kind = {"averageValue": "AverageValue", "averageUtilization": "Utilization"}[key]
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, key: amount}}}


def object_metric(name: str, kind: str, of: str, **target: str) -> Document:
    """Return an entry for one Service, Deployment or StorageClass; `target` is `value` or `averageValue`."""
    described = {"apiVersion": _DESCRIBED[kind][0], "kind": kind, "name": of}
    return {
        "type": "Object",
        "object": {"metric": {"name": name}, "describedObject": described, "target": _target(target)},
    }


def external_metric(name: str, labels: Mapping[str, str], **target: str) -> Document:
    """Return an entry for the series with these labels; `target` is `value` or `averageValue`."""
    metric = {"name": name, "selector": {"matchLabels": dict(labels)}}
    return {"type": "External", "external": {"metric": metric, "target": _target(target)}}


def service(namespace: str, name: str) -> Document:
    """Return a Service that an Object metric can describe; nothing listens behind it."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _target(target: Mapping[str, str]) -> Document:
    ((key, amount),) = target.items()
    return {"type": key[0].upper() + key[1:], key: amount}


class Autoscalers:
    """All autoscalers of one namespace, and what has been observed of them since they were made."""

    def __init__(self, cluster: Cluster, namespace: str, *autoscalers: Autoscaler) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.all = {one.name: one for one in autoscalers}
        self.syncs: dict[str, list[AuditEvent]] = {name: [] for name in self.all}
        """The controller's requests for metrics, one in each sync."""
        self._tail = AuditTail(cluster.plane.audit_log)
        self._by_uri = {one.uri: one.name for one in autoscalers}

    def create_deployments(self) -> None:
        """Make the Deployments without HPAs; return when their pods are Ready."""
        self.cluster.apply(*(one.documents[0] for one in self.all.values()))
        for name, one in self.all.items():
            if one.replicas:
                self.cluster.wait_until_ready(self.namespace, name)

    def create_hpas(self) -> None:
        """Make the HPAs, so that the controller starts its work."""
        self.cluster.apply(*(one.documents[1] for one in self.all.values()))

    def look(self) -> dict[str, int]:
        """Read the new syncs, and return the sizes that are wanted now (`spec.replicas`)."""
        self.take_syncs_in()
        return self.sizes()

    def take_syncs_in(self) -> None:
        """Read the new syncs."""
        for event in self._tail.read():
            if event.user == CONTROLLER and (name := self._by_uri.get(unquote(event.uri))) is not None:
                self.syncs[name].append(event)

    def sizes(self) -> dict[str, int]:
        """Return the sizes that are wanted now (`spec.replicas`), by the Deployments' names."""
        found = self.cluster.client.items(f"/apis/apps/v1/namespaces/{self.namespace}/deployments")
        return {one["metadata"]["name"]: one["spec"]["replicas"] for one in found}

    def wait_for_sizes(self, **sizes: int) -> None:
        """Wait until the controller has set these sizes and all pods exist."""

        def reached() -> bool:
            found = self.look()
            return all(found[name] == size for name, size in sizes.items())

        self.cluster.wait_for(f"sizes {sizes}", reached, _SYNC_SECONDS, why_not=self.states)
        for name, size in sizes.items():
            if size:
                self.cluster.wait_until_ready(self.namespace, name)

    def ask(self, one: Autoscaler) -> Reply:
        """Send the controller's request as an administrator."""
        path, _, selector = one.uri.partition("?labelSelector=")
        return self.cluster.client.ask("GET", path, query={"labelSelector": selector} if selector else {})

    def wait_for_answers(self) -> None:
        """Wait until every metric has a value, so that no first sync fails."""

        def without() -> list[str]:
            replies = {one.uri: self.ask(one) for one in self.all.values()}
            return [uri for uri, reply in replies.items() if reply.status != 200 or not reply.document["items"]]

        self.cluster.wait_for("a value of every metric", lambda: not without(), _SYNC_SECONDS, why_not=without)

    def wait_for_syncs(self, count: int) -> None:
        """Wait until each HPA has been synced this many times from now, and the controller has acted on it."""
        self.look()
        # The first may have begun before the call; a sync acts after its request, so one more has to begin.
        wanted = {name: len(seen) + count + 1 for name, seen in self.syncs.items()}

        def came() -> bool:
            self.look()
            return all(len(self.syncs[name]) >= number for name, number in wanted.items())

        self.cluster.wait_for(f"{count} syncs", came, _SYNC_SECONDS + 15.0 * count, why_not=self.states)

    def hpa(self, name: str) -> Document:
        """Return an HPA in its current state."""
        return self.cluster.client.get(
            f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers/{name}"
        )

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition of an HPA."""
        found = self.hpa(name).get("status", {}).get("conditions") or []
        return {one["type"]: (one["status"], one["reason"]) for one in found}

    def states(self) -> dict[str, object]:
        """Return the states for error messages: sizes, and each HPA's status."""
        return {"sizes": self.sizes()} | {name: self.hpa(name).get("status") for name in self.all}
