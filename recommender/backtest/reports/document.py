"""The report as the JSON document of `backtest -o json`. Keys are documented in docs/predictive.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from recommender.decisions.texts.times import rfc3339

if TYPE_CHECKING:
    from recommender.backtest.report import BacktestReport, BacktestVerdict, PolicyResult, TraceFacts
    from recommender.backtest.shortage_by_budget import BudgetPoint
    from recommender.kinds.predictive.simulation.connections import ConnectionMeasures
    from recommender.kinds.predictive.simulation.frontier import FrontierPoint

API_VERSION: Final = "tidewatch.io/v1alpha1"
KIND: Final = "BacktestReport"
_DIGITS: Final = 6


def backtest_document(report: BacktestReport) -> dict[str, object]:
    """Return the report as a document, for JSON and YAML."""
    fleet = report.fleet_settings
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "actuator": report.actuator.value,
        "trace": _trace(report.trace),
        "startup_seconds": _number(fleet.startup_seconds),
        "load_per_replica": _number(fleet.load_per_replica),
        "min_replicas": fleet.min_replicas,
        "max_replicas": fleet.max_replicas,
        "policies": [_policy(each) for each in report.policies],
        "frontier": [_point(each) for each in report.frontier],
        "budgets": [_budget(each) for each in report.budgets],
        "verdict": _verdict(report.verdict),
        "notes": list(report.notes),
    }


def _trace(trace: TraceFacts) -> dict[str, object]:
    return {
        "source": trace.source,
        "start": rfc3339(trace.start),
        "end": rfc3339(trace.end),
        "step_seconds": _number(trace.step_seconds),
        "samples": trace.samples,
        "judged_steps": trace.judged_steps,
        "warm_up_seconds": _number(trace.warm_up_seconds),
    }


def _policy(policy: PolicyResult) -> dict[str, object]:
    measures, versus = policy.measures, policy.comparison
    return {
        "name": policy.name,
        "parameters": dict(policy.parameters),
        "replica_hours": _number(measures.replica_hours),
        "tau_under_percent": _number(measures.tau_under_percent),
        "theta_under_percent": _number(measures.theta_under_percent),
        "tau_over_percent": _number(measures.tau_over_percent),
        "theta_over_percent": _number(measures.theta_over_percent),
        "lost_load_ratio": _number(measures.lost_load_ratio),
        "changes": measures.changes,
        "worst_shortage_replicas": measures.worst_shortage_replicas,
        "cost_as_headroom_ratio": _number(versus.cost_as_headroom_ratio),
        "tau_under_versus_headroom": _number(versus.tau_under_versus_headroom),
        "theta_under_versus_headroom": _number(versus.theta_under_versus_headroom),
        "lost_load_versus_headroom": _number(versus.lost_load_versus_headroom),
        "changes_versus_headroom": _number(versus.changes_versus_headroom),
        "fits": policy.fits.done,
        "failed_fits": policy.fits.failed,
        "connections": None if policy.connections is None else _connections(policy.connections),
    }


def _connections(measures: ConnectionMeasures) -> dict[str, object]:
    return {
        "attempted": _number(measures.attempted),
        "refused": _number(measures.refused),
        "refused_ratio": _number(measures.refused_ratio),
        "cut_off": _number(measures.cut_off),
        "steps_without_endpoints": measures.steps_without_endpoints,
    }


def _point(point: FrontierPoint) -> dict[str, object]:
    measures = point.measures
    return {
        "headroom_ratio": point.headroom_ratio,
        "replica_hours": _number(measures.replica_hours),
        "tau_under_percent": _number(measures.tau_under_percent),
        "theta_under_percent": _number(measures.theta_under_percent),
        "lost_load_ratio": _number(measures.lost_load_ratio),
        "changes": measures.changes,
    }


def _budget(point: BudgetPoint) -> dict[str, object]:
    measures = point.measures
    return {
        "budget_ratio": point.budget_ratio,
        "cost_above_load_ratio": _number(point.above_load_ratio),
        "replica_hours": _number(measures.replica_hours),
        "tau_under_percent": _number(measures.tau_under_percent),
        "theta_under_percent": _number(measures.theta_under_percent),
        "headroom_ratio": _number(point.headroom_ratio),
        "headroom_tau_under_percent": _number(point.headroom_tau_under_percent),
        "headroom_theta_under_percent": _number(point.headroom_theta_under_percent),
    }


def _verdict(verdict: BacktestVerdict) -> dict[str, object]:
    versus = verdict.comparison
    return {
        "best": verdict.best,
        "use": verdict.use,
        "cost_as_headroom_ratio": _number(versus.cost_as_headroom_ratio),
        "tau_under_versus_headroom": _number(versus.tau_under_versus_headroom),
        "theta_under_versus_headroom": _number(versus.theta_under_versus_headroom),
        "cost_above_load_ratio": _number(verdict.cost_above_load_ratio),
        "best_at_equal_cost": None if verdict.regret is None else verdict.regret.best,
        "regret": None if verdict.regret is None else _number(verdict.regret.regret),
    }


def _number(value: float | None) -> float | int | None:
    """Return the number rounded to significant digits, as an integer if it is whole."""
    if value is None:
        return None
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a report")
    rounded = float(f"{value:.{_DIGITS}g}") if abs(value) < 10**_DIGITS else round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded
