"""Determines which pods of a hot node could run elsewhere, and which of them match the excess (pure)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.pod_owners import is_of_daemon_set, is_static_pod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod


@dataclass(frozen=True, slots=True)
class MovablePod:
    """A pod that could run elsewhere."""

    pod: ClusterPod
    is_match: bool
    """Whether the pod is among those that would have to leave."""


def movable_pods(
    pods: Iterable[ClusterPod], excess: Mapping[str, float], daemon_sets: Collection[str] = (), node_uid: str = ""
) -> tuple[MovablePod, ...]:
    """Return the pods that could run elsewhere: lowest priority first, then largest requests first.

    `excess` is the amount that would have to leave, in millicores (`cpu`) and bytes (`memory`). The requests of the
    matching pods add up to at least the excess, if the requests of all pods do. Within a priority, the smallest pod
    that covers the rest is taken, or else the largest: so few pods move, and no large pod because of a small excess.

    Pods that belong to their node are not returned: a DaemonSet would start its pod there again, and a mirror pod shows
    a static pod of the kubelet. `daemon_sets` and `node_uid` are the UIDs of existing objects, empty if not known.
    """
    free = (pod for pod in pods if can_move(pod, daemon_sets, node_uid))
    able = sorted(free, key=lambda pod: (pod.priority, _sort_key(pod, excess), pod.name, pod.uid))
    left = dict(excess)
    matches: set[int] = set()
    for resource in excess:
        _match(able, matches, left, resource)
    return tuple(MovablePod(pod, place in matches) for place, pod in enumerate(able))


def can_move(pod: ClusterPod, daemon_sets: Collection[str], node_uid: str = "") -> bool:
    """Return whether a pod is alive and could run elsewhere; the UIDs are those of `movable_pods`."""
    is_bound = is_of_daemon_set(pod.controller, daemon_sets) or is_static_pod(pod, node_uid)
    return not (is_bound or pod.is_terminating or pod.has_ended)


def _sort_key(pod: ClusterPod, excess: Mapping[str, float]) -> tuple[float, ...]:
    """Return a key that sorts pods by their requests for the scarce resources, the largest first."""
    return tuple(-pod.resources.requests.get(resource, 0) for resource in (*excess, "cpu", "memory"))


def _match(pods: Sequence[ClusterPod], matches: set[int], left: dict[str, float], resource: str) -> None:
    """Add pods to `matches` until the excess of `resource` is covered or no pod remains.

    The requests of each added pod are subtracted from `left`, the excess that is still to be covered.
    """
    for _, group in groupby(range(len(pods)), key=lambda place: pods[place].priority):
        sizes = sorted(
            (size, -place)
            for place in group
            if place not in matches and (size := pods[place].resources.requests.get(resource, 0)) > 0
        )
        while sizes and left[resource] > 0:
            enough = bisect_left(sizes, left[resource], key=lambda entry: entry[0])
            _, place = sizes.pop(min(enough, len(sizes) - 1))
            matches.add(-place)
            for name in left:
                left[name] -= pods[-place].resources.requests.get(name, 0)
