"""The writers of cluster size decisions: sizes of node groups, and CapacityBuffers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.group_writes import PROVIDER_API, buffer_target
from recommender.kinds.cluster_size.outcome import SizeWrites
from recommender.outputs.pending_writes import PendingWrite
from recommender.running.sizes.withdrawn_buffers import Withdrawals, buffers_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loop import Decision
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.model.size_settings import BufferSettings
    from recommender.outputs.scale_writer import ScaleWriter

_log = logging.getLogger(__name__)

_WITHDRAWN: Final = "it is no longer sized, so its previous size is restored"


@dataclass(slots=True)
class SizeWriters:
    """Carries out cluster size decisions. A poll without a new decision changes nothing."""

    groups: ScaleWriter
    """Writes the sizes of groups that are objects."""
    buffers: ScaleWriter
    resolve: ResolveResource
    withdrawals: Withdrawals
    provided: ScaleWriter | None = None
    """Writes the sizes of groups of providers."""

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:
        """Begin to carry out the decisions of `now`, in Unix seconds; return at once."""
        self.withdrawals.follow(configuration)
        withdrawn, sized = self.withdrawals.due(), buffers_of(configuration)
        scaled = configuration.names_with(Output.SCALE)
        for writer in self._group_writers():
            writer.retain(scaled)
        self.buffers.retain({*sized, *withdrawn})
        made = {each.record.name: each.writes for each in decisions if isinstance(each.writes, SizeWrites)}
        for name, writes in made.items():
            if name in scaled:
                self._want_groups(name, writes.groups.writes)
        sizes = {name: self._sizes(name, writes) for name, writes in made.items() if name in sized}
        until = now + configuration.stale_after_seconds
        for name in {*sizes, *(name for name in withdrawn if name not in sized)}:
            former = self._withdrawals_of(name, withdrawn.get(name, ()), until)
            self.buffers.follow_writes(name, (*sizes.get(name, ()), *former))

    def reconfigured(self, configuration: Configuration) -> None:
        """Stop sending for recommendations that no longer have the output. May be called from any thread."""
        self.withdrawals.follow(configuration)
        for writer in self._group_writers():
            writer.retain(configuration.names_with(Output.SCALE))
        self.buffers.retain(buffers_of(configuration))

    def retain(self, names: Collection[str]) -> None:
        """Stop sending for all recommendations except `names`. A withdrawal goes on with the next decision."""
        for writer in (*self._group_writers(), self.buffers):
            writer.retain(names)

    def clear(self) -> None:
        """Abandon everything that is under way: another process leads, or this one ends."""
        for writer in (*self._group_writers(), self.buffers):
            writer.clear()

    def _group_writers(self) -> tuple[ScaleWriter, ...]:
        return (self.groups,) if self.provided is None else (self.groups, self.provided)

    def _want_groups(self, name: str, writes: Sequence[PendingWrite]) -> None:
        self.groups.follow_writes(name, [write for write in writes if write.target.api_version != PROVIDER_API])
        if self.provided is not None:
            self.provided.follow_writes(name, [write for write in writes if write.target.api_version == PROVIDER_API])

    def _sizes(self, name: str, writes: SizeWrites) -> tuple[PendingWrite, ...]:
        size = writes.buffer
        if size is None or size.replicas is None:
            return ()
        return tuple(
            PendingWrite(name, target, size.replicas, writes.valid_until, size.detail)
            for target in self._targets((size.buffer,))
        )

    def _withdrawals_of(self, name: str, buffers: Iterable[BufferSettings], until: float) -> tuple[PendingWrite, ...]:
        return tuple(
            PendingWrite(name, target, 0, until, _WITHDRAWN, withdraws=True) for target in self._targets(buffers)
        )

    def _targets(self, buffers: Iterable[BufferSettings]) -> list[TargetReference]:
        try:
            return [buffer_target(buffer, self.resolve) for buffer in buffers]
        except (UnknownResourceError, KubernetesError) as error:
            _log.warning("the CapacityBuffer is not written", extra=fields(reason=str(error)))
            return []
