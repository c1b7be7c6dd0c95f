"""predicted-load-packing: like target-load-packing, but by the CPU of the next hour where that has proven better.

A node that is quiet now and busy in an hour is scored as busy. The next hour counts for a node if predictions from its
own history have been better than the last 15 minutes (`windows/next_hour_forecast`). For all other nodes the scores are
exactly those of target-load-packing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.week import FORECAST_VERDICTS, ForecastVerdict
from adapter.nodes.scores.loads.target_load_packing import scores_of_load
from adapter.nodes.scores.policy_scores import PolicyScores, load_taken, percent_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import TargetLoadPackingArgs
    from adapter.nodes.scores.policy_scores import Rows

_WHY_NOT: Final[Mapping[ForecastVerdict, str]] = {
    ForecastVerdict.NOT_BETTER: "a backtest on the node's own week found predictions no better",
    ForecastVerdict.SHORT_HISTORY: "less than three days of the node are known around this time of the day",
    ForecastVerdict.NO_LOAD: "the node's load is not measured now",
}


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: TargetLoadPackingArgs) -> PolicyScores:
    """Return scores by the CPU of the next hour, or of the last 15 minutes; NaN for nodes without CPU metrics."""
    now = load_taken(columns.mean_ratio, LoadResource.CPU, rows)
    forecast = columns.forecast
    predicted = np.full(len(rows), np.nan) if forecast is None else forecast.ratio.take(rows)
    is_predicted = ~np.isnan(predicted)
    scores = scores_of_load(pod, columns, rows, args, np.where(is_predicted, predicted, now))

    def reason(position: int) -> str:
        if np.isnan(now[position]):
            return scores.reason(position)
        if is_predicted[position]:
            hour = (
                f"up to {percent_text(predicted[position])} is expected within the hour, {percent_text(now[position])}"
            )
            return f"{hour} is in use now; {scores.reason(position)}"
        why = "no history of the node is known yet"
        if forecast is not None:
            why = _WHY_NOT[FORECAST_VERDICTS[forecast.verdicts[rows[position]]]]
        return f"the last 15 minutes count, since {why}; {scores.reason(position)}"

    return PolicyScores(scores.values, reason)
