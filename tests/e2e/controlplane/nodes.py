"""Nodes as objects of the API: the one that every cluster has, and those that a test makes beside it.

All of them are one machine, and one stand-in for the kubelet runs the pods of all. When a node is deleted, its pods are
removed at once; in a cluster the pod garbage collector deletes them after a minute.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane.client import ApiError
from tests.e2e.controlplane.kubelet.status import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.e2e.controlplane.client import ApiClient, Document

PATH: Final = "/api/v1/nodes"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """The properties in which nodes may differ."""

    name: str
    capacity: Mapping[str, str] = field(default_factory=lambda: {"cpu": "4", "memory": "16Gi", "pods": "110"})
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """The amounts that pods may use, where they are less than the capacity."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels other than the host name and the operating system."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    unschedulable: bool = False
    address: str = "10.97.0.1"
    """The node's address, at which nobody listens."""

    def document(self) -> Document:
        """Return the Node object, which is Ready."""
        labels = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "labels": labels | dict(self.labels),
                "annotations": dict(self.annotations),
            },
            "spec": {"taints": [dict(taint) for taint in self.taints], "unschedulable": self.unschedulable},
            "status": self._status(moment(time.time())),
        }

    def _status(self, now: str) -> Document:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the stand-in is there",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        return {
            "capacity": dict(self.capacity),
            "allocatable": {**self.capacity, **self.allocatable},
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "conditions": [ready],
        }


def register(client: ApiClient, spec: NodeSpec) -> None:
    """Create the node as its kubelet does; it may already exist."""
    document = spec.document()
    try:
        client.create(PATH, document)
    except ApiError as e:
        if e.reason != "AlreadyExists":
            raise
        client.merge(f"{PATH}/{spec.name}/status", {"status": document["status"]})
    # A new node is tainted until the node controller has seen it; that one does not run here.
    client.merge(f"{PATH}/{spec.name}", {"spec": {"taints": document["spec"]["taints"] or None}})


@contextmanager
def extra_nodes(client: ApiClient, *specs: NodeSpec) -> Iterator[None]:
    """Make nodes for the block; at its end they are removed with the pods that they still have."""
    try:
        for spec in specs:
            register(client, spec)
        yield
    finally:
        for spec in specs:
            client.delete(f"{PATH}/{spec.name}")
