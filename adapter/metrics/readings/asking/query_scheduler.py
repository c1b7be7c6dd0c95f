"""Demand, its queries, and when they are due: the state that requests, refreshes and reloads share.

A request that has been made before takes no lock: it finds its entry, notes its arrival and reads. The lock is for
changes of the state. While it is held, nothing waits, and nothing is logged or started: log lines and queries to launch
are noted, and handled after the lock is released.
"""

from __future__ import annotations

import logging
import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.demand import (
    Demand,
    DemandEntry,
    Paces,
    longest_period,
    most_period,
    period_of,
)
from adapter.metrics.readings.asking.effects import Change, Remark
from adapter.metrics.readings.asking.held_values import HeldValues
from adapter.metrics.readings.asking.outcomes import QueryOutcomes, RationedQueries, is_too_much
from adapter.metrics.readings.asking.planning import Planner
from adapter.metrics.readings.asking.run_queue import BackendLanes
from adapter.metrics.readings.catalogue.catalogue import same_metric
from adapter.metrics.readings.catalogue.rule_health import query_trouble
from adapter.metrics.readings.errors import UnanswerableSelectorError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Hashable, Iterator

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.time.clock import Clock
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.asking.demand import DemandedRequest
    from adapter.metrics.readings.asking.effects import Trial
    from adapter.metrics.readings.asking.queries import (
        Query,
        QueryGroup,
        QueryScope,
        Reading,
    )
    from adapter.metrics.readings.catalogue.rule_health import RuleHealthLog, Trouble
    from adapter.metrics.readings.failure import Failure
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
    from adapter.metrics.rulebook.model import Metric

_log = logging.getLogger(__name__)

_WORTH_HASTENING = 0.9
_ENTRIES_A_SLICE = 300


