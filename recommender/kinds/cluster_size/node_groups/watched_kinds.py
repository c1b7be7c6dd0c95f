"""Determines the kinds of objects by which node groups are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.state import ObjectKind, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import JsonObject, Observed
    from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups

Objects: TypeAlias = "Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown]"

CLUSTER_API_GROUP: Final = "cluster.x-k8s.io"
STATUS_CONFIG_MAP: Final = ObjectKind("", "configmaps", "ConfigMap", "kube-system", "cluster-autoscaler-status")
"""The ConfigMap in which Cluster Autoscaler publishes its state. In managed clusters, nothing else of it is visible."""
LEASE_NAME: Final = "cluster-autoscaler"
"""The name of the Lease by which Cluster Autoscaler elects its leader (`--leader-elect-resource-name`)."""
SCALABLE_RESOURCES: Final = {
    "MachineDeployment": "machinedeployments",
    "MachineSet": "machinesets",
    "MachinePool": "machinepools",
}
"""Plural names of the kinds that can be node groups."""


def scalable_kinds(kind: str, groups: ClusterApiGroups) -> tuple[ObjectKind, ...]:
    """Return the kind of node groups with this name, once for each of the namespaces."""
    return _in_namespaces(SCALABLE_RESOURCES[kind], kind, groups)


def machines(groups: ClusterApiGroups) -> tuple[ObjectKind, ...]:
    """Return the kind whose objects represent nodes, in each of the namespaces."""
    return _in_namespaces("machines", "Machine", groups)


def clusters(groups: ClusterApiGroups) -> tuple[ObjectKind, ...]:
    """Return the kind that can be paused as a whole, in each of the namespaces."""
    return _in_namespaces("clusters", "Cluster", groups)


def infrastructure(api_group: str, kind: str, namespace: str) -> ObjectKind:
    """Return the kind of a template of machines. Cluster API requires its plural name to follow from its kind."""
    plural = kind.lower()
    plural += "es" if plural.endswith(("s", "x", "ch", "sh")) else "s"
    return ObjectKind(api_group, plural, kind, namespace)


def leases(namespaces: Iterable[str]) -> tuple[ObjectKind, ...]:
    """Return the Lease of Cluster Autoscaler in each of the namespaces."""
    return tuple(ObjectKind("coordination.k8s.io", "leases", "Lease", each, LEASE_NAME) for each in namespaces)


def objects_of(objects: Objects, *kinds: ObjectKind) -> tuple[JsonObject, ...]:
    """Return the objects of these kinds; unknown kinds have none."""
    found = (objects.get(kind) for kind in kinds)
    return tuple(one for each in found if each is not None and not isinstance(each, Unknown) for one in each.value)


def _in_namespaces(resource: str, kind: str, groups: ClusterApiGroups) -> tuple[ObjectKind, ...]:
    return tuple(ObjectKind(CLUSTER_API_GROUP, resource, kind, namespace) for namespace in groups.namespaces)
