"""The constraints that all kinds of recommendations share, in the order in which they are applied.

`rollout`, `maxStep`, `maxChangesPerHour` and `paused` are pure functions of the settings, the situation and the value
so far. With several targets, the present size is that of the largest one: all targets get the same size, and the
largest one is what the service relies on.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.decisions.pauses import active_pauses, stops
from recommender.decisions.settings import Direction
from recommender.decisions.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.decisions.settings import Brakes, MaxStep
    from recommender.decisions.situation import Situation

HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Constrained:
    """A value after a constraint."""

    value: int | None
    """None if the value must not change and nobody knows what it was."""
    detail: str = ""
    """Why it changed; empty if it did not."""
    hold: str = ""
    """What keeps the value and until when; empty if nothing does."""


Constraint: TypeAlias = "Callable[[Brakes, Situation, int], Constrained]"


def rollout(_brakes: Brakes, situation: Situation, value: int) -> Constrained:
    """Keep the value from falling below the size of a target while that target is being rolled out."""
    under_way = [target for target in situation.targets if target.state.rollout]
    largest = max(under_way, key=lambda target: target.state.replicas, default=None)
    if largest is None or value >= largest.state.replicas:
        return Constrained(value)
    detail = f"not below {largest.state.replicas} until the rollout of {largest.reference} is complete"
    return Constrained(largest.state.replicas, detail, detail)


def max_step(brakes: Brakes, situation: Situation, value: int) -> Constrained:
    """Limit the distance from the present size, or from the last value where no present size is known.

    A ratio of the present size is rounded down, and is at least 1.
    """
    present = situation.present
    base = present.state.replicas if present else situation.last.replicas if situation.last else None
    if brakes.max_step is None or base is None:
        return Constrained(value)
    limit = step_limit(brakes.max_step, base)
    if abs(value - base) <= limit:
        return Constrained(value)
    limited = base + limit if value > base else base - limit
    where = f"the present size of {present.reference}" if present else "the last value"
    return Constrained(limited, f"{base} {'+' if value > base else '-'} {limit}, from {where}")


def step_limit(step: MaxStep, base: int) -> int:
    """Return the largest change from this size."""
    if step.replicas is not None:
        return step.replicas
    # The decimal digits of the ratio, so that 29 % of 100 are 29.
    return max(1, int(Fraction(repr(step.ratio or 0.0)) * base))


def max_changes_per_hour(brakes: Brakes, situation: Situation, value: int) -> Constrained:
    """Keep the last value once it has changed often enough within an hour."""
    limit, last, changes = brakes.max_changes_per_hour, situation.last, situation.changes
    if limit is None or last is None or value == last.replicas or len(changes) < limit:
        return Constrained(value)
    until = rfc3339(changes[len(changes) - limit] + HOUR_SECONDS) if limit else "the limit is raised"
    detail = f"{last.replicas} is kept after {len(changes)} changes in the last hour, of which {limit} are allowed"
    return Constrained(last.replicas, detail, f"{detail}, until {until}")


def paused(brakes: Brakes, situation: Situation, value: int) -> Constrained:
    """Keep the last value, or the present size where there is no last value, in the directions that are paused."""
    pauses, held = active_pauses(brakes, situation.targets, situation.now), situation.held
    if not pauses:
        return Constrained(value)
    up, down = stops(pauses, Direction.UP), stops(pauses, Direction.DOWN)
    sentence = "; ".join(each.sentence for each in pauses)
    if held is None:
        return Constrained(None, hold=f"{sentence}: neither a last value nor a present size is known")
    kept = min(value, held) if up else value
    kept = max(kept, held) if down else kept
    if kept == value:
        return Constrained(value, hold=f"{sentence}: {held} is kept" if up and down else "")
    return Constrained(kept, sentence, f"{sentence}: {held} is kept, and not changed to {value}")


CONSTRAINTS: Final[tuple[tuple[str, Constraint], ...]] = (
    ("rollout", rollout),
    ("maxStep", max_step),
    ("maxChangesPerHour", max_changes_per_hour),
    ("paused", paused),
)
