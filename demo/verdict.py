"""Decides whether the load was held, from the clients' results and the independent check in `verify` (pure)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.forecasts import Choice
    from demo.moments import Moment
    from demo.records import Sync, Target
    from demo.settings import Settings
    from demo.verify import Findings

CHANCE_DEVIATIONS = 2.0
"""Refusals are single events: two fleets count as equal up to a difference of this many standard deviations."""
FORECAST_LOST_RATIO = 0.2
"""A fleet that had no forecast in a larger share of its rounds has lost the forecast, and is right to keep its size."""


@dataclass(frozen=True, slots=True)
class FleetDay:
    """The day of one fleet."""

    target: Target
    moments: Sequence[Moment]
    syncs: Sequence[Sync]
    findings: Findings
    took_seconds: float
    """The time that the day took, by the clock of the machine, which Prometheus and the forecasts use."""

    @property
    def refused(self) -> int:
        """Return how many attempts were refused."""
        return self.moments[-1].refused

    @property
    def pod_seconds(self) -> float:
        """Return the cost: pods that exist, starting ones included, over time."""
        pairs = itertools.pairwise(self.moments)
        return sum(before.replicas * (after.seconds - before.seconds) for before, after in pairs)

    @property
    def has_lost_its_forecast(self) -> bool:
        """Whether the forecast was missing in many rounds."""
        missing = sum(sync.predicted is None for sync in self.syncs)
        return self.target.follows_forecast and missing > FORECAST_LOST_RATIO * len(self.syncs)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one fleet's day; `objections` is empty if the load was held."""

    objections: tuple[str, ...]
    replicas_min: int
    replicas_max: int
    replicas_last: int

    @property
    def held(self) -> bool:
        """Whether there are no objections."""
        return not self.objections


def judge(day: FleetDay, settings: Settings, headroom_ratio: float | None = 0.0) -> Verdict:
    """Return the verdict on the day of a fleet whose sizes include this headroom above the target's connections.

    If the headroom is not known (None), any number of pods may be left at the end.

    The load was held if few connections were refused, if the number of pods reached at least three times the minimum
    and was nearly what the load needed at the end, and if an independent computation from Prometheus yields the same
    values and decisions. A fleet that has lost its forecast keeps its size, as the HPA does when a metric is missing;
    if a day took longer, the forecasts at its end may already see the next morning.
    """
    last, findings = day.moments[-1], day.findings
    most = max(moment.replicas for moment in day.moments)
    least = min(moment.replicas for moment in day.moments)
    floor = day.target.min_replicas
    needed = max(floor, math.ceil(last.open * (1 + (headroom_ratio or 0.0)) / day.target.connections_per_pod))
    allowed = settings.largest_refused_ratio
    if not day.target.follows_forecast:
        allowed = settings.largest_refused_ratio_of_yardstick
    claims = {
        f"{last.refused} of {last.attempted} connections were refused ({last.refused_ratio:.1%}), more than "
        f"{allowed:.0%}": last.refused_ratio > allowed,
        f"there were never more than {most} pods: three times the minimum of {floor} was expected": most < 3 * floor,
        f"{last.replicas} pods were left, expected at most {needed + 1}": last.replicas > needed + 1
        and headroom_ratio is not None
        and not day.has_lost_its_forecast
        and (is_in_step(day, settings) or not day.target.follows_forecast),
        "no decision was made": not day.syncs,
        f"{len(findings.answers_wrong)} of {findings.answers_checked} answers differ from Prometheus, first: "
        f"{_first(findings.answers_wrong)}": bool(findings.answers_wrong),
        f"{len(findings.decisions_wrong)} of {findings.decisions_checked} decisions differ from the formula, first: "
        f"{_first(findings.decisions_wrong)}": bool(findings.decisions_wrong),
    }
    return Verdict(tuple(claim for claim, true in claims.items() if true), least, most, last.replicas)


def judge_both(reactive: FleetDay, predictive: FleetDay, choice: Choice, settings: Settings) -> tuple[Verdict, Verdict]:
    """Return the verdicts on both fleets. The second one must refuse no more than the first, at a bounded cost.

    The two are not compared if no model was chosen before the day, or if the forecasts were for other times than those
    of the day.
    """
    # The forecasts cost as much as this headroom, which the reactive fleet has in its target. A model that is chosen
    # during the day has another cost.
    verdict = judge(predictive, settings, choice.headroom_ratio if choice.is_made else None)
    cost = _cost_ratio(reactive, predictive)
    is_judged = settings.hpa and choice.is_made and is_in_step(predictive, settings)
    claims = {
        f"{predictive.refused} of its connections were refused, of the reactive fleet "
        f"{reactive.refused}": has_refused_more(predictive.refused, reactive.refused),
        f"it took {cost:.0%} more pod-seconds than the reactive fleet, at most "
        f"{settings.largest_extra_cost_ratio:.0%} were expected": cost > settings.largest_extra_cost_ratio
        and not predictive.has_lost_its_forecast,
    }
    more = tuple(claim for claim, true in claims.items() if true and is_judged)
    return judge(reactive, settings), Verdict(
        (*verdict.objections, *more), verdict.replicas_min, verdict.replicas_max, verdict.replicas_last
    )


