"""The effect of the brakes on sizes of containers, and on one amount of them (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from recommender.decisions.constraints.brakes import MAX_CHANGES, PAUSED, ChangeStop
from recommender.outputs.resize_documents import within_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.policy_settings import MaxStep
    from recommender.decisions.record import Step
    from recommender.decisions.targets.target_situation import Situation


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakedSizes:
    """Sizes of containers on their way through the brakes."""

    replicas: ClassVar[None] = None
    held: Mapping[str, str]
    """The reasons why sizes stay unchanged, by resource."""
    steps: tuple[Step, ...] = ()
    holds: tuple[str, ...] = ()
    may_grow: bool = True
    """False if a pause forbids larger sizes, whatever the current sizes are."""
    may_shrink: bool = True

    def above_rollouts(self, _situation: Situation) -> Self:
        """Return the sizes as they are: a rollout changes neither the cluster's size nor the usage."""
        return self

    def held_by(self, stop: ChangeStop, *, has_kept_any: bool) -> Self:
        """Return the sizes with what a stop forbids and, if it has kept any of them, with its reason."""
        found = self
        if stop.name == PAUSED:
            found = replace(self, may_grow=self.may_grow and not stop.up, may_shrink=self.may_shrink and not stop.down)
        if not has_kept_any and not (stop.up and stop.down):
            return found
        hold = f"{stop.sentence}, until {stop.until}" if stop.name == MAX_CHANGES else stop.sentence
        return replace(found, holds=(*self.holds, hold))


def amount_within_step(wanted: int | None, base: int | None, step: MaxStep) -> int | None:
    """Return the amount, limited to the largest single change from `base`; unchanged if either is unknown."""
    return wanted if wanted is None or base is None else within_ratio(wanted, base, step.ratio or 0.0)


def amount_when_stopped(wanted: int | None, base: int | None, stop: ChangeStop) -> int | None:
    """Return the amount, without changes from `base` in the directions that are stopped.

    If the amount or `base` is unknown while both directions are stopped, the result is unknown.
    """
    if wanted is None or base is None:
        return None if stop.up and stop.down else wanted
    kept = min(wanted, base) if stop.up else wanted
    return max(kept, base) if stop.down else kept
