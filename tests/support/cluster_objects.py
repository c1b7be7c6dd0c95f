"""Kubernetes objects as the API server sends them, with the parts that the facts of a cluster are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json: TypeAlias = "dict[str, Any]"


def metadata_of(name: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Json:
    return {"name": name} | ({"namespace": namespace} if namespace else {}) | ({"labels": dict(labels or {})})


def node_object(
    name: str,
    cpu: object = "4",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    ready: str = "True",
    heartbeat: str = "2026-11-22T06:00:00Z",
) -> Json:
    """Return a node; `taints` are keys, and `cpu` is the allocatable amount, half a core less than the capacity."""
    spec: Json = {"podCIDR": "10.0.0.0/24"}
    if unschedulable:
        spec["unschedulable"] = True
    if taints:
        spec["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata_of(name, labels=labels) | {"creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": spec,
        "status": {
            "capacity": {"cpu": "4500m", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": cpu, "memory": "15Gi", "pods": "110"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": heartbeat},
                {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat},
            ],
            "images": [{"names": ["registry/image:1"], "sizeBytes": 1000}],
        },
    }


def autoscaler_object(
    name: str, namespace: str, target: Mapping[str, str], labels: Mapping[str, str] | None = None, **spec: object
) -> Json:
    """Return an HPA; `target` is its `scaleTargetRef`, and `spec` adds to its spec or replaces a part of it."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata_of(name, namespace, labels),
        "spec": {"scaleTargetRef": dict(target), "maxReplicas": 10} | spec,
        "status": {"currentReplicas": 3},
    }


def slice_object(name: str, namespace: str, service: str | None, endpoints: Sequence[Json], app: str = "web") -> Json:
    labels = {"app": app} | ({"kubernetes.io/service-name": service} if service else {})
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata_of(name, namespace, labels),
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"port": 8080}],
    }


def endpoint(*addresses: str, ready: bool | None = True) -> Json:
    conditions = {} if ready is None else {"ready": ready}
    return {"addresses": list(addresses), "conditions": conditions}


def plain_object(kind: str, name: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Json:
    """Return a Pod, Service or Namespace."""
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata_of(name, namespace, labels), "spec": {}}


def pod_object(
    name: str,
    namespace: str = "shop",
    node: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
    phase: str = "Running",
    bound: str | None = "2026-11-22T05:00:00Z",
    ended: str | None = None,
    owner: tuple[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> Json:
    """Return a whole Pod of one container; `owner` is its controller's kind and name, and `spec` adds to its spec."""
    kind, owned_by = owner or ("", "")
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    reference = {"apiVersion": api_version, "kind": kind, "name": owned_by, "uid": f"uid-{owned_by}"}
    metadata = metadata_of(name, namespace, labels) | {
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": dict(annotations or {"note": "x"}),
        "ownerReferences": [reference | {"controller": True}] if owner else [],
    }
    resources = {"requests": dict(requests or {}), "limits": dict(limits or {})}
    status: Json = {"phase": phase, "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]}
    if node and bound:
        status["conditions"].append({"type": "PodScheduled", "status": "True", "lastTransitionTime": bound})
    if ended:
        status["containerStatuses"] = [{"name": "c", "state": {"terminated": {"finishedAt": ended, "exitCode": 0}}}]
    placed = {"nodeName": node} if node else {}
    containers = [{"name": "c", "image": "image:1", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, "priority": 0} | placed | spec,
        "status": status,
    }


def selecting_object(kind: str, name: str, selector: Mapping[str, object] | None, **spec: object) -> Json:
    """Return a Service, ReplicationController, ReplicaSet or StatefulSet in the namespace `shop`."""
    api_version = "v1" if kind in {"Service", "ReplicationController"} else "apps/v1"
    metadata = metadata_of(name, "shop") | {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    selecting = {} if selector is None else {"selector": dict(selector)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": selecting | spec}


def list_object(*items: Json) -> Json:
    """Return several objects as `kubectl get … -o json` prints them."""
    return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": ""}, "items": list(items)}
