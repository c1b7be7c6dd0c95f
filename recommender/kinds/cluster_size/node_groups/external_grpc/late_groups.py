"""Groups of a provider that did not answer the last time: they are queried in the background and delay no decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.node_groups.external_grpc.channel import CallError
from recommender.kinds.cluster_size.wire.external_grpc_pb2 import (
    GroupRequest,
    NodeGroupNodesResponse,
    NodeGroupTargetSizeResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
    from recommender.kinds.cluster_size.node_groups.external_grpc.channel import BegunCall, ProviderChannel

_USABLE_SECONDS: Final = 20.0
"""An answer to a request older than this says too little about the present."""


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """The size and the machines of a group, which the provider stated in the background."""

    size: NodeGroupTargetSizeResponse | CallError
    machines: NodeGroupNodesResponse | CallError
    age_seconds: float = 0.0
    """How long before the present refresh the answer was requested."""

    @property
    def silence(self) -> CallError | None:
        """Return the error of a call without an answer; None if both calls had one."""
        ends = (one for one in (self.size, self.machines) if isinstance(one, CallError) and one.is_unanswered)
        return next(ends, None)


@dataclass(frozen=True, slots=True)
class _Asked:
    since: float
    failed: CallError
    """How the last call without an answer ended."""
    size: BegunCall[NodeGroupTargetSizeResponse]
    machines: BegunCall[NodeGroupNodesResponse]

    def answer(self, now: float) -> LateAnswer | None:
        """Return the answer; None while one of the calls is running."""
        if not (self.size.is_done and self.machines.is_done):
            return None
        return LateAnswer(self.size.answer(), self.machines.answer(), now - self.since)


class LateGroups:
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

    def answer(self, group: str) -> LateAnswer | None:
        """Return the answer of a group and stop querying it in the background; without an answer, it stays late.

        Return None if the answer is too old: the provider answers again, so the group is queried like the others. If it
        were queried in the background, no answer would ever be recent enough with decisions that are further apart.
        """
        asked = self._asked[group]
        found = asked.answer(self._clock())
        if found is None:
            return LateAnswer(asked.failed, asked.failed)
        if found.silence is None:
            del self._asked[group]
            return found if found.age_seconds <= _USABLE_SECONDS else None
        self.ask(group, found.silence)
        return LateAnswer(found.silence, found.silence)
