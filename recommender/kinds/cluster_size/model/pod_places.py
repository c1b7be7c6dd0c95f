"""Pods by name, the places that a decision has found for them, and nodes that take none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.pods import WORKLOAD_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterPod

_HASH_LABEL: Final = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class PodName:
    """Namespace and name of a pod."""

    namespace: str
    name: str
    owner: str = field(default="", compare=False)
    """The workload of the pod; empty if no controller owns it."""
    uid: str = field(default="", compare=False)
    """The UID of the pod, for its events."""

    def __str__(self) -> str:
        """Return the namespace and name: `shop/web-0`."""
        return f"{self.namespace}/{self.name}"


def unbound(pod: ClusterPod) -> ClusterPod:
    """Return a pod as its controller would recreate it, without a node.

    A pod may still be nominated for a node that it did not get, since Kubernetes before 1.34 keeps the nomination; a
    recreated pod is not.
    """
    facts = pod.facts
    if facts is not None and facts.nominated_node:
        facts = replace(facts, nominated_node="")
    return replace(pod, node="", facts=facts)


class PlaceKind(Enum):
    """The kind of node that was found for a pod."""

    EXISTING = "existing"
    """A node that could run the pod now."""
    NOMINATED = "nominated"
    """A node from which the scheduler evicts other pods for this one."""
    UPCOMING = "upcoming"
    """A node that is starting, or that was requested and does not exist yet."""
    NEW = "new"
    """A node that this decision adds."""


class PodOrigin(Enum):
    """Why a pod needs a place."""

    PENDING = "pending"
    MOVED = "moved"
    """The pod's node is removed, by the decision or by a what-if question."""
    ASSUMED = "assumed"
    """A what-if question adds the pod."""
    EXPECTED = "expected"
    """A forecast or a reserve adds the pod."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """The place that a decision has found for a pod."""

    pod: PodName
    kind: PlaceKind
    node: str
    """The name of the node; empty if it does not exist yet."""
    group: str
    """The group of the node; empty if it belongs to none."""
    origin: PodOrigin = PodOrigin.PENDING
    source: str = ""
    """The node that a moved pod leaves; empty for other pods."""


class NodeState(Enum):
    """Why a node takes no pods."""

    NOT_READY = "NotReady"
    CORDONED = "cordoned"
    STARTING = "starting"
    DELETING = "being deleted"
    TAINTED = "tainted"
    """It is Ready, and keeps a taint that nodes have only while they start."""


@dataclass(frozen=True, slots=True)
class UnavailableNode:
    """A node that takes no pods now."""

    node: str
    group: str
    """The group of the node; empty if it belongs to none."""
    state: NodeState
    detail: str = ""
    """The condition that a starting node waits for, or the taint that a node keeps; empty for other nodes."""


@dataclass(frozen=True, slots=True)
class PodMove:
    """The new node of a pod whose node is removed."""

    pod: PodName
    node: str


def deployment_of(pod: ClusterPod) -> str:
    """Return the Deployment of a pod; empty if it has none.

    A Deployment owns its pods through ReplicaSets, which its controller names `NAME-HASH`, with the hash that is a
    label of their pods.
    """
    owner = pod.controller
    end = f"-{pod.labels.get(_HASH_LABEL, '')}"
    if owner is None or owner.kind != "ReplicaSet" or owner.group not in WORKLOAD_GROUPS:
        return ""
    return owner.name.removesuffix(end) if len(end) > 1 and owner.name.endswith(end) else ""


def pod_name(pod: ClusterPod) -> PodName:
    """Return the name of a pod, with its workload."""
    owner = deployment_of(pod) or ("" if pod.controller is None else pod.controller.name)
    return PodName(pod.namespace, pod.name, owner, pod.uid)


def pod_names(pods: Iterable[ClusterPod]) -> tuple[PodName, ...]:
    """Return the names of pods, with their workloads."""
    return tuple(map(pod_name, pods))
