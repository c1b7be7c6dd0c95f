"""The state that requests, refreshes and reloads share: demand, its queries, and when they are due.

All of it changes under one lock. While the lock is held, nothing waits, and nothing is logged or started: log lines and
queries to launch are noted, and handled after the lock is released.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.demand import Demand, DemandEntry
from adapter.metrics.readings.asking.effects import Change, Trial
from adapter.metrics.readings.asking.held_values import HeldValues
from adapter.metrics.readings.asking.query_choice import Planner
from adapter.metrics.readings.asking.query_concurrency import BackendLanes
from adapter.metrics.readings.asking.query_outcomes import QueryOutcomes, RationedQueries
from adapter.metrics.readings.asking.refresh_periods import longest_period, most_period

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Iterator

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.time.clock import Clock
    from adapter.metrics.readings.asking.queries import Query, QueryGroup, QueryScope
    from adapter.metrics.readings.catalogue.rule_health import RuleHealthLog
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
    from adapter.metrics.rulebook.model import Metric, Rule

_log = logging.getLogger(__name__)


class AskingState:
    """Holds all demand and all queries. Its parts change only under its lock."""

    def __init__(
        self,
        *,
        settings: ReadingSettings,
        clock: Clock,
        telemetry: ReadingsTelemetry,
        states: RuleHealthLog,
        launch: Callable[[Query], object],
        launch_trial: Callable[[Trial], object],
    ) -> None:
        """`launch` passes a query to a thread that ends with `QueryScheduler.settle`, a trial with `record_trial`."""
        self.settings = settings
        self.clock = clock
        self._launch = launch
        self._launch_trial = launch_trial
        self.lock = threading.Lock()
        self.demand = Demand(settings)
        self.planner = Planner(settings)
        self.lanes = BackendLanes(settings)
        self.holdings = HeldValues(settings.max_values, settings.max_values_per_namespace)
        self.rationed = RationedQueries(self.planner, self.lanes, settings.max_answer_age_seconds)
        self.outcomes = QueryOutcomes(
            settings=settings,
            telemetry=telemetry,
            planner=self.planner,
            lanes=self.lanes,
            holdings=self.holdings,
            rationed=self.rationed,
        )
        self._states = states

    @contextmanager
    def changing(self) -> Iterator[Change]:
        """Hold the lock for a change, and carry out its effects after the lock is released."""
        change = Change()
        with self.lock:
            yield change
            change.remarks += self.planner.take_remarks()
        for query in change.begun:
            self._launch(query)
        for trial in change.trials:
            self._launch_trial(trial)
        for remark in change.remarks:
            _log.log(remark.level, "%s", remark.text)
        for rule, kind, text in change.of_rules:
            self._states.remark(rule, kind, "%s", text)

    @property
    def failed_sources(self) -> frozenset[Backend | None]:
        """Backends, None for the Prometheus of the flags, that cannot be asked at all, so that their queries fail."""
        with self.lock:
            return frozenset(self.outcomes.failed_sources)

    def backends(self) -> frozenset[Backend | None]:
        """Return the backends, None for the Prometheus of the flags, that queries are sent to."""
        with self.lock:
            return self.planner.backends()

    def count_distrusted_plans(self) -> Counter[str]:
        """Return, by rule id, how many metrics are queried exactly because their plan gave other values."""
        with self.lock:
            return self.planner.plans.distrusted_rules()

    def keep_objects(self, rules: Collection[Rule]) -> None:
        """Trust the plans of MetricRule objects again, except those of these rules."""
        with self.lock:
            self.planner.plans.keep_objects(rules)

    def groups(self) -> list[QueryGroup]:
        """Return the groups of requests, by metric and selector."""
        with self.lock:
            return self.planner.groups()

    def expire(self, entry: DemandEntry) -> None:
        """Forget a request, unless another thread has already forgotten it."""
        with self.changing() as change:
            now = self.clock.monotonic()
            if self.demand.holds(entry):
                self.remove(entry, now)
            self.begin(change, now)

    def remove(self, entry: DemandEntry, now: float) -> None:
        """Forget a request; the caller holds the lock, as for all that follows."""
        self.demand.remove(entry)
        self.planner.release(entry.request, entry.scope, now)

    def begin(self, change: Change, now: float) -> None:
        """Note the queries to launch: new ones are due at once."""
        for query in self.planner.take_new():
            self.lanes.of(query).set(query, now)
        change.begun += self.lanes.begin(now)

    def begin_for(self, change: Change, scope: QueryScope, metric: Metric, now: float) -> None:
        """Note the queries to launch after a request was bound, which may make a shared query due sooner."""
        query = scope.wanted
        longest = most_period(metric, self.settings) if query.paced else longest_period(metric, self.settings)
        if longest < query.period:
            self.hasten(query, longest)
        self.lanes.of(query).reassign(query)
        self.begin(change, now)

    def hasten(self, query: Query, period: float) -> None:
        """Refresh a query at least once in `period` seconds from now on; a failing query keeps its pause."""
        query.period = min(query.period, period)
        if not query.failures:
            self.lanes.of(query).hasten(query, query.started_at + query.period)
