"""Determines the policy that won, and the one that auto used most."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from recommender.backtest.replayed_policies import AUTO, HEADROOM, model_policy_name
from recommender.backtest.report import BacktestVerdict, PolicyResult
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.arrays import BoolArray

_AS_GOOD = 1.0
_LEAST = 1e-6


def verdict(results: Sequence[PolicyResult], used: Sequence[str], judged: BoolArray) -> BacktestVerdict:
    """Return the verdict; `used` names the model that auto used at each step, or `headroom`."""
    auto = next(result for result in results if result.name == AUTO)
    return BacktestVerdict(best=min(results, key=_rank).name, use=_most_used(used, judged), comparison=auto.comparison)


def _rank(result: PolicyResult) -> tuple[float, float]:
    """Return the sort key of a policy: the product of both shortage ratios, then the cost; less is better."""
    product = 1.0
    for ratio in (result.comparison.tau_under_versus_headroom, result.comparison.theta_under_versus_headroom):
        product *= _AS_GOOD if ratio is None else max(ratio, _LEAST)
    return product, result.measures.replica_hours


def _most_used(used: Sequence[str], judged: BoolArray) -> str:
    plain = {HEADROOM, ModelName.REACTIVE.value}
    names = [
        HEADROOM if name in plain else model_policy_name(name)
        for name, is_judged in zip(used, judged, strict=True)
        if is_judged
    ]
    return Counter(names).most_common(1)[0][0] if names else HEADROOM
