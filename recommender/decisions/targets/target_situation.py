"""The sufficiently recent facts about targets that are needed for constraints and for the search for owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed
from recommender.decisions.texts.times import is_fresh

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs, TargetState
    from recommender.decisions.memory import LastValue, Memory
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import TargetReference


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """A target whose current size is known."""

    reference: TargetReference
    state: TargetState


@dataclass(frozen=True, slots=True)
class Situation:
    """The inputs of a constraint, besides the value that it limits."""

    now: float
    targets: tuple[KnownTarget, ...] = ()
    last: LastValue | None = None
    changes: tuple[float, ...] = ()
    """Times of the changes in the last hour, ascending."""

    @property
    def current(self) -> KnownTarget | None:
        """The target with the largest current size, the first of equals; None if no current size is known."""
        return max(self.targets, key=lambda each: each.state.replicas, default=None)

    @property
    def last_replicas(self) -> int | None:
        """The last value if it is a number of replicas; else None."""
        return None if self.last is None else self.last.replicas

    @property
    def kept_value(self) -> int | None:
        """The value that a pause keeps: the last value, or else the current size; None if neither is known."""
        if self.last_replicas is not None:
            return self.last_replicas
        return None if self.current is None else self.current.state.replicas


def situation_of(policy: RecommendationPolicy, inputs: Inputs, memory: Memory, now: float) -> Situation:
    """Return the situation of one recommendation. Facts older than `staleAfter` count as unknown."""
    known = ((target, fresh_state(target, policy, inputs, now)) for target in policy.targets)
    targets = tuple(KnownTarget(target, state) for target, state in known if state is not None)
    return Situation(now, targets, memory.last, memory.changes)


def is_absent(target: TargetReference, policy: RecommendationPolicy, inputs: Inputs, now: float) -> bool:
    """Return whether the object certainly does not exist."""
    observed = inputs.targets.get(target)
    is_known_absent = isinstance(observed, Observed) and observed.value is None
    return is_known_absent and is_recent(target, policy, inputs, now)


def is_recent(target: TargetReference, policy: RecommendationPolicy, inputs: Inputs, now: float) -> bool:
    """Return whether it is known, and recently enough, which size the target has, or that it does not exist."""
    observed = inputs.targets.get(target)
    return isinstance(observed, Observed) and is_fresh(observed.time, now, policy.stale_after_seconds)


def fresh_state(
    target: TargetReference, policy: RecommendationPolicy, inputs: Inputs, now: float
) -> TargetState | None:
    """Return the state of a target; None if it does not exist, or if nothing recent is known."""
    observed = inputs.targets.get(target)
    if isinstance(observed, Observed) and is_fresh(observed.time, now, policy.stale_after_seconds):
        return observed.value
    return None
