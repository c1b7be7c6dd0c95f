"""Which kinds of objects node groups are found by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.cluster.state import ObjectKind, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.state import JsonObject, Observed
    from recommender.cluster_size.model.settings import ClusterApiGroups

Objects: TypeAlias = "Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown]"

CLUSTER_API_GROUP: Final = "cluster.x-k8s.io"
STATUS_CONFIG_MAP: Final = ObjectKind("", "configmaps", "ConfigMap", "kube-system", "cluster-autoscaler-status")
"""In which Cluster Autoscaler publishes its state. In managed clusters it is all that can be seen of it."""
SCALABLE_RESOURCES: Final = {
    "MachineDeployment": "machinedeployments",
    "MachineSet": "machinesets",
    "MachinePool": "machinepools",
}
"""Plural names of the kinds that can be node groups."""


def scalable_kind(kind: str, groups: ClusterApiGroups) -> ObjectKind:
    """Return the kind of node groups by its name."""
    return ObjectKind(CLUSTER_API_GROUP, SCALABLE_RESOURCES[kind], kind, groups.namespace)


def machines(groups: ClusterApiGroups) -> ObjectKind:
    """Return the kind whose objects stand for nodes."""
    return ObjectKind(CLUSTER_API_GROUP, "machines", "Machine", groups.namespace)


def clusters(groups: ClusterApiGroups) -> ObjectKind:
    """Return the kind that can be paused as a whole."""
    return ObjectKind(CLUSTER_API_GROUP, "clusters", "Cluster", groups.namespace)


def infrastructure(api_group: str, kind: str, groups: ClusterApiGroups) -> ObjectKind:
    """Return the kind of a template of machines. Cluster API requires its plural name to follow from its kind."""
    plural = kind.lower()
    plural += "es" if plural.endswith(("s", "x", "ch", "sh")) else "s"
    return ObjectKind(api_group, plural, kind, groups.namespace)


def objects_of(objects: Objects, kind: ObjectKind) -> tuple[JsonObject, ...]:
    """Return the objects of a kind; none if they are not known."""
    found = objects.get(kind, Unknown(f"{kind.resource} are not read"))
    return () if isinstance(found, Unknown) else found.value
