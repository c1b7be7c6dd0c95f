"""How models are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.predictive_settings import ModelName

BEGINNER: Final = ModelName.TREND.value
"""The model that acts before any has been judged: it forecasts only where the last steps prove a rise."""


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """How models are judged. The defaults are those of production and of backtests."""

    decide_seconds: float = 600.0
    """Decisions are so far apart, at least one step."""
    judge_seconds: float = 7 * DAY_SECONDS
    """The time over which costs and the usual loss of headroom are measured."""
    least_seconds: float = DAY_SECONDS / 8
    """A model that has been judged for less time has no weight."""
    headroom_prior: float = 0.5
    """The weight of plain headroom before anything is known; the models share the rest."""
    kept_seconds: float = DAY_SECONDS * 25 / 24
    """What is known so long ago is kept, and later benches go on from there: they make the last day's decisions again,
    which is what they are judged by in texts."""
    proof_odds: float = 5.0
    """Models act from when their odds against plain headroom have grown so many times, until they have fallen to the
    inverse. On made walks they grow 3 times at most, on recorded loads with a season 20 times and more."""
    early_seconds: float = 6 * DAY_SECONDS
    """For so long after the newest model came in, long steps prove it by fewer of them."""
    rate: float = 1.0
    """An expert that loses a day of headroom's usual shortage more than another falls behind it by a factor e."""
    share_a_day: float = 0.05
    """How much of its weight each expert gives to all in a day: what was right long ago may be wrong now."""
    most_headroom_ratio: float = 1.0
    """Without a budget, the bill is at most that of so much headroom."""
    bill_days: float = 1.0
    """Without a budget, the bill follows what the experts ask for within this time: a bill that goes up and down buys
    less than one that stays."""
    bill_days_of_headroom: float = 14.0
    """Likewise while headroom leads: what others ask for is no reason to change then."""
    leading_share: float = 0.5
    """With a larger share of what acts, headroom leads, and the bill stays after the first week."""
    far_ratio: float = 2.0
    """It moves all the same where the experts ask for so many times as much, or as little."""
    most_bound_ratio: float = 0.05
    """A model has lost if a larger share of its forecasts stood at their bound."""
    least_weight: float = 0.02
    """Smaller weights do not act: each model that does takes time in every poll."""


DEFAULT_OPTIONS: Final = ChoiceOptions()
