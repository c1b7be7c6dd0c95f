"""What constraints and owners need to know about the targets, reduced to what is recent enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.cluster.state import Observed
from recommender.decisions.times import is_fresh

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs, TargetState
    from recommender.decisions.memory import LastValue, Memory
    from recommender.decisions.record import TargetReference
    from recommender.decisions.settings import RecommendationPolicy


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """A target whose present size is known."""

    reference: TargetReference
    state: TargetState


@dataclass(frozen=True, slots=True)
class Situation:
    """What a constraint depends on, besides the value that it limits."""

    now: float
    targets: tuple[KnownTarget, ...] = ()
    last: LastValue | None = None
    changes: tuple[float, ...] = ()
    """Times of the changes in the last hour, ascending."""

    @property
    def present(self) -> KnownTarget | None:
        """The largest target, the first one of several; None if no present size is known."""
        return max(self.targets, key=lambda each: each.state.replicas, default=None)

    @property
    def held(self) -> int | None:
        """The value that a pause keeps: the last one, else the present size; None if neither is known."""
        if self.last is not None:
            return self.last.replicas
        return None if self.present is None else self.present.state.replicas


def situation_of(policy: RecommendationPolicy, inputs: Inputs, memory: Memory, now: float) -> Situation:
    """Return the situation of one recommendation. Facts older than `staleAfter` count as unknown."""
    known = ((target, fresh_state(target, policy, inputs, now)) for target in policy.targets)
    targets = tuple(KnownTarget(target, state) for target, state in known if state is not None)
    return Situation(now, targets, memory.last, memory.changes)


def fresh_state(
    target: TargetReference, policy: RecommendationPolicy, inputs: Inputs, now: float
) -> TargetState | None:
    """Return what is known of a target; None if it does not exist, or nothing recent is known."""
    observed = inputs.targets.get(target)
    if isinstance(observed, Observed) and is_fresh(observed.time, now, policy.stale_after_seconds):
        return observed.value
    return None
