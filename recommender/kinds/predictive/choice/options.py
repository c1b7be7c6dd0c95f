"""Determines how models are judged."""

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
    """The state from this long ago is stored, and later mixtures resume from it: they make the last day's decisions
    again, because texts state the result of the last day."""
    proof_odds: float = 5.0
    """Models act once their odds against plain headroom have grown by this factor, until the odds have fallen to its
    inverse. On generated random walks, the odds grow at most 3 times; on recorded loads with a season, 20 times and
    more."""
    record_seconds: float = 28 * DAY_SECONDS
    """How long past actions are remembered, to be compared with constant headroom of the same mean cost."""
    harm_ratio: float = 0.033
    """Headroom stands in once the shortage of past actions exceeds that of constant headroom by more than this share.
    With `doubt_days`, this allows 5% more shortage over the twenty days that a backtest of four weeks judges."""
    unpaid_ratio: float = 0.0165
    """A change of the cost stops once the record is worse by this share. It is half of `harm_ratio`, so that models
    whose gains pay for the change go on acting."""
    doubt_days: float = 10.0
    """The shortage of this many of headroom's usual days is added to both sides of the record, because a handful of
    short steps proves nothing."""
    early_seconds: float = 6 * DAY_SECONDS
    """For this long after the newest model was added, fewer short steps suffice for a proof if steps are long."""
    rate: float = 1.0
    """An expert that loses a day of headroom's usual shortage more than another falls behind it by a factor of e."""
    share_a_day: float = 0.05
    """The share of its weight that each expert gives to all experts in a day, because a formerly good one may be bad
    now."""
    most_headroom_ratio: float = 1.0
    """Without a budget, the bill is at most that of this much headroom."""
    bill_days: float = 1.0
    """Without a budget, the bill follows the experts' requests over this many days, because a varying bill buys less
    than a constant one."""
    bill_days_of_headroom: float = 14.0
    """While headroom leads, the bill follows over this many days, since requests of models that do not lead are no
    reason to change it."""
    leading_share: float = 0.5
    """Headroom leads if its share of the acting blend is larger than this; the bill then stays after the first week."""
    far_ratio: float = 2.0
    """The bill of leading headroom still changes if the experts request this many times as much, or as little."""
    most_bound_ratio: float = 0.05
    """A model is excluded if a larger share of its forecasts than this was at the bound."""
    least_weight: float = 0.02
    """Models with smaller weights do not act, because each model that acts takes time in every poll."""


DEFAULT_OPTIONS: Final = ChoiceOptions()
