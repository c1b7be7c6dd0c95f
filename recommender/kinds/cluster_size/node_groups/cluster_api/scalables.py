"""Objects that are node groups: limits from their annotations, the target size, and reasons not to write it.

The API versions v1beta1 and v1beta2 are read in the same way. Names, annotations and rules are those of Cluster
Autoscaler's provider `clusterapi` and of Cluster API's own controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.record import TargetReference
from recommender.decisions.texts.times import parse_rfc3339
from recommender.kinds.cluster_size.model.groups import SizeManager
from recommender.kinds.cluster_size.node_groups.fields import items, section, text, texts, whole
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import JsonObject

MIN_SIZE: Final = f"{CLUSTER_API_GROUP}/cluster-api-autoscaler-node-group-min-size"
MAX_SIZE: Final = f"{CLUSTER_API_GROUP}/cluster-api-autoscaler-node-group-max-size"
PAUSED: Final = f"{CLUSTER_API_GROUP}/paused"
MANAGED_BY: Final = f"{CLUSTER_API_GROUP}/replicas-managed-by"
CLUSTER_LABEL: Final = f"{CLUSTER_API_GROUP}/cluster-name"
_TOPOLOGY: Final = "topology.cluster.x-k8s.io"
_TOPOLOGY_NAMES: Final = {
    "MachineDeployment": ("machineDeployments", f"{_TOPOLOGY}/deployment-name"),
    "MachinePool": ("machinePools", f"{_TOPOLOGY}/pool-name"),
}


class ScalableError(ValueError):
    """The annotations or the size of an object cannot be used; the message says which and what to write."""


def group_name(one: JsonObject) -> str:
    """Return the name of the group, which is the one that Cluster Autoscaler gives it: `KIND/NAMESPACE/NAME`."""
    return f"{text(one, 'kind')}/{text(one, 'metadata', 'namespace')}/{text(one, 'metadata', 'name')}"


def reference_of(one: JsonObject) -> TargetReference:
    """Return where the size of the group can be written."""
    return TargetReference(
        api_version=text(one, "apiVersion"),
        kind=text(one, "kind"),
        namespace=text(one, "metadata", "namespace"),
        name=text(one, "metadata", "name"),
    )


def is_opted_in(one: JsonObject) -> bool:
    """Return whether an object is meant to be a node group: it has one of the two annotations, or both."""
    annotations = texts(one, "metadata", "annotations")
    return MIN_SIZE in annotations or MAX_SIZE in annotations


def bounds_of(one: JsonObject) -> tuple[int, int]:
    """Return the least and the largest size of a group.

    Raises ScalableError unless both annotations are numbers in ascending order. A maximum of 0 says that the object is
    no node group, as in Cluster Autoscaler, and not that all nodes may be removed.
    """
    annotations = texts(one, "metadata", "annotations")
    low, high = (_bound_annotation(annotations, key) for key in (MIN_SIZE, MAX_SIZE))
    if high < low:
        raise ScalableError(
            f"the annotation {MAX_SIZE} is {high}, which is less than the minimum of {low}: correct one"
        )
    if high == 0:
        raise ScalableError(f"the annotation {MAX_SIZE} is 0, so its size is left alone: write the largest size")
    return low, high


def _bound_annotation(annotations: Mapping[str, str], key: str) -> int:
    written = annotations.get(key)
    if written is None:
        raise ScalableError(f"the annotation {key} is missing: a node group needs both limits")
    if not (written.isascii() and written.isdecimal() and len(written) <= 9):
        raise ScalableError(f"the annotation {key} is {written!r}: write a whole number of at least 0")
    return int(written)


def target_size(one: JsonObject, low: int, high: int) -> int:
    """Return `spec.replicas`; without it, the default of Cluster API's webhook.

    That is the current size within the limits (`calculateMachineDeploymentReplicas`). Raises ScalableError for a value
    that is not a size.
    """
    spec = section(one, "spec")
    if "replicas" not in spec or spec["replicas"] is None:
        return min(max(whole(one, "status", "replicas") or 0, low), high)
    replicas = whole(one, "spec", "replicas")
    if replicas is None or replicas < 0:
        raise ScalableError(f"spec.replicas is {spec['replicas']!r}: it must be a whole number of at least 0")
    return replicas


def size_managers(one: JsonObject) -> tuple[SizeManager, ...]:
    """Return the field managers that own `spec.replicas`."""
    return tuple(
        SizeManager(text(each, "manager"), _time_of(text(each, "time")))
        for each in items(one, "metadata", "managedFields")
        if "f:replicas" in section(each, "fieldsV1", "f:spec")
    )


def _time_of(written: str) -> float | None:
    try:
        return parse_rfc3339(written)
    except ValueError:
        return None


def cluster_of(one: JsonObject) -> str:
    """Return the name of the Cluster that an object belongs to; empty if it states none."""
    return text(one, "spec", "clusterName") or text(one, "metadata", "labels", CLUSTER_LABEL)


def write_problem(one: JsonObject, cluster: JsonObject | None) -> str:
    """Return why the size of an object must not be written; empty if it may be written.

    `cluster` is the Cluster that it belongs to; None if there is none of this name.
    """
    own = _own_problem(one)
    if own or cluster is None:
        return own
    name = text(cluster, "metadata", "name")
    if section(cluster, "spec").get("paused") is True:
        return f"its Cluster {name} is paused by spec.paused"
    return _topology_problem(one, cluster, name)


def _own_problem(one: JsonObject) -> str:
    annotations = texts(one, "metadata", "annotations")
    if text(one, "metadata", "deletionTimestamp"):
        return "it is being deleted"
    if PAUSED in section(one, "metadata", "annotations"):
        return f"it is paused by the annotation {PAUSED}"
    if section(one, "spec").get("paused") is True:
        return "it is paused by spec.paused"
    managed_by = annotations.get(MANAGED_BY, "false")
    if managed_by != "false":
        return f"the annotation {MANAGED_BY} gives its size to {managed_by or 'another controller'}"
    return ""


def _topology_problem(one: JsonObject, cluster: JsonObject, name: str) -> str:
    """Return why a write would be undone: a size in the topology of the Cluster is restored again and again."""
    key, label = _TOPOLOGY_NAMES.get(text(one, "kind"), ("", ""))
    own = text(one, "metadata", "labels", label) if label else ""
    for entry in items(cluster, "spec", "topology", "workers", key) if own else ():
        if text(entry, "name") == own and entry.get("replicas") is not None:
            return (
                f"its Cluster {name} states spec.topology.workers.{key}[{own}].replicas, which the topology controller "
                "writes back: remove replicas there"
            )
    return ""


def is_rolling_out(one: JsonObject) -> bool:
    """Return whether Machines of an old version are being replaced, so that none should be chosen for removal now."""
    current = whole(one, "status", "replicas")
    updated = whole(one, "status", "upToDateReplicas")
    if updated is None:
        updated = whole(one, "status", "updatedReplicas")
    return text(one, "kind") == "MachineDeployment" and current is not None and (updated or 0) < current
