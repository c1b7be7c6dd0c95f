"""A namespace with a Deployment of two pods, its HPA, and what the APIs answer about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.recommender.kubectl.conftest import Plugin

HPA = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web"
HPAS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web"
KEDA = "/apis/keda.sh"
SCALED_OBJECTS = f"{KEDA}/v1alpha1/namespaces/shop/scaledobjects"
SCALE = f"{DEPLOYMENT}/scale"
PODS = "/api/v1/namespaces/shop/pods"
EVENTS = "/api/v1/namespaces/shop/events"
RECOMMENDERS = "/api/v1/pods"
PAGE = "/api/v1/namespaces/monitoring/pods/http:recommender-0:8081/proxy/api/v1/recommendations"
CUSTOM = "/apis/custom.metrics.k8s.io"
CONNECTIONS = f"{CUSTOM}/v1beta2/namespaces/shop/pods/%2A/connections"
NAMESPACE_REQUESTS = f"{CUSTOM}/v1beta2/namespaces/shop/metrics/requests"
QUEUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue"
USAGE = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def pods_metric(average: str = "100") -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Pods", "pods": {"metric": {"name": "connections"}, "target": target}}


def queue_metric(average: str = "10") -> dict[str, Any]:
    metric = {"name": "queue", "selector": {"matchLabels": {"queue": "mail"}}}
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "External", "external": {"metric": metric, "target": target}}


def namespace_metric(namespace: str, average: str = "10") -> dict[str, Any]:
    described = {"apiVersion": "v1", "kind": "Namespace", "name": namespace}
    target = {"type": "AverageValue", "averageValue": average}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": "requests"}, "target": target},
    }


def cpu_metric(percent: int = 50, container: str = "") -> dict[str, Any]:
    source: dict[str, Any] = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    if container:
        return {"type": "ContainerResource", "containerResource": {**source, "container": container}}
    return {"type": "Resource", "resource": source}


def put_hpa(plugin: Plugin, *metrics: Mapping[str, Any], **spec: object) -> None:
    conditions = [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "all is well"}]
    document = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 10,
            "metrics": list(metrics),
            **spec,
        },
        "status": {"conditions": conditions},
    }
    plugin.answer(HPA, document)
    plugin.answer(HPAS, {"items": [document]})


def pod(name: str, *, node: str = "node-1", **status: object) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    sidecar = {"name": "proxy", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [container, sidecar], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": conditions, **status},
    }


def put_workload(plugin: Plugin, replicas: int = 2) -> None:
    metadata = {"name": "web", "namespace": "shop"}
    writer = {
        "manager": "kube-controller-manager",
        "subresource": "scale",
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    status = {"replicas": replicas, "readyReplicas": replicas, "selector": "app=web"}
    deployment = {"metadata": {**metadata, "managedFields": [writer]}, "spec": {"replicas": replicas}, "status": status}
    plugin.answer(DEPLOYMENT, deployment)
    plugin.answer(SCALE, {"metadata": metadata, "spec": {"replicas": replicas}, "status": status})
    plugin.answer(PODS, {"items": [pod(f"web-{number}") for number in range(replicas)]})
    plugin.answer(EVENTS, {"items": []})
    plugin.answer(CUSTOM, {"versions": [{"version": "v1beta2"}, {"version": "v1beta1"}]})


def put_connections(plugin: Plugin, *values: str) -> None:
    items = [
        {"describedObject": {"name": f"web-{number}"}, "value": value, "timestamp": now()}
        for number, value in enumerate(values)
    ]
    plugin.answer(CONNECTIONS, {"items": items})


def put_usage(plugin: Plugin, main: str, proxy: str, pods: Sequence[str] = ("web-0", "web-1")) -> None:
    containers = [{"name": "main", "usage": {"cpu": main}}, {"name": "proxy", "usage": {"cpu": proxy}}]
    items = [
        {"metadata": {"name": name}, "timestamp": now(), "window": "30s", "containers": containers} for name in pods
    ]
    plugin.answer(USAGE, {"items": items})


def put_recommender(plugin: Plugin, *items: Mapping[str, Any]) -> None:
    ports = [{"name": "page", "containerPort": 8081}]
    metadata = {"name": "recommender-0", "namespace": "monitoring"}
    found = {"metadata": metadata, "spec": {"containers": [{"ports": ports}]}}
    plugin.answer(RECOMMENDERS, {"items": [found]})
    plugin.answer(PAGE, {"kind": "RecommendationList", "items": list(items)})


def recommendation(action: str = "scale", owner: str | None = None) -> dict[str, Any]:
    target = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "shop",
        "name": "web",
        "current_replicas": 2,
        "recommended_replicas": 5,
        "action": action,
        "owner": owner,
        "message": None,
    }
    steps = [{"step": "nodes", "value": 9, "detail": "9 nodes"}, {"step": "max", "value": 5, "detail": "at most 5"}]
    return {
        "name": "web",
        "type": "proportional",
        "status": "ok",
        "message": "",
        "steps": steps,
        "binding": "max",
        "targets": [target],
    }


def cluster_size() -> dict[str, Any]:
    group = {"name": "pool-a", "current": 3, "recommended": 3, "reason": "at its maximum of 3"}
    stuck = {"pod": "shop/web-9", "groups": {"pool-b": "insufficient cpu"}, "reason": "no group has room for it"}
    return {
        "name": "nodes",
        "type": "clusterSize",
        "status": "ok",
        "message": "",
        "steps": [],
        "binding": None,
        "targets": [],
        "node_groups": [group],
        "unschedulable": [stuck],
        "waiting": ["shop/web-8"],
    }
