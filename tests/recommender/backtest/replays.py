"""Replays of short seeded loads."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry

from recommender.backtest.backtest import run_backtest
from recommender.backtest.options import BacktestOptions
from recommender.backtest.recorded.resampling import Missing, resample
from recommender.backtest.recorded.trace_file import of_samples
from recommender.child_processes.parent import Children
from recommender.kinds.predictive.models.table import MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.backtest.report import BacktestReport
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import Model

LIGHT = tuple(model for model in MODELS if not model.is_heavy)
FEW = LIGHT[:3]
"""Models for tests of other things than models, since each model is replayed over the whole load."""
BUDGETS, ONE_BUDGET = "recommender.backtest.shortage_by_budget.BUDGET_RATIOS", (0.5,)
"""One budget for tests of other things, since for each budget models are chosen anew over the whole load."""
AT = 1_767_225_600.0
"""2026-01-01T00:00:00Z, a Thursday."""


def daily_load(steps: int, step_seconds: float = 600.0, seed: int = 1) -> FloatArray:
    """Return load with a daily wave and noise."""
    hours = np.arange(steps) * step_seconds / 3600
    noise = np.random.default_rng(seed).normal(0, 20, steps)
    return np.asarray(np.maximum(0, 300 - 200 * np.cos(2 * np.pi * hours / 24) + noise))


def replayed(
    load: Sequence[float] | FloatArray,
    options: BacktestOptions | None = None,
    *,
    step_seconds: float = 600.0,
    models: Sequence[Model] = LIGHT,
) -> BacktestReport:
    """Return the report of this load."""
    values = np.asarray(load, dtype=np.float64)
    trace = of_samples("load.csv", AT + step_seconds * np.arange(len(values), dtype=np.float64), values)
    history = resample(trace, None, Missing.GAP)
    with closing(Children(CollectorRegistry(), "test", most=1)) as children:
        return run_backtest(trace, history, options or BacktestOptions(), models, children)
