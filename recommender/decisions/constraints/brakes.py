"""Limits the changes of every recommendation: `rollout`, `maxStep`, `maxChangesPerHour`, `paused` (pure).

A value is one number of replicas or the sizes of many node groups. This module decides for both in the same way which
brake acts, for how long and why; the effect of a brake depends on the type of value. `min` and `max` are applied after
the brakes (`limits.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from adapter.foundation.reports.counts import agreeing, count_of
from recommender.decisions.constraints.pauses import active_pauses, stops
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep
from recommender.decisions.texts.times import rfc3339

if TYPE_CHECKING:
    from recommender.decisions.targets.target_situation import Situation

HOUR_SECONDS: Final = 3600.0
ROLLOUT: Final = "rollout"
MAX_STEP: Final = "maxStep"
MAX_CHANGES: Final = "maxChangesPerHour"
PAUSED: Final = "paused"


@dataclass(frozen=True, slots=True)
class ChangeStop:
    """A brake that stops changes."""

    name: str
    sentence: str
    """Why changes are stopped, and what is kept."""
    up: bool = True
    down: bool = True
    until: str = ""
    """When the stop ends, if the sentence does not say so."""


class Braking(Protocol):
    """A value on its way through the brakes."""

    def kept_text(self, situation: Situation) -> str:
        """Return what is kept when changes are stopped, as a clause: `the sizes are kept`."""

    def above_rollouts(self, situation: Situation) -> Self:
        """Return the value, raised to the size of any target that is being rolled out."""

    def within_step(self, step: MaxStep, situation: Situation) -> Self:
        """Return the value, limited to the largest single change."""

    def would_change(self, situation: Situation) -> bool:
        """Return whether the value differs from the last one."""

    def stopped(self, stop: ChangeStop, situation: Situation) -> Self:
        """Return the value without changes in the directions that are stopped."""


V = TypeVar("V", bound=Braking)


def apply_brakes(value: V, brakes: Brakes, situation: Situation) -> V:
    """Return the value that the brakes permit."""
    value = value.above_rollouts(situation)
    if brakes.max_step is not None:
        value = value.within_step(brakes.max_step, situation)
    limit, changes = brakes.max_changes_per_hour, situation.changes
    if limit is not None and len(changes) >= limit and value.would_change(situation):
        made, allowed = count_of(len(changes), "change"), f"{limit} {agreeing(limit, 'is', 'are')} allowed"
        sentence = f"{value.kept_text(situation)}: {made} in the last hour, and {allowed}"
        until = rfc3339(changes[len(changes) - limit] + HOUR_SECONDS) if limit else "the limit is raised"
        value = value.stopped(ChangeStop(MAX_CHANGES, sentence, until=until), situation)
    pauses = active_pauses(brakes, situation.targets, situation.now)
    if pauses:
        sentence = "; ".join(each.sentence for each in pauses)
        value = value.stopped(
            ChangeStop(PAUSED, sentence, stops(pauses, Direction.UP), stops(pauses, Direction.DOWN)), situation
        )
    return value


def step_limit(step: MaxStep, base: int) -> int:
    """Return the largest change from this size: a number, or a ratio of the size, rounded down but at least 1."""
    if step.replicas is not None:
        return step.replicas
    # The decimal digits of the ratio are used, so that 29% of 100 are 29.
    return max(1, int(Fraction(repr(step.ratio or 0.0)) * base))
