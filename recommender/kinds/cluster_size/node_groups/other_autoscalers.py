"""Determines whether another autoscaler manages the nodes of a group, and its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from recommender.decisions.texts.times import parse_rfc3339, rfc3339
from recommender.kinds.cluster_size.node_groups.fields import object_text, text
from recommender.kinds.cluster_size.node_groups.watched_kinds import LEASE_NAME, STATUS_CONFIG_MAP, leases, objects_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, JsonObject, ObjectKind
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.kinds.cluster_size.model.groups import SizeManager

KARPENTER_LABEL: Final = "karpenter.sh/nodepool"
_KARPENTER_OLD_LABEL: Final = "karpenter.sh/provisioner-name"
_IMAGE: Final = re.compile(r"(?:.*/)?cluster-autoscaler(?:-(?:amd64|arm64|arm|ppc64le|s390x))?(?::[^/@]*)?(?:@[^/]*)?")
"""The image of Cluster Autoscaler, from whichever registry."""
_LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"
_SILENT_SECONDS: Final = 900.0
"""Cluster Autoscaler restarts itself after 10 minutes without a loop (`max-inactivity`), so after this time it is
gone."""
_FIELD_MANAGER: Final = "cluster-autoscaler"
"""The field manager as which Cluster Autoscaler writes sizes."""
_GROUP_NAME: Final = re.compile(r"^\s*(?:- )?[Nn]ame:\s*\"?([^\s\"]+)\"?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SeenAutoscaler:
    """A Cluster Autoscaler that runs in the cluster, or for it."""

    name: str
    """The autoscaler, and where it was seen."""
    groups: frozenset[str] | None = None
    """The names of its groups; None if they are not known."""

    def has(self, group: str) -> bool:
        """Return whether the autoscaler manages a group, or may do so."""
        return self.groups is None or group in self.groups


def autoscaler_kinds(namespaces: Collection[str]) -> frozenset[ObjectKind]:
    """Return the kinds of objects by which a Cluster Autoscaler is detected."""
    return frozenset({STATUS_CONFIG_MAP, *leases(namespaces)})


def cluster_autoscaler(
    cluster: ClusterState, namespaces: Collection[str], now: float
) -> SeenAutoscaler | Unknown | None:
    """Return the Cluster Autoscaler that works on this cluster; None if there is none; Unknown if that is not known.

    It is detected by the ConfigMap in which it publishes its state, unless that is older than 15 minutes; and in these
    namespaces by a workload of its image, and by its Lease, unless nobody has renewed that for 15 minutes. Names and
    labels prove nothing: the creator of a Deployment chooses them. Managed clusters run it outside the cluster, where
    only the ConfigMap shows it.
    """
    status = cluster.objects.get(STATUS_CONFIG_MAP)
    if status is not None and not isinstance(status, Unknown):
        published = _published_autoscaler(status.value, now)
        if published is not None:
            return published
    if not isinstance(cluster.workloads, Unknown):
        running = _running_autoscaler(cluster.workloads.value, namespaces)
        if running is not None:
            return running
    for lease in objects_of(cluster.objects, *leases(namespaces)):
        if _is_held(lease, now):
            return SeenAutoscaler(f"Cluster Autoscaler ({object_text(lease)})")
    return status if isinstance(status, Unknown) else None


def karpenter_pool(node: ClusterNode) -> str:
    """Return the name of the Karpenter NodePool that a node belongs to; empty if it belongs to none."""
    return node.labels.get(KARPENTER_LABEL, node.labels.get(_KARPENTER_OLD_LABEL, ""))


def karpenter_of(members: Iterable[str], nodes: Mapping[str, ClusterNode]) -> str:
    """Return the name of Karpenter with its NodePool if it made one of the nodes; empty if it made none."""
    pools = sorted({pool for name in members if name in nodes and (pool := karpenter_pool(nodes[name]))})
    return f"Karpenter (NodePool {', '.join(pools)})" if pools else ""


def writing_autoscaler(managers: Iterable[SizeManager], now: float) -> str:
    """Return Cluster Autoscaler's name if it wrote the size of a group in the last 15 minutes; empty if not."""
    for each in managers:
        if each.manager == _FIELD_MANAGER and each.time is not None and now - each.time <= _SILENT_SECONDS:
            wrote = f"field manager {each.manager}, which wrote spec.replicas at {rfc3339(each.time)}"
            return f"Cluster Autoscaler ({wrote})"
    return ""


def _published_autoscaler(config_maps: Iterable[JsonObject], now: float) -> SeenAutoscaler | None:
    for one in config_maps:
        if (text(one, "metadata", "namespace"), text(one, "metadata", "name")) != (
            STATUS_CONFIG_MAP.namespace,
            STATUS_CONFIG_MAP.name,
        ):
            continue
        updated = _updated_at(text(one, "metadata", "annotations", _LAST_UPDATED))
        if updated is not None and now - updated > _SILENT_SECONDS:
            return None
        since = "" if updated is None else f", updated {rfc3339(updated)}"
        name = f"Cluster Autoscaler (ConfigMap {STATUS_CONFIG_MAP.namespace}/{STATUS_CONFIG_MAP.name}{since})"
        return SeenAutoscaler(name, _groups_in(text(one, "data", "status")))
    return None


def _updated_at(written: str) -> float | None:
    """Return the time of `2026-11-22 15:00:00.123456789 +0000 UTC`, as Go prints it; None if it cannot be read."""
    found = re.match(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)? ?(?:([+-]\d\d):?(\d\d)|Z)?", written)
    if found is None:
        return None
    day, clock, hours, minutes = found.groups()
    try:
        return parse_rfc3339(f"{day}T{clock}{f'{hours}:{minutes}' if hours else 'Z'}")
    except ValueError:
        return None


@bounded_cache(16 * MEBIBYTE)
def _groups_in(status: str) -> frozenset[str] | None:
    """Return the names of the groups in either form of the status, YAML or the older text; None if it has none."""
    return frozenset(_GROUP_NAME.findall(status)) or None


def _running_autoscaler(workloads: Iterable[WorkloadFacts], namespaces: Collection[str]) -> SeenAutoscaler | None:
    for workload in workloads:
        if workload.namespace in namespaces and workload.replicas != 0 and any(map(_IMAGE.fullmatch, workload.images)):
            return SeenAutoscaler(f"Cluster Autoscaler ({workload.kind} {workload.namespace}/{workload.name})")
    return None


def _is_held(lease: JsonObject, now: float) -> bool:
    """Return whether a Lease has a holder who has renewed it; a Lease whose time cannot be read counts as renewed."""
    if text(lease, "metadata", "name") != LEASE_NAME or not text(lease, "spec", "holderIdentity"):
        return False
    try:
        return now - parse_rfc3339(text(lease, "spec", "renewTime")) <= _SILENT_SECONDS
    except ValueError:
        return True
