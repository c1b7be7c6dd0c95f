"""A provider behind Cluster Autoscaler's gRPC protocol, in the form of the plugin protocol."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeGuard

import grpc

from adapter.foundation.service.runtime.logs import StateLog
from recommender.kinds.cluster_size.node_groups.external_grpc.channel import CallError, ProviderChannel
from recommender.kinds.cluster_size.node_groups.external_grpc.group import ExternalGroup, GroupFacts
from recommender.kinds.cluster_size.node_groups.external_grpc.messages import node_message
from recommender.kinds.cluster_size.node_groups.external_grpc.slow_facts import SlowFact, SlowFacts
from recommender.kinds.cluster_size.node_groups.plugin_reading import check_count
from recommender.kinds.cluster_size.wire.external_grpc_pb2 import (
    Empty,
    GPULabelResponse,
    GroupRequest,
    NodeGroupForNodeRequest,
    NodeGroupForNodeResponse,
    NodeGroupNodesResponse,
    NodeGroupsResponse,
    NodeGroupTargetSizeResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
    from recommender.kinds.cluster_size.node_groups.external_grpc.channel import BegunCall
    from recommender.kinds.cluster_size.node_groups.protocol import ProviderNode
    from recommender.kinds.cluster_size.wire.external_grpc_pb2 import NodeGroup

_USABLE_SECONDS: Final = 20.0
"""An answer to a request older than this says too little about the present."""


@dataclass(frozen=True, slots=True)
class _Asked:
    since: float
    failed: CallError
    """How the last call without an answer ended."""
    size: BegunCall[NodeGroupTargetSizeResponse]
    machines: BegunCall[NodeGroupNodesResponse]

    def answer(self, now: float) -> GroupFacts | None:
        """Return the answer; None while one of the calls is running."""
        if not (self.size.is_done and self.machines.is_done):
            return None
        return GroupFacts(self.size.answer(), self.machines.answer(), age_seconds=now - self.since)


class _LateGroups:
    """The groups that are queried in the background. Not thread-safe."""

    def __init__(self, settings: ExternalGrpcGroups, channel: ProviderChannel, clock: Callable[[], float]) -> None:
        """Begin without any group."""
        self._settings = settings
        self._channel = channel
        self._clock = clock
        self._asked: dict[str, _Asked] = {}

    def __contains__(self, group: str) -> bool:
        """Return whether a group is queried in the background."""
        return group in self._asked

    def retain(self, groups: Container[str]) -> None:
        """Forget all other groups."""
        self._asked = {name: asked for name, asked in self._asked.items() if name in groups}

    def ask(self, group: str, failed: CallError) -> None:
        """Query a group that has not answered, without waiting for it."""
        request, seconds = GroupRequest(id=group), self._settings.timeout_seconds
        self._asked[group] = _Asked(
            self._clock(),
            failed,
            self._channel.begin("NodeGroupTargetSize", request, NodeGroupTargetSizeResponse, seconds),
            self._channel.begin("NodeGroupNodes", request, NodeGroupNodesResponse, seconds),
        )

    def answer(self, group: str) -> GroupFacts | None:
        """Return the answer of a group and stop querying it in the background; without an answer, it stays late.

        Return None if the answer is too old: the provider answers again, so the group is queried like the others. If it
        were queried in the background, no answer would ever be recent enough with decisions that are further apart.
        """
        asked = self._asked[group]
        found = asked.answer(self._clock())
        if found is None:
            return GroupFacts(asked.failed, asked.failed)
        if found.silence is None:
            del self._asked[group]
            return found if found.age_seconds <= _USABLE_SECONDS else None
        self.ask(group, found.silence)
        return GroupFacts(found.silence, found.silence)


_log = logging.getLogger(__name__)

_REFRESH_SECONDS: Final = 8.0
"""The limit for all calls of a refresh together, so that a group that hangs leaves time for a decision."""
_OWNER_SECONDS: Final = 300.0
"""How long the group of a node is remembered."""
_OUTSIDE_SECONDS: Final = 60.0
"""How long it is remembered that a node, whose machine no group lists, is outside all groups."""
_MOST_OWNERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class _Owner:
    group: str
    until: float


class ExternalGrpcProvider:
    """The groups of one provider. Not thread-safe."""

    def __init__(self, settings: ExternalGrpcGroups, clock: Callable[[], float] = time.monotonic) -> None:
        """Store the settings and prepare the channel; nothing is connected yet."""
        self._settings = settings
        self._channel = ProviderChannel(settings)
        self._clock = clock
        self._slow = SlowFacts(settings, self._channel, clock)
        self._late = _LateGroups(settings, self._channel, clock)
        self._groups: dict[str, ExternalGroup] = {}
        self._machines: dict[str, str] = {}
        """Group by provider id."""
        self._owners: dict[tuple[str, str], _Owner] = {}
        self._states = StateLog(_log)
        self._until = clock() + _REFRESH_SECONDS
        self._gpu_label: str | None = None

    def refresh(self) -> None:
        """Ask for all groups, their sizes and their machines. Raises CallError and CertificateFilesError.

        A failure for one group is a problem of that group alone.
        """
        self._until = self._clock() + _REFRESH_SECONDS
        self._channel.renew()
        self._ask_first()
        listed = self._channel.ask("NodeGroups", Empty(), NodeGroupsResponse, self._seconds()).nodeGroups
        check_count(len(listed))
        times = Counter(each.id for each in listed)
        if times[""]:
            message = "the provider of externalGRPC lists a group without an id, which is left out"
            self._states.failed("id", message, level=logging.WARNING)
        else:
            self._states.recovered("id", "all groups of the provider of externalGRPC have an id again")
        groups = {each.id: each for each in listed if each.id}
        stated = self._sizes_and_machines(groups)
        self._slow.retain(groups)
        label = self._gpu_label_of_nodes()
        facts = {name: replace(each, gpu_label=label, is_twice=times[name] > 1) for name, each in stated.items()}
        # The others come first, or they would have no time left again.
        ordered = sorted(groups, key=lambda name: (_is_silent(facts[name].size), self._slow.has_failed(name)))
        self._groups = {name: self._group(groups[name], facts[name]) for name in ordered}
        self._machines = {each: name for name, group in self._groups.items() for each in group.provider_ids()}

    def _ask_first(self) -> None:
        """Send the first call of a refresh; if it has no answer, the next refresh begins with a new connection.

        A machine that disappears without notice never closes its connections, and gRPC waits for up to two minutes
        before it connects again, or asks for the address again.
        """
        try:
            self._channel.ask("Refresh", Empty(), Empty, self._seconds())
        except CallError as error:
            if error.is_unanswered:
                self._channel.close()
            raise

    def _sizes_and_machines(self, groups: Iterable[str]) -> dict[str, GroupFacts]:
        """Return the size and the machines of each group. A group that was silent the last time is not waited for."""
        names = list(groups)
        self._late.retain(names)
        late = {name: self._late.answer(name) for name in names if name in self._late}
        found = {name: answer for name, answer in late.items() if answer is not None}
        requests = [GroupRequest(id=name) for name in names if name not in found]
        sizes = self._channel.ask_each("NodeGroupTargetSize", requests, NodeGroupTargetSizeResponse, self._seconds)
        pairs = list(zip(requests, sizes, strict=True))
        # A group that has not answered would only cost further time.
        asked = [request for request, size in pairs if not _is_silent(size)]
        answers = self._channel.ask_each("NodeGroupNodes", asked, NodeGroupNodesResponse, self._seconds)
        machines = dict(zip((request.id for request in asked), answers, strict=True))
        for request, size in pairs:
            found[request.id] = GroupFacts(size, size if _is_silent(size) else machines[request.id])
            if (silence := found[request.id].silence) is not None:
                self._late.ask(request.id, silence)
        return {name: found[name] for name in names}

    def _group(self, stated: NodeGroup, facts: GroupFacts) -> ExternalGroup:
        slow = SlowFact(0.0) if _is_silent(facts.size) else self._slow.of(stated.id, self._seconds())
        return ExternalGroup(stated, facts, slow, self._settings, self._channel)

    def _gpu_label_of_nodes(self) -> str:
        """Return the label of nodes with GPUs; it is requested until it is known."""
        if self._gpu_label is None:
            try:
                self._gpu_label = self._channel.ask("GPULabel", Empty(), GPULabelResponse, self._seconds()).label
            except CallError as error:
                # UNKNOWN is also what a provider states whose cloud does not answer at present.
                if error.code is grpc.StatusCode.UNIMPLEMENTED:
                    self._gpu_label = ""
        return self._gpu_label or ""

    def node_groups(self) -> Sequence[ExternalGroup]:
        """Return all groups."""
        return tuple(self._groups.values())

    def node_group_for_node(self, node: ProviderNode) -> ExternalGroup | None:
        """Return the group of a node, which is requested only once in a while. Raises CallError."""
        key = (node.name, node.provider_id)
        known, now = self._owners.get(key), self._clock()
        if known is not None and now < known.until and self._is_still_right(known.group, node):
            return self._groups.get(known.group)
        name = self._owner(node)
        if len(self._owners) >= _MOST_OWNERS:
            self._owners.clear()
        # The times are spread, so that not all groups are requested at the same time again.
        seconds = (_OWNER_SECONDS if name in self._groups else _OUTSIDE_SECONDS) * (0.5 + hash(key) % 1000 / 2000)
        self._owners[key] = _Owner(name, now + seconds)
        return self._groups.get(name)

    def _is_still_right(self, group: str, node: ProviderNode) -> bool:
        """Whether the remembered group exists or, for a node without a group, whether no group lists its machine."""
        return group in self._groups if group else node.provider_id not in self._machines

    def _owner(self, node: ProviderNode) -> str:
        request = NodeGroupForNodeRequest(node=node_message(node))
        try:
            found = self._channel.ask("NodeGroupForNode", request, NodeGroupForNodeResponse, self._seconds())
        except CallError as error:
            if error.is_unanswered:
                raise
            # The machines decide: if a node counted outside its group, the group would appear too small.
            return self._machines.get(node.provider_id, "")
        return found.nodeGroup.id if found.nodeGroup.id in self._groups else ""

    def close(self) -> None:
        """End the connection. The provider's own `Cleanup` is for a process that owns it, so it is not called."""
        self._channel.close()

    def _seconds(self) -> float:
        return min(self._settings.timeout_seconds, self._until - self._clock())


def _is_silent(answer: object) -> TypeGuard[CallError]:
    """Return whether a call has had no answer."""
    return isinstance(answer, CallError) and answer.is_unanswered
