"""The `maxReplicas` that the history of a load suggests: as many as serve the largest possible forecast.

Forecasts are at most `maxOverHistory` times the largest load of the history. A lower limit would cut some of them. A
higher limit would only take effect if the query or `loadPerReplica` is wrong, and that is what the limit protects from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import format_duration
from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS

if TYPE_CHECKING:
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

UNLIMITED: Final = "the output scale needs `maxReplicas`: nothing else limits the sizes that are written"
FIND_LIMIT: Final = (
    "write predictive: {maxReplicas: N}; tidewatch-recommender recommend, doctor and backtest say which N the history "
    "of the load suggests"
)
_MINUTE_SECONDS: Final = 60.0
_MOST_POINTS: Final = 5_000
"""The largest number of moments of the history that are queried."""


def suggested_max_replicas(
    largest_load: float, load_per_replica: float, max_over_history: float, min_replicas: int
) -> int:
    """Return as many replicas as serve the largest possible forecast, and no fewer than the least size."""
    replicas = math.ceil(min(largest_load * max_over_history / load_per_replica, float(MOST_REPLICAS)) - 1e-9)
    return max(1, min_replicas, replicas)


def largest_load_query(settings: PredictiveSettings) -> str:
    """Return PromQL for the largest load of the history (of any target, with `forEach`); empty without a load."""
    if not settings.load:
        return ""
    step = _MINUTE_SECONDS * math.ceil(settings.history_seconds / _MOST_POINTS / _MINUTE_SECONDS)
    # A comment may end the load, so the rest is on a new line.
    window = f"[{format_duration(settings.history_seconds)}:{format_duration(step)}]"
    return f"max(max_over_time((\n{settings.load}\n){window}))"


def suggestion(largest_load: float, settings: PredictiveSettings) -> str:
    """Return what to write, with the figures behind it."""
    per_replica, ratio = settings.load_per_replica or 1.0, settings.max_over_history
    most = suggested_max_replicas(largest_load, per_replica, ratio, settings.min_replicas)
    needed = suggested_max_replicas(largest_load, per_replica, 1.0, settings.min_replicas)
    return (
        f"write predictive: {{maxReplicas: {most}}}: the largest load of the last "
        f"{format_duration(settings.history_seconds)} was {largest_load:.6g}, which needs {needed}, and forecasts are "
        f"at most {ratio:g} times as much"
    )
