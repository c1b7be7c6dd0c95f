"""Determines which pods end with their node: those of DaemonSets, mirror pods, and pods that should have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.pod_owners import is_of_daemon_set
from recommender.kinds.cluster_size.scale_down.annotations import DAEMON_SET_POD, MIRROR_POD

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

LONG_TERMINATING_SECONDS: Final = 30.0
"""Time that a pod may take beyond its grace period before it no longer counts (`PodLongTerminatingExtraThreshold`)."""


def is_daemon_set_pod(pod: ClusterPod) -> bool:
    """Return whether a DaemonSet has made the pod, or it is annotated as if one had."""
    if is_of_daemon_set(pod.controller):
        return True
    return pod.facts is not None and pod.facts.annotations.get(DAEMON_SET_POD) == "true"


def is_mirror_pod(pod: ClusterPod) -> bool:
    """Return whether the pod represents a static pod of its node."""
    return pod.facts is not None and MIRROR_POD in pod.facts.annotations


def is_long_terminating(pod: ClusterPod, now: float) -> bool:
    """Return whether the pod should have ended long ago: it counts neither as load nor as something to move.

    As in Cluster Autoscaler, the grace period is added to the deletionTimestamp, which already includes it.
    """
    if pod.facts is None or pod.facts.deleted is None:
        return False
    return pod.facts.deleted + pod.facts.grace_seconds + LONG_TERMINATING_SECONDS < now
