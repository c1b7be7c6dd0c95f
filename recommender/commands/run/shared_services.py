"""The parts that the environment of a cluster and the environment of a folder of objects share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.foundation.time.clock import Clock
    from adapter.foundation.time.pace import Pace
    from recommender.leader_election.lease_events import LeaseMetrics
    from recommender.outputs.output_telemetry import RecommenderTelemetry
    from recommender.running.history.history_cache import HistoryCache
    from recommender.running.inputs.poll_plan import PollPlan
    from recommender.running.sizes.plugin_hosts import PluginHosts
    from recommender.running.sizes.reported_writes import WriteResults


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServices:
    """The parts that are created before it is known where objects come from."""

    plan: Callable[[], PollPlan]
    wake: threading.Event
    """Set this event to make the loop poll soon."""
    telemetry: RecommenderTelemetry
    watches: WatchTelemetry
    lease_metrics: LeaseMetrics
    history: HistoryCache
    pace: Pace
    clock: Clock
    providers: PluginHosts
    """The providers of node groups; decisions read their groups, and writers change the sizes of these groups."""
    size_writes: WriteResults
    """The results of writing the sizes of node groups, which the next decisions read."""
