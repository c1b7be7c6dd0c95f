"""From the records of all models to the one in use: away from a model at once, back to it slowly (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recommender.predictive.choice.records import ChoiceReason
from recommender.predictive.history import DAY_SECONDS
from recommender.predictive.settings import ModelName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.predictive.choice.records import ModelRecord


COST_TOLERANCE = 1.5
"""A model in use may cost so many times what one may cost that comes into use."""


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """How models are judged. The defaults are those of production and of backtests."""

    decide_seconds: float = 600.0
    """Decisions are so far apart, at least one step."""
    judge_seconds: float = 7 * DAY_SECONDS
    """The record of a model covers so much time."""
    least_seconds: float = 2 * DAY_SECONDS
    """A model that has been judged for less time is not used."""
    recent_seconds: float = 6 * 3600.0
    """What is recent: a model that is worse than headroom within it is given up."""
    recent_days_ratio: float = 0.75
    """So much more shortage than headroom, in days of headroom's usual shortage, is worse."""
    enter_ratio: float = 0.8
    """A model comes into use below this share of headroom's shortage."""
    most_lost_ratio: float = 0.9
    """Nor does it come into use above this share of the load that headroom loses."""
    leave_ratio: float = 1.0
    """A model goes out of use above it."""
    leave_lost_ratio: float = 1.1
    """A model goes out of use above this share of the load that headroom loses."""
    most_headroom_ratio: float = 1.0
    """A model that costs more than so much headroom does not come into use."""
    switch_ratio: float = 0.8
    """Another model takes over below this share of the shortage of the one in use."""
    wait_seconds: float = DAY_SECONDS
    """A model that was given up stays out so long, twice as long after each further time."""
    longest_wait_seconds: float = 7 * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class ModelStanding:
    """What is in use, and which models have to wait."""

    model: str
    headroom_ratio: float
    """In use while the model is headroom: as much as the model that was given up cost."""
    since: int = 0
    given_up: str | None = None
    """The model whose cost headroom keeps, while it may come back."""
    kept_until: int = 0
    """Until this step at the latest."""
    blocked_until: Mapping[str, int] = field(default_factory=dict)
    times_given_up: Mapping[str, int] = field(default_factory=dict)


def next_standing(
    standing: ModelStanding,
    records: Sequence[ModelRecord],
    recent_excess_days: float,
    step: int,
    step_seconds: float,
    headroom_ratio: float,
    options: ChoiceOptions,
) -> tuple[ModelStanding, ChoiceReason]:
    """Return what is in use from this step on, and why."""
    in_use = next((each for each in records if each.name == standing.model), None)
    best = min(
        (each for each in records if _may_enter(each, standing, step, options)),
        key=lambda each: each.shortage_versus_headroom,
        default=None,
    )
    if in_use is None:
        return _from_headroom(standing, best, records, step, headroom_ratio, options)
    worse = _why_give_up(in_use, recent_excess_days, options)
    if worse is ChoiceReason.RECENTLY_WORSE:
        waiting = _given_up(standing, in_use, step, step_seconds, options)
        return replace(waiting, headroom_ratio=max(waiting.headroom_ratio, headroom_ratio)), worse
    if worse is not None:
        waiting = _given_up(standing, in_use, step, step_seconds, options)
        return replace(waiting, headroom_ratio=headroom_ratio, given_up=None), worse
    if best is None or best.shortage_versus_headroom > options.switch_ratio * in_use.shortage_versus_headroom:
        return standing, ChoiceReason.STILL_BETTER
    return replace(standing, model=best.name, since=step), ChoiceReason.CLEARLY_BETTER


def _from_headroom(
    standing: ModelStanding,
    best: ModelRecord | None,
    records: Sequence[ModelRecord],
    step: int,
    headroom_ratio: float,
    options: ChoiceOptions,
) -> tuple[ModelStanding, ChoiceReason]:
    if best is not None:
        return replace(standing, model=best.name, since=step), ChoiceReason.PROVED_BETTER
    given_up = next((each for each in records if each.name == standing.given_up), None)
    if given_up is None or step >= standing.kept_until or _why_not_worth_it(given_up, options) is not None:
        standing = replace(standing, headroom_ratio=headroom_ratio, given_up=None)
    if any(until > step for until in standing.blocked_until.values()):
        return standing, ChoiceReason.HELD_BACK
    reason = ChoiceReason.NOT_BETTER if records else ChoiceReason.NOTHING_KNOWN
    return standing, reason


def _why_give_up(record: ModelRecord, recent_excess_days: float, options: ChoiceOptions) -> ChoiceReason | None:
    if recent_excess_days > options.recent_days_ratio:
        return ChoiceReason.RECENTLY_WORSE
    return _why_not_worth_it(record, options)


def _why_not_worth_it(record: ModelRecord, options: ChoiceOptions) -> ChoiceReason | None:
    """Return what speaks against a model over the whole time that its record covers."""
    if record.shortage_versus_headroom > options.leave_ratio:
        return ChoiceReason.NO_LONGER_BETTER
    if record.lost_load_versus_headroom > options.leave_lost_ratio:
        return ChoiceReason.NO_LONGER_BETTER
    if record.cost_as_headroom_ratio > COST_TOLERANCE * options.most_headroom_ratio:
        return ChoiceReason.TOO_EXPENSIVE
    return None


def _may_enter(record: ModelRecord, standing: ModelStanding, step: int, options: ChoiceOptions) -> bool:
    return (
        record.name != standing.model
        and record.judged_seconds >= options.least_seconds
        and standing.blocked_until.get(record.name, 0) <= step
        and record.shortage_versus_headroom <= options.enter_ratio
        and record.lost_load_versus_headroom <= options.most_lost_ratio
        and record.pinball_versus_headroom <= 1.0
        and record.cost_as_headroom_ratio <= options.most_headroom_ratio
    )


def _given_up(
    standing: ModelStanding, record: ModelRecord, step: int, step_seconds: float, options: ChoiceOptions
) -> ModelStanding:
    """Return headroom that costs as much as the model did: the same replica-hours, whatever is in use."""
    times = standing.times_given_up.get(record.name, 0)
    wait = min(options.wait_seconds * 2**times, options.longest_wait_seconds)
    return ModelStanding(
        ModelName.HEADROOM,
        min(record.cost_as_headroom_ratio, options.most_headroom_ratio),
        step,
        record.name,
        step + int(options.judge_seconds / step_seconds),
        {**standing.blocked_until, record.name: step + int(wait / step_seconds)},
        {**standing.times_given_up, record.name: times + 1},
    )
