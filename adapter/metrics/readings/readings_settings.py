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
    """Longest time that a request counts as in demand after it was last made: it leaves after four of its intervals."""
    once_asked_ttl_seconds: float = 60.0
    """Time for which a request that was made only once counts as in demand."""
    max_demand_per_namespace: int = 2000
    """Limit on the different requests that one namespace may have in demand."""
    max_demand: int = 100_000
    """Limit on the different requests of all namespaces together, because clients may ask for any external metric."""
    max_values: int = 5_000_000
    """Limit on the values held in memory, for all namespaces together."""
    max_values_per_namespace: int = 1_000_000
    """Limit on the values held for the queries of one namespace."""
    max_answer_age_seconds: float = 60.0
    """Longest time since the query's evaluation; an answer that is older is an error."""
    look_back_seconds: float = LOOK_BACK_SECONDS
    """How long Prometheus uses the last sample of a series as its value (`--query.lookback-delta`)."""
    relist_interval_seconds: float = 60.0
    """How often each rule's series are looked up."""
    metrics_max_age_seconds: float = 60.0
    """How old the last sample of a series may be for the series to count as existing."""
    metric_grace_seconds: float = 600.0
    """How long a metric stays after its last series vanished: a job that pauses must not make it flap."""
    max_kept_metrics: int = 50_000
    """Limit on the metrics of one rule that are kept although its last look-up did not find their series; those known
    first are kept."""
    serves_unseen_series: bool = True
    """Whether a rule that spells out its series' name serves metrics before such a series was ever seen."""
    allow_foreign_namespaces: bool = False
    """Whether samples that carry another namespace are used if a rule does not decide it (`foreignNamespaces`)."""
    first_answer_wait_seconds: float = 2.0
    """How long the first request for an answer waits for it."""
    max_waiting_requests: int = 12
    """How many requests may wait at once; beyond that, a first request is refused instead of occupying a thread."""
    max_waiting_requests_per_namespace: int = 8
    """Requests of one namespace that may wait at once, so that others find room. If there are several Prometheus
    servers, each has its part of both limits (`answering/waiting_requests`)."""
    query_deadline_seconds: float = 10.0
    """Time after which a query in the background is abandoned."""
    max_concurrent_refreshes: int = 4
    """Limit on the queries in the background that run at once. The next two limits apply in addition; each of the three
    has one more place in reserve."""
    max_concurrent_first_queries: int = 8
    """Limit on the queries that run at once for the first time; further ones wait in the queue."""
    max_concurrent_slow_queries: int = 4
    """Limit on the queries that run at once and took long last time."""
    slow_query_seconds: float = 2.0
    """Duration from which a query counts as slow."""
    namespace_plan_limit: int = 4
    """Up to this many namespaces are each queried separately; more are queried together."""
    discovery_deadline_seconds: float = 30.0
    """Time after which the look-up of one rule's series is abandoned."""
    max_concurrent_look_ups: int = 4
    """Limit on the look-ups of series that run at once, so that slow ones leave threads to the queries."""
    cross_check_interval_seconds: float = 60.0
    """How often each wider plan is compared with the exact query that it replaces."""
    trial_delay_seconds: float = 5.0
    """How far back both forms are compared before a plan that was refused is used again."""
    cross_check_delay_seconds: float = 60.0
    """How far back plans are compared: far enough that all samples have arrived."""
    object_look_up_deadline_seconds: float = 5.0
    """Time after which the look-up of a MetricRule object's series is abandoned."""
    max_concurrent_object_look_ups: int = 2
    """Limit on the look-ups for MetricRule objects that run at once, beside those for the rules of files; each
    namespace has at most one."""
    max_rule_objects_per_namespace: int = 50
    """Limit on the MetricRule objects of one namespace that are served, the oldest first."""
    max_series_of_rule_objects_per_namespace: int = 20_000
    """Limit on the series that the MetricRule objects of one namespace select together."""
    reload_discovery_seconds: float = 5.0
    """How long a reload may look up series of changed rules before the rules take effect without them."""

    @property
    def longest_refresh_seconds(self) -> float:
        """The longest `refresh` that a rule may have; it leaves time for a slow query before the answer is too old."""
        limit = self.max_answer_age_seconds
        return max(limit / 2, limit - self.query_deadline_seconds - 1)
