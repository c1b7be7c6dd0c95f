"""The protocol of plugins: what a package provides so that its node groups can be sized.

A package names a factory as an entry point of the group `tidewatch.node_groups`:

    [project.entry-points."tidewatch.node_groups"]
    example = "example_cloud:provider"

    def provider(options: Mapping[str, object]) -> CloudProvider: ...

`options` has the keys of the configuration other than the name. The methods are those of Cluster Autoscaler's
interfaces CloudProvider and NodeGroup that a recommendation needs. Only `refresh` may ask the cloud, and it is called
once before each decision and each write; the other methods answer from memory. All are called by one thread at a time.
Sizes are recommended, and written only if the configuration says `writes: true`: then each group is a
`WritableNodeGroup`. `contract.check_provider` and `contract.check_writes` test an implementation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.model.groups import GroupOptions

ENTRY_POINTS: Final = "tidewatch.node_groups"


@dataclass(frozen=True, slots=True)
class ProviderNode:
    """The parts of a Node object that help to find the group of the node."""

    name: str
    provider_id: str = ""
    """`spec.providerID`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Only the annotations that the recommender reads."""


class InstanceState(StrEnum):
    """The state of an instance."""

    RUNNING = "running"
    CREATING = "creating"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class ProviderInstance:
    """A machine of a group, whether or not it has become a Node yet."""

    provider_id: str
    """The provider id that its Node has, or will have."""
    state: InstanceState = InstanceState.RUNNING
    error: str = ""
    """Why the cloud cannot make a machine that is being created, such as a shortage; empty if nothing prevents it."""


class ProviderNodeGroup(Protocol):
    """Machines of one kind, whose number can change."""

    def id(self) -> str:
        """Return the name of the group, which no other group has and which does not change."""

    def min_size(self) -> int:
        """Return the smallest size that is allowed."""

    def max_size(self) -> int:
        """Return the largest size that is allowed."""

    def target_size(self) -> int:
        """Return the desired size at the cloud, whether or not all machines have started."""

    def nodes(self) -> Sequence[ProviderInstance]:
        """Return the machines of the group, including those that are being created or deleted."""

    def template(self) -> Mapping[str, object] | None:
        """Return a new Node of the group as its JSON, with labels, taints, capacity and allocatable.

        It is used while the group has no ready node. None if it is not known.
        """

    def price(self) -> float | None:
        """Return the price of one node for one hour, in the same currency for all groups; None if it is not known."""

    def options(self) -> GroupOptions | None:
        """Return the settings that the group overrides; None if it overrides nothing."""


@runtime_checkable
class LabelsGpuNodes(Protocol):
    """A group whose provider has a label of its own for nodes with GPUs."""

    def gpu_label(self) -> str:
        """Return the key of the label; empty if there is none."""


@runtime_checkable
class AnswersLater(Protocol):
    """A group whose size and machines may have been learned before the refresh."""

    def age_seconds(self) -> float:
        """Return how many seconds old the size and the machines are; 0 if the refresh has asked for them."""


@runtime_checkable
class WritableNodeGroup(ProviderNodeGroup, Protocol):
    """A group whose size can be changed.

    Each method returns once the cloud has accepted the change, which the target size then shows. Any exception counts
    as a refusal by the cloud, except `OutcomeUnknownError`: after it, the change may have taken effect.
    """

    def increase_size(self, delta: int) -> None:
        """Request this number of additional nodes."""

    def decrease_target_size(self, delta: int) -> None:
        """Cancel requested nodes that have not joined yet; `delta` is negative. No machine is deleted."""

    def delete_nodes(self, nodes: Sequence[ProviderNode]) -> None:
        """Delete the machines of these nodes, which lowers the target size by as many.

        A machine that has failed before it became a node has its provider id as its name, too.
        """


class OutcomeUnknownError(Exception):
    """A change may or may not have taken effect: the recommender checks this before any other request."""


class CloudProvider(Protocol):
    """All node groups of one cloud."""

    def refresh(self) -> None:
        """Ask the cloud. After an exception of any type, its groups are left out of the decision."""

    def node_groups(self) -> Sequence[ProviderNodeGroup]:
        """Return all groups."""

    def node_group_for_node(self, node: ProviderNode) -> ProviderNodeGroup | None:
        """Return the group of a node; None if it belongs to none."""

    def close(self) -> None:
        """Release all resources. Nothing is called afterwards."""
