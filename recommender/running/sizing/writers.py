"""Who writes what cluster size decisions ask for: sizes of node groups, and CapacityBuffers."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from adapter.objects.resources import UnknownResourceError
from adapter.service.runtime.logs import fields
from recommender.decisions.settings import Output
from recommender.outputs.sizes.group_wishes import buffer_target
from recommender.outputs.wishes import Wish
from recommender.running.sizing.outcome import SizeDecision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.objects.resources import ResolveResource
    from recommender.configuration.model import Configuration
    from recommender.decisions.loop import Decision
    from recommender.decisions.record import TargetReference
    from recommender.outputs.scale import ScaleWriter

RETURN_SECONDS: Final = 60.0
"""How long it is tried to put back the size of a CapacityBuffer that nothing sizes any more."""

_log = logging.getLogger(__name__)


class SizeWriters:
    """Carries cluster size decisions out. A poll in which no new one has been made changes nothing.

    A CapacityBuffer that this process has sized, and that no recommendation sizes any more, gets its former size back.
    """

    def __init__(
        self,
        groups: ScaleWriter,
        buffers: ScaleWriter,
        resolve: ResolveResource,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._groups = groups
        self._buffers = buffers
        self._resolve = resolve
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._sized: dict[str, TargetReference] = {}
        """The CapacityBuffer of each recommendation."""
        self._returns: tuple[Wish, ...] = ()
        """Sizes that are being put back."""

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
                self._size_buffer(name, self._of_buffer(decision))

    def reconfigured(self, configuration: Configuration) -> None:
        """Send nothing any more for recommendations without the output. May be called from any thread."""
        self._groups.retain(_names(configuration, Output.SCALE))
        names = _names(configuration, Output.CAPACITY_BUFFER)
        with self._lock:
            gone = {name: target for name, target in self._sized.items() if name not in names}
            for name, target in gone.items():
                del self._sized[name]
                self._put_back(name, target)
            self._returns = tuple(wish for wish in self._returns if wish.valid_until > self._wall_clock())
            self._buffers.retain(names | {wish.recommendation for wish in self._returns})
            for name in gone:
                self._buffers.wanted(name, self._returns_of(name))

    def clear(self) -> None:
        """Abandon what is under way: another process leads, or this one ends."""
        self._groups.clear()
        with self._lock:
            self._sized.clear()
            self._returns = ()
            self._buffers.clear()

    def _size_buffer(self, name: str, wishes: tuple[Wish, ...]) -> None:
        targets = {wish.target for wish in wishes}
        with self._lock:
            former = self._sized.get(name)
            if former is not None and targets and former not in targets:
                self._put_back(name, former)
            self._sized.update((name, target) for target in targets)
            self._returns = tuple(wish for wish in self._returns if wish.target not in targets)
            self._buffers.wanted(name, (*wishes, *self._returns_of(name)))

    def _put_back(self, name: str, target: TargetReference) -> None:
        until = self._wall_clock() + RETURN_SECONDS
        wish = Wish(name, target, 0, until, "no recommendation sizes it any more", withdraws=True)
        self._returns = (*self._returns, wish)

    def _returns_of(self, name: str) -> tuple[Wish, ...]:
        return tuple(wish for wish in self._returns if wish.recommendation == name)

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
