"""The replayed steps as a CSV file with the load, auto's prediction, and the replicas of each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recommender.backtest.errors import BacktestError
from recommender.backtest.replayed_policies import AUTO

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.backtest.report import BacktestReport


def write_series(report: BacktestReport, path: Path) -> None:
    """Write `timestamp,load,predicted,replicas_POLICY…`, one row for each step. Raises BacktestError.

    `predicted` is the load for which `model:auto` provided capacity one lead later. Unknown values are empty.
    """
    times = pd.to_datetime(report.history.times(), unit="s", utc=True).round("ms")
    whole = bool((times == times.floor("s")).all())
    frame = pd.DataFrame(
        {
            "timestamp": times.strftime("%Y-%m-%dT%H:%M:%SZ" if whole else "%Y-%m-%dT%H:%M:%S.%fZ"),
            "load": report.load,
            "predicted": report.policy(AUTO).predicted,
            **{f"replicas_{policy.name}": policy.fleet.asked for policy in report.policies},
        }
    )
    try:
        frame.to_csv(path, index=False, float_format="%.10g")
    except OSError as error:
        raise BacktestError(
            f"{path}: the series cannot be written: {error.strerror or error}: name another file"
        ) from error
