"""Node groups: nodes of one kind, of which there can be more or fewer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The settings that a group overrides; None if the setting for all groups holds."""

    utilization_threshold_ratio: float | None = None
    gpu_utilization_threshold_ratio: float | None = None
    unneeded_seconds: float | None = None
    unready_seconds: float | None = None
    max_node_provision_seconds: float | None = None
    zero_or_max: bool = False
    """Whether the group has either no node or all of them (`ZeroOrMaxNodeScaling`)."""
    ignore_daemon_sets_utilization: bool | None = None


@dataclass(frozen=True, slots=True)
class ScalableReference:
    """The object whose scale subresource holds the size of a group."""

    api_version: str
    resource: str
    """Plural name, such as `machinedeployments`."""
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`MachineDeployment capi-system/workers`."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ProviderReference:
    """The provider through which the size of a group is written."""

    provider: str
    """`externalGRPC`, or the name of a plugin with `plugin/` before it."""
    deletes_nodes: bool = False
    """Whether nodes may be drained and deleted through it."""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node as the group would add it, and the pods that would be on it from the start."""

    node: ClusterNode
    """No node has its name; labels have no `kubernetes.io/hostname`: each new node has its own."""
    pods: tuple[ClusterPod, ...] = ()
    """Of DaemonSets, and mirror pods of the node it was taken from; bound to nothing."""
    source: str = ""
    """Where it comes from, such as `node n7` or `template`."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """By DaemonSet of a tenant that does not count, since it asks for too much, what it would take."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A node group at one moment."""

    name: str
    min_size: int
    max_size: int
    target_size: int
    """The desired size; nodes may be on their way, or not have been removed yet."""
    nodes: tuple[str, ...] = ()
    """Names of the Node objects that belong to it."""
    template: NodeTemplate | None = None
    """None: there is neither a ready node nor a template, so it cannot be sized; `problem` says so."""
    price: float | None = None
    """Of one node for one hour, in any currency; None if it is not known."""
    options: GroupOptions = field(default_factory=GroupOptions)
    scalable: ScalableReference | None = None
    """The object that holds the size; None if there is none."""
    provider: ProviderReference | None = None
    """The provider that the size is written through; None if there is none."""
    autoscaler: str = ""
    """The name of another autoscaler that manages this group; empty if there is none."""
    paused: str = ""
    """Why the size must not be written, such as the annotation that pauses it; empty if nothing is against it."""
    gpu_label: str = ""
    """A further label of nodes with GPUs, which its provider states; empty if there is none."""
    deleting: tuple[str, ...] = ()
    """Nodes of the group that are being deleted, and are still among `nodes`."""
    problem: str = ""
    """Why the group is left out of the decision; empty if it takes part."""

    @property
    def is_writable(self) -> bool:
        """Whether the size can be written; otherwise it can only be recommended."""
        return self.scalable is not None or self.provider is not None


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """All node groups at one moment."""

    groups: tuple[NodeGroup, ...] = ()
    """Sorted by name; those with a problem included."""
    group_of: Mapping[str, str] = field(default_factory=dict)
    """Group by node; nodes outside of groups are absent."""
    problems: tuple[str, ...] = ()
    """Problems that concern more than one group, one sentence each."""
