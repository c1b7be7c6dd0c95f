"""Node groups: nodes of one kind, whose number can change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from recommender.decisions.record import TargetReference

MOST_NODES: Final = 100_000
"""The most nodes of a group: they take about a second and 150 MiB to simulate, and exceed what Kubernetes supports in a
cluster."""


def size_problem(target_size: int, min_size: int) -> str:
    """Return the problem of an impossibly large size, of which each missing node would be simulated; empty if none."""
    for name, size in (("size", target_size), ("minimum", min_size)):
        if size > MOST_NODES:
            return f"its {name} is {size}, and no node group may have more than {MOST_NODES} nodes: correct it"
    return ""


def limits_problem(size: int, current: int, min_size: int, max_size: int) -> str:
    """Return why a group of a current size must not get this one, which is outside of its limits; empty if it may.

    It may if the size is nearer to the limits than the current one: a group whose maximum was lowered still loses the
    nodes that nobody needs, and one whose minimum was raised grows as far as other limits allow.
    """
    if min_size <= size <= max_size or current < size < min_size or max_size < size < current:
        return ""
    return f"{size} is outside of its limits, which are {min_size} to {max_size}"


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The settings that a group overrides; None if the setting for all groups applies."""

    utilization_threshold_ratio: float | None = None
    gpu_utilization_threshold_ratio: float | None = None
    unneeded_seconds: float | None = None
    unready_seconds: float | None = None
    max_node_provision_seconds: float | None = None
    zero_or_max: bool = False
    """Whether the group has either no node or all of them (`ZeroOrMaxNodeScaling`)."""
    ignore_daemon_sets_utilization: bool | None = None


@dataclass(frozen=True, slots=True)
class ProviderReference:
    """The provider through which the size of a group is written."""

    provider: str
    """`externalGRPC`, or `plugin/` and the name of a plugin."""
    deletes_nodes: bool = False
    """Whether nodes may be drained and deleted through the provider."""


@dataclass(frozen=True, slots=True)
class SizeManager:
    """A field manager that wrote `spec.replicas` of the object that holds a group's size."""

    manager: str
    time: float | None
    """When it last changed its fields, in Unix seconds; None if that is not known."""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node that the group would add, with the pods that would be on it from the start."""

    node: ClusterNode
    """The node, whose name no real node has. Its labels have no `kubernetes.io/hostname`, since that differs for each
    new node."""
    pods: tuple[ClusterPod, ...] = ()
    """The pods of DaemonSets, and the mirror pods of the node that the template was taken from; they are not bound."""
    source: str = ""
    """Where the template comes from, such as `node n7` or `template`."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The requests of tenants' DaemonSets that are too large to count, by DaemonSet."""


@dataclass(frozen=True, slots=True)
class UnregisteredMachine:
    """A machine that its provider lists, and that has no Node in the cluster."""

    provider_id: str
    error: str = ""
    """Why the provider cannot create the machine; empty if it states nothing of the kind."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A node group at one moment."""

    name: str
    min_size: int
    max_size: int
    target_size: int
    """The desired size; nodes may be on their way, or not have been removed yet."""
    nodes: tuple[str, ...] = ()
    """Names of the Node objects that belong to the group."""
    template: NodeTemplate | None = None
    """The template; None if there is neither a ready node nor a template, so the group cannot be sized, as `problem`
    says."""
    price: float | None = None
    """The price of one node for one hour, in any currency; None if it is not known."""
    options: GroupOptions = field(default_factory=GroupOptions)
    scalable: TargetReference | None = None
    """The object that holds the size; None if there is none."""
    size_managers: tuple[SizeManager, ...] = ()
    provider: ProviderReference | None = None
    """The provider that the size is written through; None if there is none."""
    autoscaler: str = ""
    """The name of another autoscaler that manages this group; empty if there is none."""
    paused: str = ""
    """Why the size must not be written, such as the annotation that pauses it; empty if it may be written."""
    gpu_label: str = ""
    """A further label of nodes with GPUs, which its provider states; empty if there is none."""
    deleting: tuple[str, ...] = ()
    """Nodes of the group that are being deleted, and are still among `nodes`."""
    failures: tuple[str, ...] = ()
    """Why machines that were requested cannot be made, one text for each of them."""
    unregistered: tuple[UnregisteredMachine, ...] = ()
    """The machines of a provider's group that are not nodes, except those that are being deleted."""
    joined: int = 0
    """How many machines of a provider's group are nodes, except those that are being deleted."""
    unregistered_doubt: str = ""
    """Why some of these may be nodes all the same, so that none is deleted; empty if none of them is a node."""
    held: str = ""
    """Why the group must not grow now, although it takes part in the decision; empty if it may grow."""
    problem: str = ""
    """Why the group is left out of the decision; empty if it takes part."""

    @property
    def surplus(self) -> int:
        """How many nodes of a provider's group, besides those being deleted, its size does not count.

        A provider may show its size late or wrongly, or assign nodes of other groups to it.
        """
        present = len(self.nodes) - len(self.deleting)
        return 0 if self.provider is None else max(0, present - self.target_size)

    @property
    def sure_size(self) -> int:
        """How many nodes the group certainly has, except those being deleted; this must not fall below its minimum.

        Nodes that were requested and have not arrived may never arrive.
        """
        staying = len(self.nodes) - len(self.deleting)
        if self.surplus:
            # A size that counts too few nodes may still count all of those that go.
            return self.target_size - len(self.deleting)
        # A size that was lowered for the nodes that go counts them no more.
        return min(self.target_size, staying)

    @property
    def largest_size(self) -> int:
        """The largest size that may be written: with it, the group has no more nodes than its maximum."""
        return self.max_size - self.surplus

    @property
    def is_writable(self) -> bool:
        """Whether the size can be written; otherwise it can only be recommended."""
        return self.scalable is not None or self.provider is not None


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """All node groups at one moment."""

    groups: tuple[NodeGroup, ...] = ()
    """The groups sorted by name, including those with a problem."""
    group_of: Mapping[str, str] = field(default_factory=dict)
    """The group of each node; nodes outside groups are absent."""
    problems: tuple[str, ...] = ()
    """Problems that concern more than one group, one sentence each."""
    created: Mapping[str, float] = field(default_factory=dict)
    """When each node of the cluster was created, in Unix seconds; a node that does not state it is absent."""
