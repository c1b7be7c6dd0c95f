"""Other autoscalers: whether one has the nodes of a group in its charge, and its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from adapter.cluster.state import Unknown
from recommender.cluster_size.node_groups.fields import text
from recommender.cluster_size.node_groups.kinds import STATUS_CONFIG_MAP
from recommender.decisions.times import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.cluster.scheduling.workloads import WorkloadFacts
    from adapter.cluster.state import ClusterNode, ClusterState, JsonObject

KARPENTER_LABEL: Final = "karpenter.sh/nodepool"
_KARPENTER_OLD_LABEL: Final = "karpenter.sh/provisioner-name"
_NAME: Final = "cluster-autoscaler"
_NAME_LABELS: Final = ("app.kubernetes.io/name", "k8s-app", "app")
_LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"
_SILENT_SECONDS: Final = 900.0
"""Cluster Autoscaler restarts itself after 10 minutes without a loop (`max-inactivity`), so it is gone by then."""
_GROUP_NAME: Final = re.compile(r"^\s*(?:- )?[Nn]ame:\s*\"?([^\s\"]+)\"?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SeenAutoscaler:
    """A Cluster Autoscaler that runs in the cluster, or for it."""

    name: str
    """What it is and where it is seen."""
    groups: frozenset[str] | None = None
    """The names of its groups; None if they are not known."""

    def has(self, group: str) -> bool:
        """Whether it has a group in its charge, or may have."""
        return self.groups is None or group in self.groups


def cluster_autoscaler(cluster: ClusterState, now: float) -> SeenAutoscaler | Unknown | None:
    """Return the Cluster Autoscaler that works on this cluster; None if there is none; Unknown if nobody knows.

    It is seen by the ConfigMap in which it publishes its state, unless that is older than 15 minutes, and by a workload
    with its name or its usual labels. Managed clusters run it outside, where only the ConfigMap shows it.
    """
    status = cluster.objects.get(STATUS_CONFIG_MAP)
    if status is not None and not isinstance(status, Unknown):
        published = _published(status.value, now)
        if published is not None:
            return published
    if not isinstance(cluster.workloads, Unknown):
        running = _running(cluster.workloads.value)
        if running is not None:
            return running
    return status if isinstance(status, Unknown) else None


def karpenter_pool(node: ClusterNode) -> str:
    """Return the name of the Karpenter NodePool that a node belongs to; empty if it belongs to none."""
    return node.labels.get(KARPENTER_LABEL, node.labels.get(_KARPENTER_OLD_LABEL, ""))


def karpenter_of(members: Iterable[str], nodes: Mapping[str, ClusterNode]) -> str:
    """Return the name of Karpenter with its NodePool if it made one of the nodes; empty if it made none."""
    pools = sorted({pool for name in members if name in nodes and (pool := karpenter_pool(nodes[name]))})
    return f"Karpenter (NodePool {', '.join(pools)})" if pools else ""


def _published(config_maps: Iterable[JsonObject], now: float) -> SeenAutoscaler | None:
    for one in config_maps:
        if (text(one, "metadata", "namespace"), text(one, "metadata", "name")) != (
            STATUS_CONFIG_MAP.namespace,
            STATUS_CONFIG_MAP.name,
        ):
            continue
        updated = _updated(text(one, "metadata", "annotations", _LAST_UPDATED))
        if updated is not None and now - updated > _SILENT_SECONDS:
            return None
        since = "" if updated is None else f", updated {rfc3339(updated)}"
        name = f"Cluster Autoscaler (ConfigMap {STATUS_CONFIG_MAP.namespace}/{STATUS_CONFIG_MAP.name}{since})"
        return SeenAutoscaler(name, _groups_in(text(one, "data", "status")))
    return None


def _updated(written: str) -> float | None:
    """Return the time of `2026-11-22 15:00:00.123456789 +0000 UTC`, as Go prints it; None if it cannot be read."""
    found = re.match(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)? ?(?:([+-]\d\d):?(\d\d)|Z)?", written)
    if found is None:
        return None
    day, clock, hours, minutes = found.groups()
    try:
        return parse_rfc3339(f"{day}T{clock}{f'{hours}:{minutes}' if hours else 'Z'}")
    except ValueError:
        return None


@lru_cache(maxsize=4)
def _groups_in(status: str) -> frozenset[str] | None:
    """Return the names of the groups in either form of the status, YAML or the older text; None without any."""
    return frozenset(_GROUP_NAME.findall(status)) or None


def _running(workloads: Iterable[WorkloadFacts]) -> SeenAutoscaler | None:
    for workload in workloads:
        if workload.kind not in {"Deployment", "StatefulSet"} or workload.replicas == 0:
            continue
        labels: Mapping[str, str] = {} if workload.template is None else workload.template.labels
        # Its chart names the Deployment after the release and the provider: `ca-clusterapi-cluster-autoscaler`.
        if _NAME in workload.name or any(labels.get(key, "").endswith(_NAME) for key in _NAME_LABELS):
            return SeenAutoscaler(f"Cluster Autoscaler ({workload.kind} {workload.namespace}/{workload.name})")
    return None
