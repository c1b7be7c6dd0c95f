"""The constraints that a pod's spec puts on where it may run, as values that equal pods share.

Every value can be the key of a dictionary. The meaning of each field is that of the scheduler's filter plugins
(`k8s.io/kubernetes/pkg/scheduler/framework/plugins`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adapter.foundation.objects.requirements import Requirement
    from adapter.foundation.objects.selectors import Selector

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
DEFAULT_SCHEDULER: Final = "default-scheduler"


class TaintEffect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Toleration:
    """`core/v1 Toleration`. An empty key with `Exists` tolerates every key; an empty effect, every effect."""

    key: str = ""
    operator: str = "Equal"
    """`Equal`, `Exists`, or the numeric `Lt` and `Gt` where the cluster has them."""
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements that a node must satisfy together; a term without any matches no node."""

    labels: tuple[Requirement, ...] = ()
    """`matchExpressions`."""
    name_in: tuple[str, ...] | None = None
    """`matchFields` of `metadata.name` with `In`; None if there is no such field."""
    name_not_in: tuple[str, ...] = ()
    """`matchFields` of `metadata.name` with `NotIn`."""


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A required term of inter-pod affinity or anti-affinity."""

    topology_key: str
    selector: Selector | None
    """The selector, which includes `matchLabelKeys` and `mismatchLabelKeys`; None matches no pod."""
    namespaces: frozenset[str]
    """The namespaces of the term, with the pod's own if the term names none and has no namespace selector."""
    namespace_selector: Selector | None = None
    """Selector of further namespaces by their labels; None selects none, and the empty selector selects all."""


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint with `whenUnsatisfiable: DoNotSchedule`."""

    topology_key: str
    max_skew: int
    selector: Selector | None
    """The selector, which includes `matchLabelKeys`; None matches no pod."""
    min_domains: int = 1
    honors_node_affinity: bool = True
    """`nodeAffinityPolicy`: whether nodes that node affinity or the node selector excludes are ignored."""
    honors_node_taints: bool = False
    """`nodeTaintsPolicy`."""


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """A host port: a port of the node that a container occupies."""

    protocol: str
    address: str
    """The address of the node; `0.0.0.0` for all addresses."""
    port: int


class LocalVolume(StrEnum):
    """A kind of volume whose content is lost when the pod leaves its node."""

    EMPTY_DIR = "emptyDir"
    HOST_PATH = "hostPath"


@dataclass(frozen=True, slots=True)
class PodScheduling:
    """The scheduling constraints in a pod's spec."""

    node_selector: tuple[tuple[str, str], ...] = ()
    """The required labels of a node, sorted by key."""
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    """Required node affinity: one of the terms must match; None if there are none."""
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims in the pod's namespace, those of ephemeral volumes included."""
    inline_volumes: tuple[str, ...] = ()
    """Disks that the spec names itself (`awsElasticBlockStore`, `gcePersistentDisk`, `iscsi`, `rbd`), as `KIND/ID` or
    `KIND/ID:ro`; two pods with one of them conflict on a node unless both are read-only."""
    local_volumes: tuple[tuple[str, LocalVolume], ...] = ()
    """Name and kind of each volume whose content is lost with its node; an emptyDir in memory is not among them."""
    scheduler_name: str = DEFAULT_SCHEDULER
    is_gated: bool = False
    """Whether a scheduling gate keeps the pod back."""
    resource_claims: tuple[str, ...] = ()
    """Names of the claims of dynamic resource allocation; what they need is not modelled, only that they exist."""


NO_CONSTRAINTS: Final = PodScheduling()
