"""The parts of workloads, budgets, storage, priorities and namespaces that are decoded.

Each form includes the object's kind, so that an object in a file is decoded only once.
"""

from __future__ import annotations

import msgspec

from adapter.foundation.cluster.forms.objects import NodeForm, NodeMeta, NodeSpec, NodeStatus, QuantityText
from adapter.foundation.cluster.forms.pods import LabelSelectorForm, OwnerForm  # noqa: TC001 - msgspec reads the annotations when it runs
from adapter.foundation.cluster.forms.scheduling_pods import NodeSelectorForm, SchedulingSpecForm  # noqa: TC001 - likewise
from adapter.foundation.objects.metadata import ObjectMeta


class OwnedMeta(ObjectMeta, gc=False, rename={"deleted": "deletionTimestamp", "owners": "ownerReferences"}):
    """The metadata of all kinds below."""

    uid: str = ""
    deleted: str | None = None
    owners: list[OwnerForm] | None = None
    annotations: msgspec.Raw = msgspec.Raw()


class KindForm(msgspec.Struct, gc=False):
    """The fields of every object."""

    metadata: OwnedMeta


class SizedNodeMeta(NodeMeta, gc=False, rename={"deleted": "deletionTimestamp"}):
    """The metadata of a Node, including what decides whether it may be removed."""

    deleted: str | None = None
    annotations: msgspec.Raw = msgspec.Raw()


class SizedNodeSpec(NodeSpec, gc=False, rename={"provider_id": "providerID"}):
    """`core/v1 NodeSpec` with the name of its machine."""

    provider_id: str | None = None


class NodeInfoForm(msgspec.Struct, gc=False, rename={"system_uuid": "systemUUID"}):
    """`core/v1 NodeSystemInfo`."""

    system_uuid: str | None = None


class SizedNodeStatus(NodeStatus, gc=False, rename={"node_info": "nodeInfo"}):
    """`core/v1 NodeStatus` with the identity of the machine."""

    node_info: NodeInfoForm | None = None


class SizedNodeForm(NodeForm, gc=False, rename={"api_version": "apiVersion"}):
    """`core/v1 Node`, including what decides whether it may be removed."""

    metadata: SizedNodeMeta
    spec: SizedNodeSpec | None = None
    status: SizedNodeStatus | None = None
    kind: str = ""
    api_version: str = ""


class TemplateMeta(msgspec.Struct, gc=False):
    """The metadata of a pod template."""

    labels: dict[str, str] | None = None
    annotations: msgspec.Raw = msgspec.Raw()


class TemplateForm(msgspec.Struct, gc=False):
    """`core/v1 PodTemplateSpec`."""

    metadata: TemplateMeta | None = None
    spec: SchedulingSpecForm | None = None


class WorkloadSpec(msgspec.Struct, gc=False):
    """The size of a workload, and its pod template, which is decoded separately."""

    replicas: int | None = None
    parallelism: int | None = None
    template: msgspec.Raw = msgspec.Raw()


class WorkloadForm(KindForm, gc=False):
    """A Deployment, StatefulSet, ReplicaSet, ReplicationController, DaemonSet or Job."""

    spec: WorkloadSpec | None = None


class BudgetSpec(msgspec.Struct, gc=False):
    """`policy/v1 PodDisruptionBudgetSpec`."""

    selector: LabelSelectorForm | None = None


class BudgetStatus(msgspec.Struct, gc=False, rename="camel"):
    """`policy/v1 PodDisruptionBudgetStatus`."""

    disruptions_allowed: int = 0


class BudgetForm(KindForm, gc=False):
    """`policy/v1 PodDisruptionBudget`."""

    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class ClaimResources(msgspec.Struct, gc=False):
    """`core/v1 VolumeResourceRequirements`."""

    requests: dict[str, QuantityText] | None = None


class ClaimSpec(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 PersistentVolumeClaimSpec`."""

    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None
    resources: ClaimResources | None = None


class PhaseStatus(msgspec.Struct, gc=False):
    """The phase of a volume or claim."""

    phase: str | None = None


class ClaimForm(KindForm, gc=False):
    """`core/v1 PersistentVolumeClaim`."""

    spec: ClaimSpec | None = None
    status: PhaseStatus | None = None


class VolumeAffinity(msgspec.Struct, gc=False):
    """`core/v1 VolumeNodeAffinity`."""

    required: NodeSelectorForm | None = None


class CsiSource(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 CSIPersistentVolumeSource`."""

    driver: str = ""
    volume_handle: str = ""


class ClaimReference(msgspec.Struct, gc=False):
    """The claim that a volume is bound to."""

    namespace: str = ""
    name: str = ""


class PersistentVolumeSpec(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 PersistentVolumeSpec`."""

    node_affinity: VolumeAffinity | None = None
    storage_class_name: str | None = None
    capacity: dict[str, QuantityText] | None = None
    access_modes: list[str] | None = None
    csi: CsiSource | None = None
    claim_ref: ClaimReference | None = None


class PersistentVolumeForm(KindForm, gc=False):
    """`core/v1 PersistentVolume`."""

    spec: PersistentVolumeSpec | None = None
    status: PhaseStatus | None = None


class TopologyExpression(msgspec.Struct, gc=False):
    """`core/v1 TopologySelectorLabelRequirement`."""

    key: str = ""
    values: list[str] | None = None


class TopologyTerm(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 TopologySelectorTerm`."""

    match_label_expressions: list[TopologyExpression] | None = None


class StorageClassForm(KindForm, gc=False, rename="camel"):
    """`storage/v1 StorageClass`."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class DriverLimit(msgspec.Struct, gc=False):
    """`storage/v1 VolumeNodeResources`."""

    count: int | None = None


class CsiDriver(msgspec.Struct, gc=False):
    """`storage/v1 CSINodeDriver`."""

    name: str = ""
    allocatable: DriverLimit | None = None


class CsiNodeSpec(msgspec.Struct, gc=False):
    """`storage/v1 CSINodeSpec`."""

    drivers: list[CsiDriver] | None = None


class CsiNodeForm(KindForm, gc=False):
    """`storage/v1 CSINode`."""

    spec: CsiNodeSpec | None = None


class PriorityClassForm(KindForm, gc=False, rename="camel"):
    """`scheduling/v1 PriorityClass`."""

    value: int = 0
    global_default: bool | None = None
