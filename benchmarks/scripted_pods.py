"""Whole pods, services and ReplicaSets of the scripted cluster, of the size that real ones have."""

from __future__ import annotations

from typing import Any

PODS_OF_AN_APP = 50
_NAMESPACES = 500
_REQUESTS = ({"cpu": "250m", "memory": "512Mi"}, {"cpu": "100m", "memory": "128Mi"})
_LIMITS = ({"cpu": "1", "memory": "1Gi"}, {"memory": "256Mi"})
_CREATED = "2025-01-01T00:00:00Z"


def whole_pod(number: int, node_name: str) -> dict[str, Any]:
    """Return a running pod with two containers, bound long ago."""
    app = number // PODS_OF_AN_APP
    return {
        "metadata": {
            "name": f"app-{app}-{app:010d}-{number % PODS_OF_AN_APP:05d}",
            "namespace": _namespace(app),
            "uid": f"{number:036d}",
            "resourceVersion": "1",
            "creationTimestamp": _CREATED,
            "labels": _labels(app) | {"pod-template-hash": f"{app:010d}"},
            "annotations": {"checksum/config": "a" * 64, "prometheus.io/scrape": "true"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"app-{app}-{app:010d}",
                    "uid": f"{app:036d}",
                    "controller": True,
                }
            ],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": _managed()}],
        },
        "spec": {
            "nodeName": node_name,
            "schedulerName": "default-scheduler",
            "priority": 0,
            "containers": [
                {
                    "name": f"container-{place}",
                    "image": f"registry.example.com/team/image-{app}@sha256:{'b' * 64}",
                    "resources": {"requests": _REQUESTS[place], "limits": _LIMITS[place]},
                    "env": [{"name": f"VARIABLE_{key}", "value": f"value-{key}"} for key in range(12)],
                    "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/token", "readOnly": True}],
                }
                for place in range(len(_REQUESTS))
            ],
            "tolerations": [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in ("a", "b")],
        },
        "status": {
            "phase": "Running",
            "startTime": _CREATED,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": _CREATED}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": f"container-{place}", "ready": True, "state": {"running": {"startedAt": _CREATED}}}
                for place in range(len(_REQUESTS))
            ],
        },
    }


def service(app: int) -> dict[str, Any]:
    """Return the service of an app."""
    return {"metadata": _metadata(app, f"app-{app}"), "spec": {"selector": _labels(app)}}


def replica_set(app: int) -> dict[str, Any]:
    """Return the ReplicaSet of an app."""
    selector = {"matchLabels": _labels(app) | {"pod-template-hash": f"{app:010d}"}}
    return {
        "metadata": _metadata(app, f"app-{app}-{app:010d}"),
        "spec": {"replicas": PODS_OF_AN_APP, "selector": selector},
    }


def _metadata(app: int, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": _namespace(app),
        "uid": f"{app:036d}",
        "resourceVersion": "1",
        "creationTimestamp": _CREATED,
        "labels": _labels(app),
    }


def _labels(app: int) -> dict[str, str]:
    return {"app": f"app-{app}", "team": f"team-{app % 20}"}


def _namespace(app: int) -> str:
    return f"team-{app % _NAMESPACES}"


def _managed() -> dict[str, Any]:
    return {"f:status": {f"f:{number}": {} for number in range(40)}}
