"""Determines which pods of a node are evicted before it is deleted, and what prevents that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.foundation.cluster.values.state import ENDED_PHASES
from recommender.kinds.cluster_size.node_groups.fields import items, section, text, texts
from recommender.kinds.cluster_size.scale_down.pod_kinds import DAEMON_SET_POD, MIRROR_POD, SAFE_TO_EVICT

LONGEST_GRACE_SECONDS: Final = 600
"""The longest time that a pod may take to terminate (`--max-graceful-termination-sec`)."""


@dataclass(frozen=True, slots=True)
class EvictedPod:
    """A pod that must leave the node."""

    namespace: str
    name: str
    uid: str
    grace_seconds: int
    is_terminating: bool

    def __str__(self) -> str:
        """Return the namespace and the name, such as `shop/web-0`."""
        return f"{self.namespace}/{self.name}"


def pods_to_evict(pods: Iterable[Mapping[str, Any]]) -> tuple[EvictedPod, ...]:
    """Return the pods that must leave the node, without those that end with the node or have already ended."""
    return tuple(_evicted_pod(pod) for pod in pods if not _stays(pod))


def obstacle_to(pods: Iterable[Mapping[str, Any]]) -> str:
    """Return why one of the pods of a node forbids draining it; empty if none does."""
    for pod in pods:
        if _stays(pod) or text(pod, "metadata", "deletionTimestamp"):
            continue
        name = f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
        safe = texts(pod, "metadata", "annotations").get(SAFE_TO_EVICT)
        if safe == "false":
            return f"{name} has the annotation {SAFE_TO_EVICT}: false"
        if safe != "true" and _controller(pod) is None:
            return f"{name} has no controller that would recreate it"
    return ""


def eviction_of(pod: EvictedPod) -> dict[str, Any]:
    """Return the Eviction of a pod, which the API server grants within its PodDisruptionBudgets."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": pod.namespace, "name": pod.name},
        "deleteOptions": {"gracePeriodSeconds": pod.grace_seconds, "preconditions": {"uid": pod.uid}},
    }


def _evicted_pod(pod: Mapping[str, Any]) -> EvictedPod:
    grace = section(pod, "spec").get("terminationGracePeriodSeconds")
    return EvictedPod(
        namespace=text(pod, "metadata", "namespace"),
        name=text(pod, "metadata", "name"),
        uid=text(pod, "metadata", "uid"),
        grace_seconds=min(grace, LONGEST_GRACE_SECONDS) if isinstance(grace, int) else 30,
        is_terminating=bool(text(pod, "metadata", "deletionTimestamp")),
    )


def _stays(pod: Mapping[str, Any]) -> bool:
    annotations = texts(pod, "metadata", "annotations")
    controller = _controller(pod)
    is_of_daemon_set = (
        controller is not None
        and controller.get("kind") == "DaemonSet"
        and text(controller, "apiVersion").partition("/")[0] == "apps"
    )
    return (
        MIRROR_POD in annotations
        or annotations.get(DAEMON_SET_POD) == "true"
        or is_of_daemon_set
        or text(pod, "status", "phase") in ENDED_PHASES
    )


def _controller(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = items(pod, "metadata", "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), None)
