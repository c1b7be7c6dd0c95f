"""Doctor: states what fails if a right is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS, WORKLOADS
from adapter.foundation.reports.lines import CheckStatus
from recommender.configuration.objects.object_settings import GROUP
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP, SCALABLE_RESOURCES
from recommender.kinds.role_rules import LIST, WATCH, RoleRule

_ERROR, _WARNING = CheckStatus.ERROR, CheckStatus.WARNING

_LOST: Final = {
    "events": ("events on the targets", _WARNING),
    "configmaps": ("parameters and memories: a recommendation without them has no value", _ERROR),
    "leases": ("the election of a leader: nothing is decided", _ERROR),
    "nodes": ("the number of nodes and cores, and the nodes of node groups", _ERROR),
    "horizontalpodautoscalers": ("HPAs that own a target: the output scale is refused", _ERROR),
}
OBJECTS_LOST: Final = "objects of the kind Recommendation: none of them counts"
_STATUSES: Final = (
    "the statuses of objects of the kind Recommendation: their owners cannot see what became of them",
    _ERROR,
)
_SCALE: Final = ("scale calls: the targets keep their sizes", _ERROR)
_TARGET: Final = ("field managers, rollouts and the annotation of a pause", _WARNING)
_COUNTED: Final = ("what is counted or sized by this kind", _ERROR)
_WATCHED: Final[Mapping[str, tuple[str, CheckStatus]]] = {
    "pods": ("pending pods and the load of nodes: no cluster size is recommended", _ERROR),
    **{
        kind.resource.plural: (
            "what is counted by this kind, and which pods a controller replaces: nodes with such pods are kept",
            _ERROR,
        )
        for kind in SCHEDULING_KINDS
        if kind.name in WORKLOADS
    },
    "poddisruptionbudgets": ("which pods may be evicted: no pod is moved, so no node is removed", _ERROR),
    "namespaces": (
        "labels of namespaces: pods whose affinity selects by them are placed only where that cannot matter",
        _WARNING,
    ),
    **dict.fromkeys(
        ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes"),
        ("zones and limits of volumes: pods with claims cannot be judged, so no node is added for them", _ERROR),
    ),
    "resourcequotas": ("ResourceQuotas: predicted pods count beyond what their namespace may have", _WARNING),
    "priorityclasses": ("names of priorities: pods of what-if questions and workloads have the priority 0", _WARNING),
    "verticalpodautoscalers": (
        "VerticalPodAutoscalers that size a target too: none is named, and the output resize writes nothing",
        _WARNING,
    ),
    "scaledobjects": (
        "ScaledObjects that may own a target: where KEDA is installed, the targets keep their sizes",
        _WARNING,
    ),
    "configmaps": ("priorities of groups, or which of them Cluster Autoscaler manages", _ERROR),
    "capacitybuffers": ("the definition of a chunk of the CapacityBuffer: its size is not written", _ERROR),
    "podtemplates": ("the definition of a chunk of the CapacityBuffer: its size is not written", _ERROR),
}
_LISTED: Final[Mapping[str, tuple[str, CheckStatus]]] = {
    "capacitybuffers": (
        "CapacityBuffers that an earlier configuration sized: after a kill or a restart, they keep the written size",
        _WARNING,
    ),
    "provisioningrequests": ("ProvisioningRequests that wait while nobody answers them: none is named", _WARNING),
}
_CLUSTER_API: Final[Mapping[str, tuple[str, CheckStatus]]] = {
    **dict.fromkeys(SCALABLE_RESOURCES.values(), ("the node groups of this kind", _ERROR)),
    "machines": ("which nodes belong to which node group", _ERROR),
    "clusters": ("pauses of whole clusters", _ERROR),
}
_INFRASTRUCTURE: Final = ("templates of node groups that have no node: such a group may be left out", _WARNING)
_WRITTEN: Final[Mapping[str, tuple[str, CheckStatus]]] = {
    **dict.fromkeys(
        (*SCALABLE_RESOURCES.values(), "clusters"),
        ("limits and pauses right before a write: sizes of node groups are not written", _ERROR),
    ),
    "machines": ("marks on the Machines to delete: no node is removed", _ERROR),
    "capacitybuffers": ("the size of the CapacityBuffer: it keeps the one that it has", _ERROR),
}


def lost_without(right: RoleRule) -> tuple[str, CheckStatus]:
    """Return what fails if a right is missing, and how severe that is."""
    if right.api_group == GROUP:
        return _STATUSES if right.subresource else (OBJECTS_LOST, _ERROR)
    if right.subresource == "scale":
        return _SCALE
    if right.verbs != WATCH:
        written = _LISTED if right.verbs == LIST else _WRITTEN
        return _LOST.get(right.resource) or written.get(right.resource) or _TARGET
    if right.api_group == CLUSTER_API_GROUP:
        return _CLUSTER_API.get(right.resource, _COUNTED)
    if right.api_group.endswith(f".{CLUSTER_API_GROUP}"):
        return _INFRASTRUCTURE
    return _WATCHED.get(right.resource) or _LOST.get(right.resource) or _COUNTED
