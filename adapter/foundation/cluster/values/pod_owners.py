"""Checks owner references. Anyone who creates a pod chooses its owner references, so a kind alone proves nothing.

An owner counts by its API group, with `controller: true`, and by the UID of an object that exists. The garbage
collector deletes pods of owners that do not exist, but only after they have been placed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.cluster.values.pods import ClusterPod, ControllerReference


def is_same_object(stated_uid: str, uid: str) -> bool:
    """Return whether a reference refers to the object with this UID. Files may omit UIDs; the API server never does."""
    return not stated_uid or not uid or stated_uid == uid


def is_of_daemon_set(owner: ControllerReference | None, known_uids: Collection[str] = ()) -> bool:
    """Return whether the controller of a pod is a DaemonSet.

    `known_uids` are the UIDs of all DaemonSets; if it is empty, they are unknown, and only the API group decides.
    """
    if owner is None or not owner.is_daemon_set:
        return False
    return not known_uids or not owner.uid or owner.uid in known_uids


def is_static_pod(pod: ClusterPod, node_uid: str = "") -> bool:
    """Return whether a pod is the mirror of a kubelet's static pod, whose controller is the Node itself.

    `node_uid` is the UID of the Node object; empty if it is not known.
    """
    owner = pod.controller
    if owner is None or (owner.api_version, owner.kind, owner.name) != ("v1", "Node", pod.node):
        return False
    return is_same_object(owner.uid, node_uid)
