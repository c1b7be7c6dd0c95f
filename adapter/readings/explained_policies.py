"""What a rule's own policy does to the values of an explanation: as `policies` does to everybody's answers (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.objects.quantities import quantity_of
from adapter.readings.explanation import ExplainedValue, Outcome, Step
from adapter.readings.policies import unsteady
from adapter.readings.steadiness import may_stand_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.readings.explained_values import Told
    from adapter.rulebook.model import Metric
    from adapter.sources.prometheus.decoding import Sample

_MOST_NAMED = 10
_FIX = "look whether the targets are up, and how often they are scraped; or allow more by `maxSampleAge`"


@dataclass(frozen=True, slots=True)
class Steady:
    """For how long Prometheus has been there."""

    seconds: float | None
    """None: that is not known."""
    look_back_seconds: float
    """How long Prometheus takes a series' last sample for its value."""

    def doubt(self, ranges_seconds: float) -> str:
        """Return why nothing may stand for no data of a query with such ranges; empty where that is not known."""
        if self.seconds is None or may_stand_in(self.seconds, self.look_back_seconds, ranges_seconds):
            return ""
        return unsteady(self.seconds, self.look_back_seconds + ranges_seconds)


def standing_in(
    metric: Metric,
    samples: Sequence[Sample],
    names: Sequence[str] | None,
    times: Sequence[Sample],
    now: float,
    steady: Steady,
) -> tuple[tuple[ExplainedValue, ...], tuple[Step, ...]]:
    """Return what stands for no data (`onNoData`), and the step that says so, or why nothing does.

    Neither where there is data. `samples` are the asker's own, `names` the objects that should have a value; None where
    they are not known. `times` are those of `without_aged`: where samples are there is more than no data.
    """
    value, label = metric.rule.policy.no_data_value, metric.object_label
    if value is None:
        return (), ()
    wanted = ("{}",) if label is None else names or ()
    nameless = label is not None and any(not sample.labels.get(label) for sample in samples)
    of_wanted = [sample for sample in samples if label is None or sample.labels.get(label) in wanted]
    if nameless or not wanted or not all(math.isnan(sample.value) for sample in of_wanted):
        return (), ()
    if label is not None and len({sample.labels.get(label) for sample in of_wanted}) < len(of_wanted):
        return (), ()
    limit = metric.rule.policy.max_sample_age_seconds
    there = [sample for sample in times if label is None or sample.labels.get(label) in wanted]
    if any(limit is not None and now - sample.value > limit for sample in there):
        return (), ()
    named = {_object(sample, label) for sample in of_wanted}
    if any(_object(sample, label) not in named for sample in there):
        doubt = "samples are there, and the rule's query makes no value of them"
    else:
        doubt = steady.doubt(metric.rule.ranges_seconds)
    if doubt:
        return (), (Step("onNoData", Outcome.NO, doubt),)
    told = f"Prometheus has no data, and the rule's value for that stands for it: {quantity_of(value)}"
    if steady.seconds is None:
        needed = steady.look_back_seconds + metric.rule.ranges_seconds
        told = f"{told} (where Prometheus has been there for {needed:g} s, which it does not tell)"
    return tuple(ExplainedValue(name, value, None, None) for name in wanted), (Step("onNoData", Outcome.INFO, told),)


def without_aged(metric: Metric, told: Told, times: Sequence[Sample], now: float) -> Told:
    """Return the values whose samples are as young as the rule demands (`maxSampleAge`).

    `times` are the answer of the metric that `times_of` gives, `now` is about the moment of it, in unix seconds.
    """
    limit, label = metric.rule.policy.max_sample_age_seconds, metric.object_label
    if limit is None:
        return told
    ages: dict[str, float] = {}
    for sample in times:
        name = "" if label is None else sample.labels.get(label, "")
        ages[name] = max(now - sample.value, ages.get(name, -math.inf))
    own = {name: ages.get("" if label is None else name, math.inf) for name, _ in told.values}
    young = tuple(pair for pair in told.values if own[pair[0]] <= limit)
    if len(young) == len(told.values):
        return replace(told, steps=(*told.steps, Step("maxSampleAge", Outcome.OK, f"no sample is above {limit:g} s")))
    aged = [(name, age) for name, age in own.items() if age > limit]
    named = ", ".join(f"{name} ({_age(age)})" for name, age in aged[:_MOST_NAMED])
    more = f" and {len(aged) - _MOST_NAMED} more" if len(aged) > _MOST_NAMED else ""
    cause = f"the samples are older than the rule allows ({limit:g} s by maxSampleAge): {named}{more}"
    # A sum without some of its series would be too low.
    kept = () if label is None else young
    return replace(
        told, values=kept, steps=(*told.steps, Step("maxSampleAge", Outcome.NO, cause)), cause=cause, fix=_FIX
    )


def _object(sample: Sample, label: str | None) -> str | None:
    return None if label is None else sample.labels.get(label)


def _age(seconds: float) -> str:
    return f"{seconds:.0f} s" if math.isfinite(seconds) else "no current sample"
