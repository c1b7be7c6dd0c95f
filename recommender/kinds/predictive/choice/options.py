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
    """Time between decisions, at least one step."""
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
    """Models act once their odds against plain headroom have grown by this factor, until they have fallen to its
    inverse. On generated walks they grow at most 3 times, on recorded loads with a season 20 times and more."""
    record_seconds: float = 28 * DAY_SECONDS
    """How long what has acted is remembered, to be compared with constant headroom of the same mean cost."""
    harm_ratio: float = 0.033
    """Once what has acted was short more than that headroom by a larger share, headroom stands in. With the doubt, what
    this allows is 5 % of the twenty days that a backtest of four weeks judges."""
    unpaid_ratio: float = 0.0165
    """A change of the cost ends once the record is worse by this share: half of what lets headroom stand in, so that
    models which pay for the change by their gains go on."""
    doubt_days: float = 10.0
    """So many of headroom's usual days are added to both sides of the record: a handful of short steps proves
    nothing."""
    early_seconds: float = 6 * DAY_SECONDS
    """How long after the newest model was added fewer long steps suffice to prove it."""
    rate: float = 1.0
    """An expert that loses a day of headroom's usual shortage more than another falls behind it by a factor of e."""
    share_a_day: float = 0.05
    """The share of its weight that each expert gives to all in a day: a formerly good one may be bad now."""
    most_headroom_ratio: float = 1.0
    """Without a budget, the bill is at most that of this much headroom."""
    bill_days: float = 1.0
    """Without a budget, the bill follows the experts' requests within this time: a varying bill buys less than a
    constant one."""
    bill_days_of_headroom: float = 14.0
    """The same while headroom leads: then requests of others are no reason to change."""
    leading_share: float = 0.5
    """With a larger share of what acts, headroom leads, and the bill stays after the first week."""
    far_ratio: float = 2.0
    """It still changes if the experts request this many times as much, or as little."""
    most_bound_ratio: float = 0.05
    """A model has lost if a larger share of its forecasts was at the bound."""
    least_weight: float = 0.02
    """Smaller weights do not act: each model that does takes time in every poll."""


DEFAULT_OPTIONS: Final = ChoiceOptions()
