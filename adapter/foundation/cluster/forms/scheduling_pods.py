"""The parts of a pod's spec that restrict where it may run, as they are decoded.

The larger parts are kept as the bytes that arrived. These are equal for all pods of one controller, so they are
converted only once.
"""

from __future__ import annotations

import msgspec

from adapter.foundation.cluster.forms.pods import ContainerForm, LabelSelectorForm, PodForm, PodMeta, PodSpecForm

_ABSENT = msgspec.Raw()


class PortForm(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 ContainerPort`."""

    container_port: int = 0
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class PortedContainerForm(ContainerForm, gc=False):
    """`core/v1 Container` with its image and ports."""

    image: str = ""
    ports: list[PortForm] | None = None


class SchedulingMeta(PodMeta, gc=False, rename={"deletion_grace": "deletionGracePeriodSeconds"}):
    """The metadata of a pod, including its deletion timestamp and grace period."""

    deletion_grace: float | None = None


class SchedulingSpecForm(PodSpecForm, gc=False, rename="camel"):
    """`core/v1 PodSpec`, including what restricts where the pod may run."""

    containers: list[PortedContainerForm] | None = None  # type: ignore[assignment]  # a container with more fields
    init_containers: list[PortedContainerForm] | None = None  # type: ignore[assignment]  # likewise
    node_selector: msgspec.Raw = _ABSENT
    affinity: msgspec.Raw = _ABSENT
    spread_constraints: msgspec.Raw = msgspec.field(  # type: ignore[assignment]  # all of them as one text
        default=_ABSENT, name="topologySpreadConstraints"
    )
    tolerations: msgspec.Raw = _ABSENT
    volumes: msgspec.Raw = _ABSENT
    scheduling_gates: msgspec.Raw = _ABSENT
    resource_claims: msgspec.Raw = _ABSENT
    host_network: bool | None = None
    restart_policy: str | None = None
    termination_grace: float | None = msgspec.field(default=None, name="terminationGracePeriodSeconds")
    priority_class_name: str | None = None


class SchedulingPodForm(PodForm, gc=False, rename={"api_version": "apiVersion"}):
    """`core/v1 Pod`, including what restricts where it may run."""

    metadata: SchedulingMeta
    spec: SchedulingSpecForm | None = None
    kind: str = ""
    api_version: str = ""


class NodeExpressionForm(msgspec.Struct, gc=False):
    """`core/v1 NodeSelectorRequirement`."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTermForm(msgspec.Struct, gc=False, rename={"expressions": "matchExpressions", "fields": "matchFields"}):
    """`core/v1 NodeSelectorTerm`."""

    expressions: list[NodeExpressionForm] | None = None
    fields: list[NodeExpressionForm] | None = None


class NodeSelectorForm(msgspec.Struct, gc=False, rename={"terms": "nodeSelectorTerms"}):
    """`core/v1 NodeSelector`."""

    terms: list[NodeTermForm] | None = None


class NodeAffinityForm(msgspec.Struct, gc=False, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """`core/v1 NodeAffinity`; preferences restrict nothing."""

    required: NodeSelectorForm | None = None


class PodTermForm(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 PodAffinityTerm`."""

    topology_key: str = ""
    label_selector: LabelSelectorForm | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelectorForm | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinityForm(msgspec.Struct, gc=False, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """`core/v1 PodAffinity` and `PodAntiAffinity`."""

    required: list[PodTermForm] | None = None


class AffinityForm(
    msgspec.Struct, gc=False, rename={"node": "nodeAffinity", "pod": "podAffinity", "anti": "podAntiAffinity"}
):
    """`core/v1 Affinity`."""

    node: NodeAffinityForm | None = None
    pod: PodAffinityForm | None = None
    anti: PodAffinityForm | None = None


class SpreadForm(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 TopologySpreadConstraint`."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelectorForm | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class TolerationForm(msgspec.Struct, gc=False):
    """`core/v1 Toleration`."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class NamedForm(msgspec.Struct, gc=False):
    """A gate or a claim; only its name is read."""

    name: str = ""


class ClaimSourceForm(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 PersistentVolumeClaimVolumeSource`."""

    claim_name: str = ""


class EmptyDirForm(msgspec.Struct, gc=False):
    """`core/v1 EmptyDirVolumeSource`."""

    medium: str | None = None


class HostPathForm(msgspec.Struct, gc=False):
    """`core/v1 HostPathVolumeSource`; only its presence matters."""


class EphemeralForm(msgspec.Struct, gc=False):
    """`core/v1 EphemeralVolumeSource`; its claim is named `POD-VOLUME`."""


class DiskForm(msgspec.Struct, gc=False, rename="camel"):
    """The sources of disks that the spec names itself."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    pd_name: str = ""
    iqn: str = ""
    monitors: list[str] | None = None
    pool: str | None = None
    image: str = ""
    read_only: bool | None = None


class VolumeForm(msgspec.Struct, gc=False, rename="camel"):
    """`core/v1 Volume`."""

    name: str = ""
    persistent_volume_claim: ClaimSourceForm | None = None
    ephemeral: EphemeralForm | None = None
    empty_dir: EmptyDirForm | None = None
    host_path: HostPathForm | None = None
    aws_elastic_block_store: DiskForm | None = None
    gce_persistent_disk: DiskForm | None = None
    iscsi: DiskForm | None = None
    rbd: DiskForm | None = None
