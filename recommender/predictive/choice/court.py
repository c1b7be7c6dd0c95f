"""The records of all models at one moment, from the ledgers of all policies (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.predictive.choice.ledger import TAU, THETA
from recommender.predictive.choice.yardstick import record_of
from recommender.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.predictive.choice.hysteresis import ChoiceOptions
    from recommender.predictive.choice.ledger import Scales, ShortageLedger
    from recommender.predictive.choice.records import ModelRecord
    from recommender.predictive.choice.yardstick import Yardstick

FEWEST_RECENT_STEPS = 6
LEAST_EXCESS_STEPS = 6.0
"""Headroom's usual shortage of a day counts as so many short steps at least: a few bad ones give nothing up."""


@dataclass(frozen=True, slots=True)
class Court:
    """Every policy on the same past."""

    scales: Scales
    yardstick: Yardstick
    ledgers: Mapping[str, ShortageLedger]
    begins: Mapping[str, int]
    """By model: the first decision after which its forecasts have had an effect."""
    options: ChoiceOptions

    def records(self, decision: int) -> tuple[ModelRecord, ...]:
        """Return how each model compares over the trailing days."""
        judged = int(self.options.judge_seconds / self.scales.seconds_between)
        found = []
        for name, ledger in self.ledgers.items():
            begin = max(decision - judged, self.begins[name])
            if decision > begin:
                stretch = self.yardstick.stretch(begin, decision)
                found.append(record_of(name, ledger, stretch, begin, decision, self.scales))
        return tuple(found)

    def recent_excess_days(self, records: Sequence[ModelRecord], model: str, decision: int) -> float:
        """Return by how much more a model was short recently than headroom of its usual cost.

        The unit is what that headroom is usually short of in a day; 0 for a model without a record.
        """
        record = next((each for each in records if each.name == model), None)
        if record is None:
            return 0.0
        between = self.scales.seconds_between
        usual_begin = decision - round(record.judged_seconds / between)
        recent_seconds = max(FEWEST_RECENT_STEPS * self.scales.fleet.step_seconds, self.options.recent_seconds)
        begin = max(decision - max(1, int(recent_seconds / between)), usual_begin)
        ratio = record.cost_as_headroom_ratio
        usual = self.yardstick.stretch(usual_begin, decision).at_ratio(ratio) * DAY_SECONDS / record.judged_seconds
        share = usual[THETA] / usual[TAU] if usual[TAU] > 0 else 1.0
        excess = self.ledgers[model].between(begin, decision) - self.yardstick.stretch(begin, decision).at_ratio(ratio)
        return float(
            max(
                excess[TAU] / max(usual[TAU], LEAST_EXCESS_STEPS),
                excess[THETA] / max(usual[THETA], LEAST_EXCESS_STEPS * share),
            )
        )
