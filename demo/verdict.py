"""Decides whether the load was held, from the clients' results and the second opinion (pure)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demo.moments import Moment
    from demo.records import Sync
    from demo.settings import Settings
    from demo.verify import Findings


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one day; `objections` is empty when the load was held."""

    objections: tuple[str, ...]
    refused_ratio: float
    replicas_min: int
    replicas_max: int
    replicas_last: int

    @property
    def held(self) -> bool:
        """Whether there are no objections."""
        return not self.objections


def judge(moments: Sequence[Moment], syncs: Sequence[Sync], findings: Findings, settings: Settings) -> Verdict:
    """Return the verdict on the day.

    Held means: few connections refused, at least three times the pods at the top, nearly the minimum at the end, and
    every value and decision as an independent computation from Prometheus has it.
    """
    last = moments[-1]
    most = max(moment.replicas for moment in moments)
    least = min(moment.replicas for moment in moments)
    floor = settings.target.min_replicas
    claims = {
        f"{last.refused} of {last.attempted} connections were refused ({last.refused_ratio:.1%}), more than "
        f"{settings.largest_refused_ratio:.0%}": last.refused_ratio > settings.largest_refused_ratio,
        f"there were never more than {most} pods: three times the minimum of {floor} was expected": most < 3 * floor,
        f"{last.replicas} pods were left, expected at most {floor + 1}": last.replicas > floor + 1,
        "no decision was made": not syncs,
        f"{len(findings.answers_wrong)} of {findings.answers_checked} answers differ from Prometheus, first: "
        f"{_first(findings.answers_wrong)}": bool(findings.answers_wrong),
        f"{len(findings.decisions_wrong)} of {findings.decisions_checked} decisions differ from the formula, first: "
        f"{_first(findings.decisions_wrong)}": bool(findings.decisions_wrong),
    }
    objections = tuple(claim for claim, true in claims.items() if true)
    return Verdict(objections, last.refused_ratio, least, most, last.replicas)


def sentence(verdict: Verdict, moments: Sequence[Moment], findings: Findings) -> str:
    """Return the one line that the demo ends with."""
    if not verdict.held:
        return "NOT HELD: " + "; ".join(verdict.objections)
    last = moments[-1]
    return (
        f"HELD: {last.attempted - last.refused} of {last.attempted} connections taken, pods {verdict.replicas_min} to "
        f"{verdict.replicas_max} and back to {verdict.replicas_last}; {findings.answers_checked} answers and "
        f"{findings.decisions_checked} decisions are what Prometheus gives"
    )


def summary(
    verdict: Verdict, moments: Sequence[Moment], syncs: Sequence[Sync], findings: Findings, settings: Settings
) -> dict[str, Any]:
    """Return what is written to `demo/out/summary.json`."""
    last = moments[-1]
    steps = [after.replicas - before.replicas for before, after in itertools.pairwise(moments)]
    return {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "DemoSummary",
        "verdict": "held" if verdict.held else "not held",
        "objections": list(verdict.objections),
        "day_seconds": settings.seconds,
        "seed": settings.seed,
        "connections_attempted": last.attempted,
        "connections_refused": last.refused,
        "connections_dropped": last.dropped,
        "connections_peak": max(moment.open for moment in moments),
        "refused_ratio": last.refused_ratio,
        "replicas_min": verdict.replicas_min,
        "replicas_max": verdict.replicas_max,
        "replicas_last": verdict.replicas_last,
        "scale_ups": sum(step > 0 for step in steps),
        "scale_downs": sum(step < 0 for step in steps),
        "rounds": len(syncs),
        "rounds_without_a_value": sum(bool(sync.errors) for sync in syncs),
        "answers_checked": findings.answers_checked,
        "answers_wrong": len(findings.answers_wrong),
        "decisions_checked": findings.decisions_checked,
        "decisions_wrong": len(findings.decisions_wrong),
    }


def _first(sentences: Sequence[str]) -> str:
    return sentences[0] if sentences else ""