def is_in_step(day: FleetDay, settings: Settings) -> bool:
    """Return whether the day took as long as those before it; on a busy machine, it waits for slow processes."""
    return day.took_seconds <= (1 + settings.largest_delay_ratio) * settings.seconds


def has_refused_more(refused: int, other: int) -> bool:
    """Return whether a fleet has refused more than another one on the same day, beyond what chance explains.

    The difference of two counts of rare events has the variance of their sum (Poisson).
    """
    return refused - other > CHANCE_DEVIATIONS * math.sqrt(refused + other)


def sentence(days: Sequence[FleetDay], verdicts: Sequence[Verdict]) -> str:
    """Return one line for each fleet, with which the demo ends."""
    return "\n".join(
        f"{'predictive' if day.target.follows_forecast else 'reactive  '}  {_sentence(day, verdict)}"
        for day, verdict in zip(days, verdicts, strict=True)
    )


def _sentence(day: FleetDay, verdict: Verdict) -> str:
    if not verdict.held:
        return "NOT HELD: " + "; ".join(verdict.objections)
    last = day.moments[-1]
    lost = "; the forecast ended, and it kept its size" if day.has_lost_its_forecast else ""
    return (
        f"HELD: {last.attempted - last.refused} of {last.attempted} connections taken, pods {verdict.replicas_min} to "
        f"{verdict.replicas_max} and back to {verdict.replicas_last}, {day.pod_seconds:.0f} pod-seconds; "
        f"{day.findings.answers_checked} answers and {day.findings.decisions_checked} decisions are what Prometheus "
        f"gives{lost}"
    )


def summary(
    days: tuple[FleetDay, FleetDay], verdicts: tuple[Verdict, Verdict], choice: Choice, settings: Settings
) -> dict[str, Any]:
    """Return the content of `demo/out/summary.json`: the reactive fleet, and in `predictive` the other one."""
    held = all(verdict.held for verdict in verdicts)
    reactive, predictive = (_summary(day, verdict) for day, verdict in zip(days, verdicts, strict=True))
    return {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "DemoSummary",
        "day_seconds": settings.seconds,
        "seed": settings.seed,
        **reactive,
        "verdict": "held" if held else "not held",
        "objections": [objection for verdict in verdicts for objection in verdict.objections],
        "in_step": is_in_step(days[1], settings),
        "predictive": {
            **predictive,
            "model": choice.model,
            "model_reason": choice.reason,
            "cost_as_headroom_ratio": choice.headroom_ratio,
            "rounds_without_a_forecast": sum(sync.predicted is None for sync in days[1].syncs),
            "extra_cost_ratio": _cost_ratio(*days),
        },
    }


def _summary(day: FleetDay, verdict: Verdict) -> Mapping[str, Any]:
    last = day.moments[-1]
    steps = [after.replicas - before.replicas for before, after in itertools.pairwise(day.moments)]
    return {
        "verdict": "held" if verdict.held else "not held",
        "objections": list(verdict.objections),
        "connections_attempted": last.attempted,
        "connections_refused": last.refused,
        "connections_dropped": last.dropped,
        "connections_lost": last.lost,
        "connections_peak": max(moment.open for moment in day.moments),
        "refused_ratio": last.refused_ratio,
        "connections_per_pod": day.target.connections_per_pod,
        "pod_seconds": round(day.pod_seconds, 1),
        "took_seconds": round(day.took_seconds, 1),
        "replicas_min": verdict.replicas_min,
        "replicas_max": verdict.replicas_max,
        "replicas_last": verdict.replicas_last,
        "scale_ups": sum(step > 0 for step in steps),
        "scale_downs": sum(step < 0 for step in steps),
        "rounds": len(day.syncs),
        "rounds_without_a_value": sum(bool(sync.errors) for sync in day.syncs),
        "answers_checked": day.findings.answers_checked,
        "answers_wrong": len(day.findings.answers_wrong),
        "decisions_checked": day.findings.decisions_checked,
        "decisions_wrong": len(day.findings.decisions_wrong),
    }


def _cost_ratio(reactive: FleetDay, predictive: FleetDay) -> float:
    """Return by what share the second fleet cost more."""
    return predictive.pod_seconds / reactive.pod_seconds - 1 if reactive.pod_seconds else 0.0


def _first(sentences: Sequence[str]) -> str:
    return sentences[0] if sentences else ""
