"""Who writes what cluster size decisions ask for: sizes of node groups, and CapacityBuffers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.objects.resources import UnknownResourceError
from adapter.service.runtime.logs import fields
from recommender.decisions.settings import Output
from recommender.outputs.sizes.group_wishes import buffer_target
from recommender.outputs.wishes import Wish
from recommender.running.sizing.outcome import SizeDecision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.objects.resources import ResolveResource
    from recommender.configuration.model import Configuration
    from recommender.decisions.loop import Decision
    from recommender.outputs.scale import ScaleWriter

_log = logging.getLogger(__name__)


class SizeWriters:
    """Carries cluster size decisions out. A poll in which no new one has been made changes nothing."""

    def __init__(self, groups: ScaleWriter, buffers: ScaleWriter, resolve: ResolveResource) -> None:
        self._groups = groups
        self._buffers = buffers
        self._resolve = resolve

    def act(self, configuration: Configuration, decisions: Sequence[Decision]) -> None:
        """Begin to carry out the decisions; returns at once."""
        self.reconfigured(configuration)
        outputs = {each.policy.name: each.policy.outputs for each in configuration.recommendations}
        for decision in decisions:
            if not isinstance(decision, SizeDecision):
                continue
            name = decision.record.name
            if Output.SCALE in outputs[name]:
                self._groups.wanted(name, decision.groups.wishes)
            if Output.CAPACITY_BUFFER in outputs[name]:
                self._buffers.wanted(name, self._of_buffer(decision))

    def reconfigured(self, configuration: Configuration) -> None:
        """Send nothing any more for recommendations without the output. May be called from any thread."""
        self._groups.retain(_names(configuration, Output.SCALE))
        self._buffers.retain(_names(configuration, Output.CAPACITY_BUFFER))

    def clear(self) -> None:
        """Abandon what is under way: another process leads, or this one ends."""
        self._groups.clear()
        self._buffers.clear()

    def _of_buffer(self, decision: SizeDecision) -> tuple[Wish, ...]:
        size = decision.buffer
        if size is None or size.replicas is None:
            return ()
        try:
            target = buffer_target(size.buffer, self._resolve)
        except UnknownResourceError as error:
            _log.warning("the CapacityBuffer is not written", extra=fields(reason=str(error)))
            return ()
        name = decision.record.name
        return (Wish(name, target, size.replicas, decision.valid_until, size.detail),)


def _names(configuration: Configuration, output: Output) -> set[str]:
    return {each.policy.name for each in configuration.recommendations if output in each.policy.outputs}
