"""The kinds that are read in addition to nodes and pods when nodes are sized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from adapter.foundation.cluster.facts.storage import claim_of, csi_node_of, storage_class_of, volume_of
from adapter.foundation.cluster.facts.workloads import (
    NamespaceFacts,
    PriorityClassFacts,
    WorkloadRecord,
    budget_of,
    namespace_of,
    priority_class_of,
    workload_of,
)
from adapter.foundation.cluster.forms.scheduling_objects import (
    BudgetForm,
    ClaimForm,
    CsiNodeForm,
    KindForm,
    PersistentVolumeForm,
    PriorityClassForm,
    StorageClassForm,
    WorkloadForm,
)
from adapter.foundation.cluster.values.storage import CsiNodeFacts, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.cluster.values.workloads import DisruptionBudget
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource

SchedulingValue: TypeAlias = (
    WorkloadRecord
    | DisruptionBudget
    | VolumeClaim
    | Volume
    | StorageClassFacts
    | CsiNodeFacts
    | PriorityClassFacts
    | NamespaceFacts
)


@dataclass(frozen=True, slots=True)
class SchedulingKind:
    """A kind of object, and how its values are made."""

    resource: Resource
    form: type[KindForm]
    convert: Callable[[Any], SchedulingValue]
    """Makes the value of a decoded object; raises FactError."""

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.resource.kind


def _kind(group: str, name: str, form: type[KindForm], convert: Callable[[Any], SchedulingValue]) -> SchedulingKind:
    return SchedulingKind(find_resource(BUILT_IN, group, name), form, convert)


DAEMON_SET: Final = "DaemonSet"
WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet", DAEMON_SET, "ReplicationController", "Job")
_GROUPS: Final = {"ReplicationController": "", "Job": "batch"}

SCHEDULING_KINDS: Final = (
    *(_kind(_GROUPS.get(kind, "apps"), kind, WorkloadForm, partial(workload_of, kind)) for kind in WORKLOADS),
    _kind("policy", "PodDisruptionBudget", BudgetForm, budget_of),
    _kind("", "Namespace", KindForm, namespace_of),
    _kind("", "PersistentVolumeClaim", ClaimForm, claim_of),
    _kind("", "PersistentVolume", PersistentVolumeForm, volume_of),
    _kind("storage.k8s.io", "StorageClass", StorageClassForm, storage_class_of),
    _kind("storage.k8s.io", "CSINode", CsiNodeForm, csi_node_of),
    _kind("scheduling.k8s.io", "PriorityClass", PriorityClassForm, priority_class_of),
)
