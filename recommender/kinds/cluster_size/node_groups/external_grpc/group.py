"""One group of a provider behind Cluster Autoscaler's gRPC protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.node_groups.external_grpc.channel import CallError
from recommender.kinds.cluster_size.node_groups.external_grpc.messages import instances_of, node_message
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError
from recommender.kinds.cluster_size.node_groups.protocol import OutcomeUnknownError
from recommender.kinds.cluster_size.wire.external_grpc_pb2 import (
    Empty,
    NodeGroupDeleteNodesRequest,
    NodeGroupNodesResponse,
    NodeGroupTargetSizeResponse,
    SizeChangeRequest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.model.groups import GroupOptions
    from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
    from recommender.kinds.cluster_size.node_groups.external_grpc.channel import ProviderChannel, WireMessage
    from recommender.kinds.cluster_size.node_groups.external_grpc.slow_facts import SlowFact
    from recommender.kinds.cluster_size.node_groups.protocol import ProviderInstance, ProviderNode
    from recommender.kinds.cluster_size.wire.external_grpc_pb2 import NodeGroup


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The provider's statements about a group at one moment, or the reason why the call failed."""

    size: NodeGroupTargetSizeResponse | CallError
    machines: NodeGroupNodesResponse | CallError
    gpu_label: str = ""
    """The label of the provider's nodes with GPUs; empty if there is none."""
    is_twice: bool = False
    """Whether the group's id is listed more than once."""
    age_seconds: float = 0.0
    """How long before the refresh the size and the machines were requested."""

    @property
    def silence(self) -> CallError | None:
        """Return the error of a call without an answer; None if both calls had one."""
        ends = (one for one in (self.size, self.machines) if isinstance(one, CallError) and one.is_unanswered)
        return next(ends, None)


@dataclass(slots=True)
class ExternalGroup:
    """A group whose facts are read from memory, and whose changes are calls."""

    stated: NodeGroup
    facts: GroupFacts
    """The facts of the last refresh."""
    slow: SlowFact
    settings: ExternalGrpcGroups
    channel: ProviderChannel

    def id(self) -> str:
        """Return the name of the group."""
        return self.stated.id

    def min_size(self) -> int:
        """Return the smallest size that is allowed. Raises PluginError if the group cannot be used."""
        if self.facts.is_twice:
            raise PluginError("NodeGroups lists the id twice")
        if self.slow.problem:
            raise PluginError(self.slow.problem)
        return self.stated.minSize

    def max_size(self) -> int:
        """Return the largest size that is allowed."""
        return self.stated.maxSize

    def target_size(self) -> int:
        """Return the desired size. Raises PluginError."""
        if isinstance(self.facts.size, CallError):
            raise PluginError(str(self.facts.size))
        return self.facts.size.targetSize

    def nodes(self) -> Sequence[ProviderInstance]:
        """Return the machines. Raises PluginError."""
        if isinstance(self.facts.machines, CallError):
            raise PluginError(str(self.facts.machines))
        return instances_of(self.facts.machines.instances)

    def provider_ids(self) -> tuple[str, ...]:
        """Return the provider ids of the machines; none if they are not known."""
        machines = self.facts.machines
        return () if isinstance(machines, CallError) else tuple(each.id for each in machines.instances)

    def template(self) -> Mapping[str, object] | None:
        """Return the Node that the group would create, as JSON; None if it is not known."""
        return self.slow.template

    def price(self) -> float | None:
        """Return the price of one node for one hour; None if it is not known."""
        return self.slow.price

    def options(self) -> GroupOptions | None:
        """Return the options that the group overrides; None if it overrides none."""
        return self.slow.options

    def gpu_label(self) -> str:
        """Return the label of nodes with GPUs."""
        return self.facts.gpu_label

    def age_seconds(self) -> float:
        """Return how many seconds old the size and the machines are; a late answer may be older than the refresh."""
        return self.facts.age_seconds

    def increase_size(self, delta: int) -> None:
        """Request more nodes. Raises CallError and OutcomeUnknownError."""
        self._change("NodeGroupIncreaseSize", SizeChangeRequest(delta=delta, id=self.id()))

    def decrease_target_size(self, delta: int) -> None:
        """Cancel requested nodes. Raises CallError and OutcomeUnknownError."""
        self._change("NodeGroupDecreaseTargetSize", SizeChangeRequest(delta=delta, id=self.id()))

    def delete_nodes(self, nodes: Sequence[ProviderNode]) -> None:
        """Delete the machines of these nodes. Raises CallError and OutcomeUnknownError."""
        request = NodeGroupDeleteNodesRequest(nodes=[node_message(each) for each in nodes], id=self.id())
        self._change("NodeGroupDeleteNodes", request)

    def _change(self, method: str, request: WireMessage) -> None:
        try:
            self.channel.ask(method, request, Empty, self.settings.timeout_seconds)
        except CallError as error:
            if error.may_have_had_an_effect:
                raise OutcomeUnknownError(str(error)) from error
            raise
