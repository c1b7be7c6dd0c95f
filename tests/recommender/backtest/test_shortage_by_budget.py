"""Backtests of budgets: costs, short steps, and headroom of the same cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.backtest.options import BacktestOptions
from recommender.backtest.report import Actuator
from recommender.backtest.reports.document import backtest_document
from recommender.backtest.reports.table import report_text
from recommender.backtest.shortage_by_budget import BUDGET_RATIOS
from recommender.kinds.predictive.models.table import model_named
from tests.recommender.backtest.replays import daily_load, replayed

if TYPE_CHECKING:
    from recommender.backtest.report import BacktestReport

MODELS = tuple(map(model_named, ("linear", "seasonal", "largest-hour")))


@pytest.fixture(scope="module")
def report() -> BacktestReport:
    """Return one replay with every budget, for the tests that read its report."""
    return replayed(daily_load(24 * 6 * 8), models=MODELS)


def test_a_larger_budget_costs_more_and_has_fewer_shortages(report: BacktestReport) -> None:
    points = report.budgets
    assert [point.budget_ratio for point in points] == list(BUDGET_RATIOS)
    hours = [point.measures.replica_hours for point in points]
    assert hours == sorted(hours)
    assert points[0].measures.tau_under_percent > points[-1].measures.tau_under_percent
    assert points[0].headroom_tau_under_percent > points[-1].headroom_tau_under_percent
    # Whole replicas and what could not be known make it differ.
    assert all(abs(point.above_load_ratio - point.budget_ratio) < 0.1 for point in points[1:])


def test_budgets_are_compared_with_headroom_of_the_same_cost(report: BacktestReport) -> None:
    hours = [point.measures.replica_hours for point in report.frontier]
    for point in report.budgets:
        expected = np.interp(
            point.measures.replica_hours, hours, [each.measures.tau_under_percent for each in report.frontier]
        )
        assert point.headroom_tau_under_percent == expected


def test_the_report_lists_budgets_and_the_text_has_a_line(report: BacktestReport) -> None:
    rows = backtest_document(report)["budgets"]
    assert isinstance(rows, list)
    assert [row["budget_ratio"] for row in rows] == list(BUDGET_RATIOS)
    (line,) = [line for line in report_text(report).splitlines() if line.startswith("Short by `budget`")]
    assert line.count("(") == len(BUDGET_RATIOS)


def test_a_load_of_zeros_and_an_hpa_have_no_budgets() -> None:
    assert replayed([0.0] * 50).budgets == ()
    assert replayed([7.0] * 50, BacktestOptions(actuator=Actuator.HPA)).budgets == ()
