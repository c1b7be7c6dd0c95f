"""The parts that both worlds share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from adapter.sources.kubernetes.telemetry import LeaseMetrics, WatchTelemetry
    from adapter.timing.clock import Clock
    from adapter.timing.pace import Pace
    from recommender.outputs.scale import ScaleOutcome
    from recommender.outputs.telemetry import RecommenderTelemetry
    from recommender.running.history_cache import HistoryCache
    from recommender.running.plans import PollPlan
    from recommender.running.sizing.writes import WriteResults


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedParts:
    """What is made before it is known where objects come from."""

    plan: Callable[[], PollPlan]
    wake: threading.Event
    """Set to let the loop poll soon."""
    telemetry: RecommenderTelemetry
    watches: WatchTelemetry
    lease_metrics: LeaseMetrics
    history: HistoryCache
    pace: Pace
    clock: Clock
    size_writes: WriteResults
    """What became of the sizes of node groups, for the next decisions."""
    scaled: Callable[[ScaleOutcome], None]
    """Called after each attempt of a scale call, in its thread."""
