"""Determines which policy to use, and how certain that is, by resampling the same days for all policies.

The uncertainty is that of a paired bootstrap over days (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
chapters 8 and 13): the days are drawn 2,000 times with replacement, and the interval contains the middle 90% of the
savings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.reports.counts import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.replay.policy_outcome import PolicyOutcome

LEAST_DAYS: Final = 3
"""The fewest whole days with which a policy is recommended."""
MOST_UNKNOWN_RATIO: Final = 0.1
"""No policy is recommended if a larger share of the time is unknown."""
_DRAWS: Final = 2000
_LOW, _HIGH = 0.05, 0.95
_SHOWN_DIGITS: Final = 3
"""Digits of a ratio as a percentage shows it: savings of 0.0% are none."""
_SEED: Final = 0
_MORE_PENDING_RATIO: Final = 0.05
"""A policy is worse if waits grow by more than this share of the current ones plus `_MORE_PENDING_MINUTES`."""
_MORE_PENDING_MINUTES: Final = 1.0
"""Additional pod-minutes of waiting per day that alone do not make a policy worse."""
_EVICTIONS_A_NODE_HOUR: Final = 2.0
"""A policy is worse if it evicts more additional pods than this for each node-hour that it saves."""


@dataclass(frozen=True, slots=True)
class ReplayVerdict:
    """The policy to use."""

    use: str | None
    """The policy to use; None if the past shows too little."""
    saves_ratio: float | None
    """Savings as a share of the configured policy's cost; 0 for that policy itself."""
    interval: tuple[float, float] | None
    """The 90% interval of the savings."""
    reason: str
    """The reason, in one sentence."""


@dataclass(frozen=True, slots=True)
class _Rival:
    outcome: PolicyOutcome
    saves: float
    low: float
    high: float
    worse: str
    """Why the policy is not recommended; empty if there is no objection."""


def verdict_of(outcomes: Sequence[PolicyOutcome], known_days: FloatArray, unknown_ratio: float) -> ReplayVerdict:
    """Return the verdict on the policies. The first must be the configured one; unknown days do not count."""
    whole = int(known_days.sum())
    if unknown_ratio > MOST_UNKNOWN_RATIO:
        return _without_verdict(
            f"{100 * unknown_ratio:.0f}% of the time is not recorded: see the gaps, and choose another time"
        )
    if whole < LEAST_DAYS:
        days = f"{whole} whole day{'' if whole == 1 else 's'}"
        return _without_verdict(f"there are {days}, and a verdict needs {LEAST_DAYS}: replay or record a longer time")
    costs = [one.cost for one in outcomes]
    if any(cost is None for cost in costs):
        return _without_verdict("not all node groups have a price, so costs cannot be compared: write `price` for each")
    current = outcomes[0]
    if current.cost is not None and not current.cost[np.flatnonzero(known_days)].any():
        return _without_verdict(
            "the nodes of the configured policy cost nothing by their prices, so nothing can be saved: write the price "
            "of each node group"
        )
    draws = drawn_days(known_days)
    rivals = [_rival(current, one, draws) for one in outcomes[1:]]
    good = [one for one in rivals if not one.worse]
    if not good:
        return ReplayVerdict(current.name, 0.0, (0.0, 0.0), _kept_reason(current, rivals, whole))
    best = max(good, key=lambda one: one.saves)
    known = np.flatnonzero(known_days)
    more = round(float((best.outcome.evictions - current.evictions)[known].mean()))
    evictions = f"{abs(more)} {'more' if more > 0 else 'fewer'} evictions a day" if more else "as many evictions"
    longer = round(float((best.outcome.pending_minutes - current.pending_minutes)[known].mean()))
    waits = f"pods together wait {count_of(longer, 'minute')} more a day" if longer > 0 else "pods wait no longer"
    return ReplayVerdict(
        best.outcome.name,
        best.saves,
        (best.low, best.high),
        f"Use {best.outcome.name}: it saves {format_percent(best.saves)} of the cost "
        f"(90% interval {format_percent(best.low)} to {format_percent(best.high)}, by {whole} days), {waits}, "
        f"and there are {evictions}.",
    )


def drawn_days(known_days: FloatArray) -> IntArray:
    """Return the days of each draw, shape (draws, known days): the same for all comparisons."""
    known = np.flatnonzero(known_days)
    return np.random.default_rng(_SEED).choice(known, (_DRAWS, len(known)))


def shares_of(part: FloatArray, whole: FloatArray, draws: IntArray) -> FloatArray:
    """Return, for each draw, the sum of `part` divided by the sum of `whole`; 0 if the latter is 0."""
    parts, wholes = part[draws].sum(axis=1), whole[draws].sum(axis=1)
    return np.asarray(np.divide(parts, wholes, out=np.zeros(len(draws)), where=wholes > 0))


def interval_of(drawn: FloatArray) -> tuple[float, float]:
    """Return the middle 90% of the results of the draws."""
    low, high = np.quantile(drawn, [_LOW, _HIGH])
    return float(low), float(high)


def _without_verdict(why: str) -> ReplayVerdict:
    return ReplayVerdict(None, None, None, f"No policy is recommended: {why}.")


def _rival(current: PolicyOutcome, other: PolicyOutcome, draws: IntArray) -> _Rival:
    assert current.cost is not None, "compared with prices only"
    assert other.cost is not None, "likewise"
    days = np.unique(draws)
    saved = current.cost - other.cost
    low, high = interval_of(shares_of(saved, current.cost, draws))
    waits = other.pending_minutes - current.pending_minutes
    longest = float(np.quantile(waits[draws].mean(axis=1), _HIGH))
    allowed = _MORE_PENDING_RATIO * float(current.pending_minutes[days].mean()) + _MORE_PENDING_MINUTES
    hours = float((current.node_hours - other.node_hours)[days].sum())
    evictions = float((other.evictions - current.evictions)[days].sum())
    worse = ""
    if longest > allowed:
        worse = f"pods together wait up to {longest:.0f} minutes more a day"
    elif round(low, _SHOWN_DIGITS) <= 0:
        worse = f"it may save nothing (90% interval {format_percent(low)} to {format_percent(high)})"
    elif evictions > _EVICTIONS_A_NODE_HOUR * max(hours, 0.0):
        worse = (
            f"{evictions / hours:.1f} more evictions for each node-hour saved"
            if hours > 0
            else f"there are {count_of(round(evictions), 'more eviction')}, and no node-hour is saved"
        )
    return _Rival(other, float(saved[days].sum() / current.cost[days].sum()), low, high, worse)


def _kept_reason(current: PolicyOutcome, rivals: Sequence[_Rival], days: int) -> str:
    if not rivals:
        return f"Keep {current.name}: there is no other policy to compare it with."
    best = max(rivals, key=lambda one: one.saves)
    return (
        f"Keep {current.name}: by {days} days, no other policy is cheaper without harm; the cheapest, "
        f"{best.outcome.name}, would save {format_percent(best.saves)}, but {best.worse}."
    )


def format_percent(ratio: float) -> str:
    """Return a ratio as text, such as `12.5%`."""
    return f"{100 * ratio:.1f}%"