class QueryScheduler:
    """Holds all demand and all queries, and decides which query runs when."""

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
        """`launch` passes a query to a thread, which calls `settle` at the end, or `tried` for a trial."""
        self._settings = settings
        self._clock = clock
        self._launch = launch
        self._launch_trial = launch_trial
        self._lock = threading.Lock()
        self._demand = Demand(settings)
        self._planner = Planner(settings)
        self._lanes = BackendLanes(settings)
        self._holdings = HeldValues(settings.max_values, settings.max_values_per_namespace)
        self._rationed = RationedQueries(self._planner, self._lanes, settings.max_answer_age_seconds)
        self._outcomes = QueryOutcomes(
            settings=settings,
            telemetry=telemetry,
            planner=self._planner,
            lanes=self._lanes,
            holdings=self._holdings,
            rationed=self._rationed,
        )
        self._states = states

    def entry(self, metric: Metric, request: DemandedRequest, part: Hashable = None) -> DemandEntry:
        """Register a request and return its entry; its query is already under way.

        `part` is what the client wants of the answer, if clients that want different parts share a request. Raises
        TooMuchDemandError and UnanswerableSelectorError.
        """
        now = self._clock.monotonic()
        entry = self._demand.find(request)
        if entry is None:
            return self._admit(metric, request, part)
        interval = entry.arrivals.note(now, part)
        scope = entry.scope
        if entry.metric is not metric or scope.retired or scope.group.retired:
            self.rebind(entry, metric)
        elif scope.wanted.asleep or scope.group.setbacks:
            with self._changing() as change:
                self._rationed.pay(change, entry, now)
                self._begin(change, now)
        if interval < math.inf:
            query, period = entry.scope.query, period_of(metric, interval, self._settings)
            if period < _WORTH_HASTENING * query.period:
                with self._lock:
                    self._hasten(query, period)
        return entry

    def query_of(self, entry: DemandEntry) -> Query:
        """Return the query that answers a request now, even after its plan was abandoned."""
        if entry.scope.retired or entry.scope.group.retired:
            self.rebind(entry, entry.metric)
        return entry.scope.query

    def rebind(self, entry: DemandEntry, metric: Metric) -> None:
        """Find the entry's query again.

        The former query goes on answering until the new one does, unless the metric has changed. Raises
        UnanswerableSelectorError, after which the request is no longer in demand.
        """
        with self._changing() as change:
            now = self._clock.monotonic()
            if not self._demand.holds(entry):
                return
            former = entry.scope
            keep = former.query if same_metric(entry.metric, metric) and former.query.reading is not None else None
            if self._planner.distrusts(metric):
                # A value that may belong to another object is not served while the right one is on its way.
                keep = None
            try:
                # Bound before it is released: a group that loses its last request is forgotten.
                scope = self._planner.bind(metric, entry.request, now, keep)
            except UnanswerableSelectorError:
                self._remove(entry, now)
                raise
            self._planner.release(entry.request, former, now)
            entry.metric, entry.scope = metric, scope
            self._begin_for(change, scope, metric, now)

    def take_due(self) -> None:
        """Launch the due queries, as many as may run at once."""
        with self._changing() as change:
            self._begin(change, self._clock.monotonic())

    def next_due(self) -> float | None:
        """Return when to look again, in monotonic seconds; None if nothing is due or no more queries may run at once.

        Queries that are due but may not run yet do not count: a caller that came back for them at once would spin.
        """
        with self._lock:
            return self._lanes.next_due()

    def settle(self, query: Query, outcome: Reading | Failure) -> list[Reading]:
        """Process the end of a query, and return the readings that are no longer needed."""
        with self._changing() as change:
            now = self._clock.monotonic()
            self._lanes.of(query).end(query, now)
            self._outcomes.enter(change, query, outcome, now)
            self._begin(change, now)
            query.settled.set()
        return change.gone

    def tried(self, trial: Trial, failure: str | None, *, lasting: bool = False) -> None:
        """Record how the trial of a wider plan ended: why it must not be used yet, or None if it is used again."""
        with self._changing() as change:
            now = self._clock.monotonic()
            self._rationed.tried(change, trial, failure, now, lasting=lasting)
            self._begin(change, now)

    def sweep(self, pace: Pace) -> None:
        """Forget expired demand and unneeded queries; set each query's period from its requests."""
        with self._lock:
            # Queries that are bound after this moment have a later `bound_at`, see below.
            began, standing = self._clock.monotonic(), self._demand.entries()
        paces: dict[Query, Paces] = {}
        for entries in pace.slices(standing, _ENTRIES_A_SLICE):
            now = self._clock.monotonic()
            for entry in entries:
                if self._demand.expired(entry, now):
                    self._expire(entry)
                    continue
                for query in (entry.scope.query, entry.scope.wanted):
                    paces.setdefault(query, Paces()).add(entry.metric, entry.arrivals, now, self._settings)
        with self._lock:
            # Without queries nothing would notice the end of an outage.
            backends = self._backends()
            self._outcomes.failed_sources &= backends
            self._lanes.keep(backends)
            for query in list(self._planner.queries.values()):
                if query in paces:
                    query.period, query.paced = paces[query].seconds, paces[query].known
                elif query.bound_at < began:
                    self._planner.drop(query)
                    self._lanes.of(query).discard(query)
                    self._holdings.release(query)

    def replan(self, current: Callable[[Metric], Metric | None], pace: Pace) -> None:
        """Prove all plans again and forget refusals, as after a reload.

        `current` returns the present version of a metric; demand for metrics that no longer exist is forgotten.
        """
        with self._lock:
            self._planner.forget()
        refused: list[str] = []
        for entries in pace.slices(self._demand.entries(), _ENTRIES_A_SLICE):
            for entry in entries:
                metric = current(entry.metric)
                if metric is None:
                    self._expire(entry)
                    continue
                try:
                    self.rebind(entry, metric)
                except UnanswerableSelectorError as error:
                    refused.append(error.message)
        with self._lock:
            # The numbers of rules have changed.
            self._outcomes.last_success = self._planner.last_successes()
        if refused:
            _log.info("%d requests are no longer answered; the first: %s", len(refused), refused[0])

    def entries(self) -> list[DemandEntry]:
        """Return all requests in demand."""
        return self._demand.entries()

    def troubles(self, pace: Pace) -> list[Trouble]:
        """Return the problems of the rules in files whose queries fail, one for each query."""
        with self._lock:
            standing = list(self._planner.queries.values())
        return [
            query_trouble(query.metric.rule, failure)
            for queries in pace.slices(standing, _ENTRIES_A_SLICE)
            for query in queries
            if (failure := query.failure) is not None and not failure.of_source and not is_too_much(failure)
            # Owners of objects read `explain`: thousands of their rules must not fill the log of the adapter.
            if query.metric.rule.confinement is None
        ]

    @property
    def failed_sources(self) -> frozenset[Backend | None]:
        """Backends, None for the Prometheus of the flags, that cannot be asked at all, so that their queries fail."""
        with self._lock:
            return frozenset(self._outcomes.failed_sources)

    def backends(self) -> frozenset[Backend | None]:
        """Return the backends, None for the Prometheus of the flags, that queries are sent to."""
        with self._lock:
            return self._backends()

    @property
    def last_success(self) -> dict[str, float]:
        """Unix seconds of the evaluation of the last reading by rule id. Must not be changed."""
        return self._outcomes.last_success

    @property
    def values_held(self) -> int:
        """Number of values in memory."""
        return self._holdings.total

    def distrust(self, group: QueryGroup, difference: str) -> None:
        """Query a metric exactly until the next reload, because its wider plan gave other values."""
        with self._changing() as change:
            if group.retired or self._planner.distrusts(group.metric):
                return
            kind = group.kind
            self._planner.distrust(group.metric, self._clock.monotonic())
            text = (
                f"{group.metric.qualified} ({group.metric.rule.id}): its {kind} plan gives other values than its exact "
                f"query, so it is queried exactly until the next reload: {difference}"
            )
            change.remarks.append(Remark(logging.ERROR, text))

    def distrusted(self) -> Counter[str]:
        """Return, by rule id, how many metrics are queried exactly because their plan gave other values."""
        with self._lock:
            return self._planner.distrusted_rules()

    def groups(self) -> list[QueryGroup]:
        """Return the groups of requests, by metric and selector."""
        with self._lock:
            return self._planner.groups()

    @contextmanager
    def _changing(self) -> Iterator[Change]:
        """Hold the lock for a change, and carry out its effects after the lock is released."""
        change = Change()
        with self._lock:
            yield change
            change.remarks += self._planner.take_remarks()
        for query in change.begun:
            self._launch(query)
        for trial in change.trials:
            self._launch_trial(trial)
        for remark in change.remarks:
            _log.log(remark.level, "%s", remark.text)
        for rule, kind, text in change.of_rules:
            self._states.remark(rule, kind, "%s", text)

    def _backends(self) -> frozenset[Backend | None]:
        return frozenset(query.key.backend for query in self._planner.queries.values())

    def _admit(self, metric: Metric, request: DemandedRequest, part: Hashable) -> DemandEntry:
        with self._changing() as change:
            now = self._clock.monotonic()
            entry = self._demand.find(request)
            if entry is not None:
                return entry
            self._demand.check_room(request.namespace)
            self._holdings.check_room(request.namespace)
            entry = DemandEntry(request, metric, self._planner.bind(metric, request, now), now, part)
            self._demand.add(entry)
            self._begin_for(change, entry.scope, metric, now)
        return entry

    def _expire(self, entry: DemandEntry) -> None:
        with self._changing() as change:
            now = self._clock.monotonic()
            if self._demand.holds(entry):
                self._remove(entry, now)
            self._begin(change, now)

    def _remove(self, entry: DemandEntry, now: float) -> None:
        self._demand.remove(entry)
        self._planner.release(entry.request, entry.scope, now)

    def _begin(self, change: Change, now: float) -> None:
        """Note the queries to launch: new ones are due at once."""
        for query in self._planner.take_new():
            self._lanes.of(query).set(query, now)
        change.begun += self._lanes.begin(now)

    def _begin_for(self, change: Change, scope: QueryScope, metric: Metric, now: float) -> None:
        """Note the queries to launch after a request was bound, which may make a shared query due sooner."""
        query = scope.wanted
        longest = most_period(metric, self._settings) if query.paced else longest_period(metric, self._settings)
        if longest < query.period:
            self._hasten(query, longest)
        self._lanes.of(query).reassign(query)
        self._begin(change, now)

    def _hasten(self, query: Query, period: float) -> None:
        query.period = min(query.period, period)
        if not query.failures:
            self._lanes.of(query).hasten(query, query.started_at + query.period)
