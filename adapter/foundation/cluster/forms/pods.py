"""The parts of pods, and of the objects that select pods, that are decoded."""

from __future__ import annotations

import msgspec

from adapter.foundation.cluster.forms.objects import QuantityText  # noqa: TC001 - msgspec reads the annotations when it runs
from adapter.foundation.objects.metadata import ObjectMeta


class OwnerForm(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    """`meta/v1 OwnerReference`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class PodMeta(
    ObjectMeta,
    gc=False,
    rename={"created": "creationTimestamp", "deleted": "deletionTimestamp", "owners": "ownerReferences"},
):
    """The metadata of a Pod."""

    uid: str = ""
    created: str | None = None
    deleted: str | None = None
    owners: list[OwnerForm] | None = None
    annotations: msgspec.Raw = msgspec.Raw()
    """The annotations, which are decoded only if one of them is needed, since they may be far larger than the rest."""


class ResourcesForm(msgspec.Struct, gc=False):
    """`core/v1 ResourceRequirements`."""

    requests: dict[str, QuantityText] | None = None
    limits: dict[str, QuantityText] | None = None


class ContainerForm(msgspec.Struct, gc=False, rename={"restart_policy": "restartPolicy"}):
    """`core/v1 Container`."""

    name: str = ""
    resources: ResourcesForm | None = None
    restart_policy: str | None = None


class PodSpecForm(
    msgspec.Struct,
    gc=False,
    rename={
        "node": "nodeName",
        "init_containers": "initContainers",
        "scheduler_name": "schedulerName",
        "spread_constraints": "topologySpreadConstraints",
        "resource_claims": "resourceClaims",
    },
):
    """`core/v1 PodSpec`."""

    node: str | None = None
    containers: list[ContainerForm] | None = None
    init_containers: list[ContainerForm] | None = None
    overhead: dict[str, QuantityText] | None = None
    resources: ResourcesForm | None = None
    priority: int | None = None
    scheduler_name: str | None = None
    spread_constraints: list[msgspec.Raw] | None = None
    resource_claims: msgspec.Raw = msgspec.Raw()


class PodConditionForm(msgspec.Struct, gc=False, rename={"changed": "lastTransitionTime"}):
    """`core/v1 PodCondition`."""

    type: str = ""
    status: str = ""
    changed: str | None = None
    reason: str | None = None


class TerminatedForm(msgspec.Struct, gc=False, rename={"finished": "finishedAt"}):
    """`core/v1 ContainerStateTerminated`."""

    finished: str | None = None


class ContainerStateForm(msgspec.Struct, gc=False):
    """`core/v1 ContainerState`."""

    terminated: TerminatedForm | None = None


class ContainerStatusForm(msgspec.Struct, gc=False, rename={"allocated": "allocatedResources"}):
    """`core/v1 ContainerStatus`. Its amounts, which are equal for most pods of a controller, are kept as bytes."""

    name: str = ""
    state: ContainerStateForm | None = None
    resources: msgspec.Raw = msgspec.Raw()
    allocated: msgspec.Raw = msgspec.Raw()


class PodStatusForm(
    msgspec.Struct,
    gc=False,
    rename={
        "containers": "containerStatuses",
        "init_containers": "initContainerStatuses",
        "nominated_node": "nominatedNodeName",
        "allocated": "allocatedResources",
    },
):
    """`core/v1 PodStatus`. The amounts of the pod as a whole are kept as bytes."""

    phase: str | None = None
    conditions: list[PodConditionForm] | None = None
    containers: list[ContainerStatusForm] | None = None
    init_containers: list[ContainerStatusForm] | None = None
    nominated_node: str | None = None
    resources: msgspec.Raw = msgspec.Raw()
    allocated: msgspec.Raw = msgspec.Raw()
    resize: str | None = None
    """The state of a resize in place, before Kubernetes 1.33; later versions have a condition."""


class PodForm(msgspec.Struct, gc=False):
    """`core/v1 Pod`."""

    metadata: PodMeta
    spec: PodSpecForm | None = None
    status: PodStatusForm | None = None


class SelectingMeta(ObjectMeta, gc=False):
    """The metadata of an object that selects pods."""

    uid: str = ""


class SelectingSpec(msgspec.Struct, gc=False):
    """The selector: a map of labels (Service, ReplicationController), or a LabelSelector."""

    selector: msgspec.Raw = msgspec.Raw()
    replicas: int | None = None


class SelectingForm(msgspec.Struct, gc=False):
    """A Service, ReplicationController, ReplicaSet or StatefulSet."""

    metadata: SelectingMeta
    spec: SelectingSpec | None = None


class ExpressionForm(msgspec.Struct, gc=False):
    """`meta/v1 LabelSelectorRequirement`."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelectorForm(msgspec.Struct, gc=False, rename={"labels": "matchLabels", "expressions": "matchExpressions"}):
    """`meta/v1 LabelSelector`."""

    labels: dict[str, str] | None = None
    expressions: list[ExpressionForm] | None = None
