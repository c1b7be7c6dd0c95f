"""Equivalence groups: pending pods that are alike are judged once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
from recommender.kinds.cluster_size.scale_down.pod_kinds import is_daemon_set_pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

MAX_GROUPS_PER_CONTROLLER: Final = 10
"""Cluster Autoscaler's `maxEquivalenceGroupsByController`."""


def pod_groups(pods: Iterable[ClusterPod], snapshot: Snapshot) -> tuple[PodGroup, ...]:
    """Return the pods in groups of the same controller and shape, in the order of their first pods.

    A pod without a controller, or of a DaemonSet, is a group of its own. So is each pod that differs from the first ten
    groups of its controller: pods that all differ would otherwise be compared with each other again and again.
    """
    gathered: list[list[ClusterPod]] = []
    known: dict[tuple[str, PodShape], list[ClusterPod]] = {}
    groups_of: Counter[str] = Counter()
    for pod in pods:
        if pod.controller is None or is_daemon_set_pod(pod):
            gathered.append([pod])
            continue
        controller = pod.controller.uid
        # Equal labels and an equal spec are one shape.
        key = controller, snapshot.shape(pod)
        alike = known.get(key)
        if alike is not None:
            alike.append(pod)
            continue
        gathered.append([pod])
        if groups_of[controller] < MAX_GROUPS_PER_CONTROLLER:
            groups_of[controller] += 1
            known[key] = gathered[-1]
    return tuple(PodGroup(snapshot.shape(alike[0]), tuple(alike)) for alike in gathered)
