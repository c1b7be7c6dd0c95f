"""The one node of the cluster, as its kubelet registers it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.client import ApiError
from tests.e2e.controlplane.kubelet.status import moment

if TYPE_CHECKING:
    from tests.e2e.controlplane.client import ApiClient, Document

_CAPACITY: Final = {"cpu": "1000", "memory": "4000Gi", "pods": "60000", "ephemeral-storage": "4000Gi"}


def register(client: ApiClient, name: str, address: str) -> None:
    """Make the node, Ready and without taints; it may be there already."""
    try:
        client.create("/api/v1/nodes", _node(name, address))
    except ApiError as e:
        if e.reason != "AlreadyExists":
            raise
    # A new node is tainted until the node controller has seen it; that one does not run here.
    client.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    client.merge(f"/api/v1/nodes/{name}/status", {"status": _node(name, address)["status"]})


def _node(name: str, address: str) -> Document:
    now = moment(time.time())
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the stand-in is there",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {
            "capacity": _CAPACITY,
            "allocatable": _CAPACITY,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [ready],
        },
    }
