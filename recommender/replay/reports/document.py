"""The report of a replay as the JSON document of `replay -o json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adapter.foundation.documents.files import API_VERSION
from adapter.foundation.reports.documents import four_digits
from recommender.decisions.texts.times import rfc3339
from recommender.replay.policy_outcome import hours_of_days

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.replay.policy_outcome import PolicyOutcome, SpotOutcome
    from recommender.replay.reports.forecast_worth import ForecastWorth
    from recommender.replay.reports.report import ReplayReport

KIND = "ReplayReport"


def replay_document(report: ReplayReport) -> dict[str, Any]:
    """Return the report as plain values."""
    verdict = report.verdict
    low, high = verdict.interval or (None, None)
    hours = hours_of_days(report.start, report.end)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "source": report.source,
        "start": rfc3339(report.start),
        "end": rfc3339(report.end),
        "recorded": _outcome(report.recorded, hours) | {"evictions": None},
        "policies": [_outcome(one, hours) for one in report.policies],
        "verdict": {
            "use": verdict.use,
            "saves_ratio": four_digits(verdict.saves_ratio),
            "saves_ratio_low": four_digits(low),
            "saves_ratio_high": four_digits(high),
            "reason": verdict.reason,
        },
        "forecast_worth": None if report.worth is None else _worth(report.worth),
        "notes": list(report.notes),
    }


def _worth(worth: ForecastWorth) -> dict[str, Any]:
    return {
        "waits_less_ratio": four_digits(worth.waits_less_ratio),
        "waits_less_ratio_low": four_digits(worth.waits_less[0]),
        "waits_less_ratio_high": four_digits(worth.waits_less[1]),
        "costs_more_ratio": four_digits(worth.costs_more_ratio),
        "costs_more_ratio_low": four_digits(worth.costs_more[0]),
        "costs_more_ratio_high": four_digits(worth.costs_more[1]),
        "cost_per_pod_hour": four_digits(worth.cost_per_pod_hour),
    }


def _spot(spot: SpotOutcome) -> dict[str, Any]:
    return {
        "interruptions": spot.interruptions,
        "interrupted_pods": spot.interrupted_pods,
        "fallback_nodes": spot.fallback_nodes,
        "fallback_node_hours": round(spot.fallback_node_hours, 2),
        "fallback_cost": None if spot.fallback_cost is None else round(spot.fallback_cost, 2),
    }


def _outcome(one: PolicyOutcome, hours: FloatArray) -> dict[str, Any]:
    p50, p99, longest = pending_quantiles(one)
    return {
        "name": one.name,
        "node_hours": round(float(one.node_hours.sum()), 2),
        "cost": None if one.cost is None else round(float(one.cost.sum()), 2),
        "pending_pod_minutes": {
            "p50": round(p50, 2),
            "p99": round(p99, 2),
            "max": round(longest, 2),
            "total": round(float(one.pending_minutes.sum()), 1),
        },
        "evictions": int(one.evictions.sum()),
        "changes": one.changes,
        "unplaced_pods": one.unplaced,
        "nodes_by_day": [round(float(nodes), 2) for nodes in one.node_hours / hours],
        "spot": None if one.spot is None else _spot(one.spot),
    }


def pending_quantiles(one: PolicyOutcome) -> tuple[float, float, float]:
    """Return the median, the 99th percentile and the maximum of the minutes that pods waited."""
    if not len(one.wait_minutes):
        return 0.0, 0.0, 0.0
    p50, p99 = np.quantile(one.wait_minutes, [0.5, 0.99])
    return float(p50), float(p99), float(one.wait_minutes.max())
