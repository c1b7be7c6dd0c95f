"""Settings of readings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.promql.reach import LOOK_BACK_SECONDS

if TYPE_CHECKING:
    from adapter.foundation.promql.narrowing import Matchers


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """Intervals and bounds; all times in seconds."""

    matchers: Matchers | None = None
    """Matchers that the Prometheus client adds to every selector, for explanations that show a query as it is sent."""
    refresh_interval_seconds: float = 10.0
    """Refresh interval while no client's interval is known; from then on it is half of the shortest interval."""
    demand_ttl_seconds: float = 600.0
    """How long something counts as asked for after the last request, at most: it leaves after four of its intervals."""
    once_asked_ttl_seconds: float = 60.0
    """The same for what was asked once."""
    max_demand_per_namespace: int = 2000
    """Different requests that one namespace may have standing."""
    max_demand: int = 100_000
    """Different requests that all together may have standing: namespaces of External metrics need not exist."""
    max_values: int = 5_000_000
    """Values held in memory, of all namespaces together."""
    max_values_per_namespace: int = 1_000_000
    """Values held for the queries of one namespace."""
    max_answer_age_seconds: float = 60.0
    """Now minus the evaluation time of the query; an older answer is an error."""
    look_back_seconds: float = LOOK_BACK_SECONDS
    """How long Prometheus takes a series' last sample for its value (`--query.lookback-delta`)."""
    relist_interval_seconds: float = 60.0
    """How often each rule's series are looked up."""
    metrics_max_age_seconds: float = 60.0
    """How far back a series may lie to count as there."""
    metric_grace_seconds: float = 600.0
    """How long a metric stays after its last series vanished: a job that pauses must not make it flap."""
    max_kept_metrics: int = 50_000
    """Metrics of one rule that stay though its last look-up did not find their series; those known first stay."""
    serves_unseen_series: bool = True
    """Whether a rule that spells its series' name out serves before such a series was ever seen."""
    allow_foreign_namespaces: bool = False
    """Whether samples that carry another namespace are let through where a rule does not say (`foreignNamespaces`)."""
    first_answer_wait_seconds: float = 2.0
    """How long the first request for an answer waits for it."""
    max_waiting_requests: int = 12
    """Requests that may wait at once; beyond, a first asker is turned away instead of holding one more thread."""
    max_waiting_requests_per_namespace: int = 8
    """Requests of one namespace that may wait at once, so that others find room. Where there are several Prometheus
    servers, each has its part of both limits (`answering/waiting_requests`)."""
    query_deadline_seconds: float = 10.0
    """When a query in the background is given up."""
    max_concurrent_refreshes: int = 4
    """Queries in the background that run at once; the next two come on top, and one place for each of the three."""
    max_concurrent_first_queries: int = 8
    """Queries that were never asked before and run at once; further ones queue."""
    max_concurrent_slow_queries: int = 4
    """Queries that took long the last time and run at once."""
    slow_query_seconds: float = 2.0
    """From when on a query takes long."""
    namespace_plan_limit: int = 4
    """Up to that many asking namespaces are each asked for alone; more are asked for together."""
    discovery_deadline_seconds: float = 30.0
    """When the look-up of one rule's series is given up."""
    max_concurrent_look_ups: int = 4
    """Look-ups of series that run at once, so that slow ones leave threads to the queries."""
    cross_check_interval_seconds: float = 60.0
    """How often each wider plan is compared with what it replaces."""
    trial_delay_seconds: float = 5.0
    """How far back both forms are compared before a plan that was refused is used again."""
    cross_check_delay_seconds: float = 60.0
    """How far back plans are compared: where no sample is still on its way."""
    object_look_up_deadline_seconds: float = 5.0
    """When the look-up of a MetricRule object's series is given up."""
    max_concurrent_object_look_ups: int = 2
    """Look-ups for MetricRule objects that run at once, beside those for the rules of files; one of a namespace."""
    max_rule_objects_per_namespace: int = 50
    """MetricRule objects of one namespace that are served, the oldest first."""
    max_series_of_rule_objects_per_namespace: int = 20_000
    """Series that the MetricRule objects of one namespace may select together."""
    reload_discovery_seconds: float = 5.0
    """How long a reload may look up series of changed rules before they take effect without."""

    @property
    def longest_refresh_seconds(self) -> float:
        """The longest `refresh` that a rule may have: the time that a slow query takes comes on top of it."""
        limit = self.max_answer_age_seconds
        return max(limit / 2, limit - self.query_deadline_seconds - 1)
