"""Determines which targets of `forEach` and of objects are looked up in a poll: first those that should be scaled.

A recommendation that only publishes metrics needs no look-ups. With the output `scale`, no call is made without a
recent look-up. A target that already has its recommended size can wait for its turn without harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed
from recommender.decisions.texts.times import is_fresh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from recommender.decisions.record import Record, TargetReference
    from recommender.running.inputs.input_gathering import TargetInput

MOST_LOOK_UPS: Final = 200
"""The largest number of look-ups in a poll, which share 8 threads and have 5 s in all."""
MOST_OBJECT_LOOK_UPS: Final = 400
"""The largest number of look-ups of objects' targets: 2,000 are looked up within a minute, while results are recent."""
_OF_THE_OTHERS: Final = 50
"""The part of `MOST_LOOK_UPS` that is reserved for targets that had their recommended size when last looked up."""


@dataclass(slots=True)
class _ScaledTarget:
    replicas: int | None = None
    """The last recommended size."""
    found: TargetInput | None = None
    """The size that was last looked up."""
    poll: float = -math.inf
    """The number of the poll that last looked up the target."""

    @property
    def is_to_be_scaled(self) -> bool:
        """Whether the size differs from the recommended one, as far as that is known."""
        if self.replicas is None:
            return False
        if not isinstance(self.found, Observed):
            return True
        return self.found.value is not None and self.found.value.replicas != self.replicas


@dataclass(slots=True)
class DueTargets:
    """Chooses the targets to look up in each poll. Not thread-safe."""

    most: int = MOST_LOOK_UPS
    with_own_size: Callable[[TargetReference, TargetInput], TargetInput] = lambda _target, found: found
    """Returns a look-up with the size that this process has written to the target since then, if any."""
    _targets: dict[TargetReference, _ScaledTarget] = field(default_factory=dict)
    _polls: int = 0

    def choose(self) -> frozenset[TargetReference]:
        """Return the targets to look up now; those that have waited longest have priority."""
        if len(self._targets) <= self.most:
            return frozenset(self._targets)
        waiting = sorted(self._targets, key=lambda target: self._targets[target].poll)
        to_be_scaled = [target for target in waiting if self._targets[target].is_to_be_scaled]
        others = [target for target in waiting if not self._targets[target].is_to_be_scaled]
        reserved = min(len(others), self.most * _OF_THE_OTHERS // MOST_LOOK_UPS)
        first = to_be_scaled[: self.most - reserved]
        return frozenset((*first, *others[: self.most - len(first)]))

    def looked_up(
        self, found: Mapping[TargetReference, TargetInput], now: float, fresh_seconds: float
    ) -> dict[TargetReference, TargetInput]:
        """Record the results, and return them with those of earlier polls that are still valid.

        They are recent enough, and have the sizes that this process has written since. The size from before a write
        would be decided on and written once more, and take the place of a write to another target. Without any size,
        `maxStep` would begin from the last value, and so permit a step in each poll without a write.
        """
        self._polls += 1
        for target, state in self._targets.items():
            if target in found:
                state.found, state.poll = found[target], self._polls
        known = {
            target: self.with_own_size(target, state.found)
            for target, state in self._targets.items()
            if isinstance(state.found, Observed) and is_fresh(state.found.time, now, fresh_seconds)
        }
        return {**known, **found}

    def follow(self, targets: Iterable[TargetReference]) -> None:
        """Follow these targets and no others; those that are new are looked up first."""
        self._targets = {target: self._targets.get(target) or _ScaledTarget() for target in targets}

    def follow_records(self, records: Iterable[Record]) -> None:
        """Follow the targets of this poll's `forEach` records, which are those of recommendations that scale."""
        before = self._targets
        self._targets = {}
        for record in records:
            if record.each is not None:
                state = self._targets[record.each] = before.get(record.each) or _ScaledTarget()
                state.replicas = record.replicas

    def note_sizes(self, records: Iterable[Record]) -> None:
        """Update the recommended sizes of the targets that are followed."""
        for outcome in (outcome for record in records for outcome in record.targets):
            if outcome.target in self._targets:
                self._targets[outcome.target].replicas = outcome.recommended_replicas
