"""Remembers the sizes that this process wrote, and marks targets whose size another recommender has replaced.

    own = OwnWrites(clock.wall)
    look = own.marked(lookups.look)

Recommenders of two installations do not know each other, and all of them write as the same field manager. So if that
manager owns `spec.replicas` with another size than this process wrote last, another one wrote it. This only holds while
no other process of this installation writes, and so only with a Lease.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.sources.kubernetes.client import USER_AGENT
from recommender.configuration.configured_targets import TargetIdentity, identity_of
from recommender.decisions.inputs import HELD_SECONDS, ReplacedSize
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.decisions.record import TargetReference
    from recommender.outputs.pending_writes import PendingWrite
    from recommender.outputs.write_attempt import ScaleOutcome
    from recommender.running.inputs.input_gathering import ReadTargets, TargetInput


@dataclass(frozen=True, slots=True)
class _Written:
    replicas: int
    time: float
    """When the write was answered, in Unix seconds."""
    uid: str
    """The UID of the target; empty if it is not known."""


class OwnWrites:
    """The size that this process wrote last to each target. Thread-safe."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """`wall` returns Unix seconds, by the same clock as the times of look-ups."""
        self._wall = wall
        self._lock = threading.Lock()
        self._written: dict[TargetIdentity, _Written] = {}
        self._sent: dict[TargetIdentity, PendingWrite] = {}
        """The last write to each target that has no answer yet."""

    def begin(self, write: PendingWrite) -> None:
        """Forget the last size before a write is sent: it may take effect before its answer arrives, or without one."""
        target, now = identity_of(write.target), self._wall()
        with self._lock:
            self._written.pop(target, None)
            # An attempt that failed unexpectedly has no outcome.
            self._sent = {each: sent for each, sent in self._sent.items() if now < sent.valid_until}
            self._sent[target] = write

    def note(self, outcome: ScaleOutcome) -> None:
        """Remember the size that was stored, if any, unless the next write to the target has begun."""
        target, now = identity_of(outcome.write.target), self._wall()
        with self._lock:
            self._written = {each: last for each, last in self._written.items() if now - last.time <= HELD_SECONDS}
            if self._sent.get(target) is outcome.write:
                del self._sent[target]
                if outcome.result is ScaleResult.OK and outcome.stored is not None:
                    self._written[target] = _Written(outcome.stored, now, outcome.uid)

    def forget_target(self, target: TargetReference) -> None:
        """Forget the size of a target, since this process writes something else to it: a webhook may then change it."""
        with self._lock:
            self._written.pop(identity_of(target), None)
            self._sent.pop(identity_of(target), None)

    def forget(self) -> None:
        """Forget all sizes: another process of this installation leads, and may write others."""
        with self._lock:
            self._written.clear()
            self._sent.clear()

    def with_own_size(self, target: TargetReference, found: TargetInput) -> TargetInput:
        """Return a look-up with the size that this process has written to the target since then, if any.

        A write in the future was made by a wrong clock, so nothing shows whether the look-up precedes it.
        """
        with self._lock:
            written = self._written.get(identity_of(target))
        if written is None or not isinstance(found, Observed) or found.value is None:
            return found
        if not found.time <= written.time <= self._wall():
            return found
        return replace(found, value=replace(found.value, replicas=written.replicas))

    def mark_replaced(self, look: ReadTargets) -> ReadTargets:
        """Return a look-up whose states say whether another recommender has replaced the size of this process."""
        return lambda targets: {
            target: self._mark_if_replaced(target, found) for target, found in look(targets).items()
        }

    def _mark_if_replaced(self, target: TargetReference, found: TargetInput) -> TargetInput:
        with self._lock:
            written = self._written.get(identity_of(target))
        if written is None or not isinstance(found, Observed) or self._wall() - written.time > HELD_SECONDS:
            return found
        # A look-up that began before the write was answered may have found an earlier size of this process.
        if found.time <= written.time:
            return found
        state = found.value
        if state is None or state.replicas == written.replicas or USER_AGENT not in (state.replicas_managers or ()):
            return found
        if written.uid and state.uid and state.uid != written.uid:
            # The object was created again, such as from a backup, which has its former size and field manager.
            return found
        replaced = ReplacedSize(written.replicas, written.time + HELD_SECONDS)
        return replace(found, value=replace(state, replaced=replaced))
