"""Determines how much of a new node the DaemonSets of tenants may use before they are reported and ignored.

Anyone who can create a DaemonSet could otherwise make every new node seem full, so that no group grows for anybody.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.pod_requests import units_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.kinds.cluster_size.model.size_settings import TrustedDaemonSets

_PODS: Final = "pods"


@dataclass(frozen=True, slots=True)
class SharedOut:
    """The pods that come with a new node."""

    pods: tuple[ClusterPod, ...]
    """The pods that count."""
    left_out: Mapping[str, str]
    """The requests of pods that do not count, by controller, such as `DaemonSet shop/hog`."""


def shared_out(node: ClusterNode, pods: Iterable[ClusterPod], trusted: TrustedDaemonSets) -> SharedOut:
    """Return the pods of a new node within the shares of their namespaces, in their order.

    The DaemonSets of one namespace together may use the configured share of each resource that the node offers,
    including the number of pods. Namespaces that are trusted have no limit.
    """
    offered = {resource: units_of(resource, amount) for resource, amount in node.allocatable.items()}
    taken: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    counted = []
    left_out: dict[str, str] = {}
    for pod in pods:
        asked = {**pod.resources.requests, _PODS: 1}
        if pod.namespace not in trusted.namespaces:
            before = taken[pod.namespace]
            over = _most(asked, before, offered, trusted.share_ratio)
            if over is not None:
                left_out[_owner(pod)] = over
                continue
            for resource, amount in asked.items():
                before[resource] += amount
        counted.append(pod)
    return SharedOut(tuple(counted), left_out)


def _most(
    asked: Mapping[str, int], taken: Mapping[str, int], offered: Mapping[str, int], share_ratio: float
) -> str | None:
    """Return the resource of which a namespace would exceed its share; None if it exceeds none."""
    for resource, amount in asked.items():
        total = taken.get(resource, 0) + amount
        whole = offered.get(resource, 0)
        if amount > 0 and whole > 0 and total > Fraction(str(share_ratio)) * whole:
            return f"{100 * total / whole:.0f}% of {resource}"
    return None


def _owner(pod: ClusterPod) -> str:
    owner = pod.controller
    kind, name = ("Pod", pod.name) if owner is None or not owner.is_daemon_set else (owner.kind, owner.name)
    return f"{kind} {pod.namespace}/{name}"
