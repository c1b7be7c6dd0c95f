"""Determines which pods of a node are evicted before it is deleted, and what prevents that. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from adapter.foundation.cluster.facts.objects import FactError, time_of
from adapter.foundation.cluster.facts.pod_constraints import tolerations_of
from adapter.foundation.cluster.values.constraints import LocalVolume
from adapter.foundation.cluster.values.state import ENDED_PHASES, ControllerReference
from recommender.kinds.cluster_size.node_groups.fields import items, text, texts, whole
from recommender.kinds.cluster_size.predicates.node_only_filters import CORDON_TAINT
from recommender.kinds.cluster_size.predicates.taint_toleration import is_tolerated
from recommender.kinds.cluster_size.scale_down.annotations import DAEMON_SET_POD, MIRROR_POD, SAFE_TO_EVICT
from recommender.kinds.cluster_size.scale_down.drainability import is_replicated, lost_volume
from recommender.kinds.cluster_size.scale_down.pod_kinds import LONG_TERMINATING_SECONDS
from recommender.running.sizes.removal_marks import removal_taint

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, ScaleDownSettings

EVICTION_SECONDS: Final = 120.0
"""How long evictions are tried (`--max-pod-eviction-time`)."""
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


def leaving_pods(
    pods: Iterable[Mapping[str, Any]], settings: ClusterSizeSettings, since: float, waited: float
) -> list[Mapping[str, Any]]:
    """Return the pods that must leave a node whose removal began at `since`, in Unix seconds, `waited` seconds ago.

    The others end with the node, have already ended, or should have ended long before the removal began: the kubelet of
    a dead node ends no pods. Expendable pods keep no node, so they are waited for only while evictions are tried.

    A wall clock that is ahead of the API server's makes any pod overdue that is being terminated. So an overdue pod is
    still waited for as long as evictions are tried, and then for as long as a pod that was evicted last may take.
    """
    return [
        pod
        for pod in pods
        if not _stays(pod)
        and not (_is_long_terminating(pod, since) and waited > EVICTION_SECONDS + _longest_end_seconds(pod))
        and (waited <= EVICTION_SECONDS or not _is_expendable(pod, settings))
    ]


def pods_to_evict(
    pods: Iterable[Mapping[str, Any]], first: Container[str] | None, since: float
) -> tuple[EvictedPod, ...]:
    """Return the leaving pods of a node whose removal began at `since`, in Unix seconds, as they are evicted.

    `first` are the UIDs of the pods that the node had then; None if they are not known yet. A pod that came afterwards,
    because it tolerates the removal, would come back to the drained node after each eviction. As in Cluster Autoscaler,
    it ends with the node.
    """
    return tuple(
        _evicted_pod(pod)
        for pod in pods
        if first is None or text(pod, "metadata", "uid") in first or not _tolerates_removal(pod, since)
    )


def obstacle_to(pods: Iterable[Mapping[str, Any]], settings: ClusterSizeSettings) -> str:
    """Return why one of the leaving pods of a node forbids draining it; empty if none does.

    Until the node was cordoned, pods could still be bound to it that no decision has seen.
    """
    for pod in pods:
        if text(pod, "metadata", "deletionTimestamp") or _is_expendable(pod, settings):
            continue
        why = _obstacle(pod, settings.scale_down)
        if why:
            return f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')} {why}"
    return ""


def _obstacle(pod: Mapping[str, Any], rules: ScaleDownSettings) -> str:
    """Return why a pod must not be evicted, as the rest of a sentence that begins with its name; else empty."""
    annotations = texts(pod, "metadata", "annotations")
    safe = annotations.get(SAFE_TO_EVICT)
    if safe == "true":
        return ""
    if safe in {"false", "on-completion"}:
        return f"has the annotation {SAFE_TO_EVICT}: {safe}"
    owner = _controller(pod)
    if owner is None:
        return "has no controller that would recreate it"
    named = ControllerReference(*(text(owner, key) for key in ("apiVersion", "kind", "name", "uid")))
    if rules.skip_nodes_with_custom_controller_pods and not is_replicated(named):
        return f"is controlled by {named.kind} {named.name}, a kind that may not recreate it"
    return lost_volume(_local_volumes(pod), annotations) if rules.skip_nodes_with_local_storage else ""


def _local_volumes(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for volume in items(pod, "spec", "volumes"):
        if isinstance(volume.get("hostPath"), dict):
            yield text(volume, "name"), LocalVolume.HOST_PATH
        if isinstance(volume.get("emptyDir"), dict) and text(volume, "emptyDir", "medium") != "Memory":
            yield text(volume, "name"), LocalVolume.EMPTY_DIR


def eviction_of(pod: EvictedPod) -> dict[str, Any]:
    """Return the Eviction of a pod, which the API server grants within its PodDisruptionBudgets."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": pod.namespace, "name": pod.name},
        "deleteOptions": {"gracePeriodSeconds": pod.grace_seconds, "preconditions": {"uid": pod.uid}},
    }


def _evicted_pod(pod: Mapping[str, Any]) -> EvictedPod:
    return EvictedPod(
        namespace=text(pod, "metadata", "namespace"),
        name=text(pod, "metadata", "name"),
        uid=text(pod, "metadata", "uid"),
        grace_seconds=min(_grace_seconds(pod), LONGEST_GRACE_SECONDS),
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


def _is_expendable(pod: Mapping[str, Any], settings: ClusterSizeSettings) -> bool:
    return (whole(pod, "spec", "priority") or 0) < settings.expendable_pods_priority_cutoff


def _is_long_terminating(pod: Mapping[str, Any], time: float) -> bool:
    """Return whether the pod should have ended long before a time, by the rule of `is_long_terminating`."""
    deleted, grace = text(pod, "metadata", "deletionTimestamp"), whole(pod, "metadata", "deletionGracePeriodSeconds")
    try:
        ends = time_of("deletionTimestamp", deleted)
    except FactError:
        return False
    return ends + (_grace_seconds(pod) if grace is None else grace) + LONG_TERMINATING_SECONDS < time


def _tolerates_removal(pod: Mapping[str, Any], since: float) -> bool:
    try:
        tolerations = tolerations_of(msgspec.json.encode(items(pod, "spec", "tolerations")))
    except FactError:
        return False
    return all(is_tolerated(taint, tolerations) for taint in (CORDON_TAINT, removal_taint(since)))


def _longest_end_seconds(pod: Mapping[str, Any]) -> float:
    # Whoever deletes a pod may give it a longer period than its own.
    grace = max(_grace_seconds(pod), whole(pod, "metadata", "deletionGracePeriodSeconds") or 0)
    return min(grace, LONGEST_GRACE_SECONDS) + LONG_TERMINATING_SECONDS


def _grace_seconds(pod: Mapping[str, Any]) -> int:
    grace = whole(pod, "spec", "terminationGracePeriodSeconds")
    return 30 if grace is None else grace


def _controller(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = items(pod, "metadata", "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), None)
