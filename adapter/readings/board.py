"""What is asked for, by which queries, and when they are due: the state that requests, refreshes and reloads share.

A request that has been made before takes no lock: it finds its entry, notes its arrival and reads. The lock is for
what changes the board, and nothing under it waits for anything.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from adapter.readings.catalogue import same_metric
from adapter.readings.demand import Demand, Entry
from adapter.readings.errors import ReadingError, UnanswerableSelectorError
from adapter.readings.lanes import Lanes
from adapter.readings.planning import Planner
from adapter.readings.queries import Failure
from adapter.readings.rule_states import query_trouble
from adapter.readings.schedule import longest_period, period_of, retry_after
from adapter.rulebook.model import PlanKind

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from adapter.readings.catalogue import Catalogue
    from adapter.readings.demand import Request
    from adapter.readings.queries import Group, Query, Reading, Scope
    from adapter.readings.rule_states import RuleStates, Trouble
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.readings.telemetry import ReadingsTelemetry
    from adapter.rulebook.model import Metric
    from adapter.sources.pace import Pace

_log = logging.getLogger(__name__)

_WORTH_HASTENING = 0.9
_ENTRIES_A_SLICE = 300


class Board:
    """All demand and all queries."""

    def __init__(
        self,
        *,
        settings: ReadingSettings,
        clock: Clock,
        telemetry: ReadingsTelemetry,
        states: RuleStates,
        launch: Callable[[Query], object],
    ) -> None:
        """`launch` hands a query to a thread; it comes back through `settle`."""
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._launch = launch
        self._lock = threading.Lock()
        self._demand = Demand(settings.demand_ttl_seconds, settings.max_demand_per_namespace, settings.max_demand)
        self._planner = Planner(settings)
        self._lanes = Lanes(settings)
        self._states = states
        self._source_failed = False
        self.last_success: dict[str, float] = {}
        """Rule id, and unix seconds of the evaluation that last brought a reading."""

    def entry(self, metric: Metric, request: Request) -> Entry:
        """Count a request in and return its entry; what it needs is asked for already.

        Raises TooMuchDemandError and UnanswerableSelectorError.
        """
        now = self._clock.monotonic()
        entry = self._demand.find(request)
        if entry is None:
            return self._admit(metric, request)
        interval = entry.arrivals.note(now)
        if entry.metric is not metric or entry.scope.retired or entry.scope.group.retired:
            self.rebind(entry, metric)
        query = entry.scope.query
        period = period_of(metric, interval, self._settings)
        if period < _WORTH_HASTENING * query.period:
            with self._lock:
                self._hasten(query, period)
        return entry

    def query_of(self, entry: Entry) -> Query:
        """Return the query that answers a request now, also after its plan was given up."""
        if entry.scope.retired or entry.scope.group.retired:
            self.rebind(entry, entry.metric)
        return entry.scope.query

    def rebind(self, entry: Entry, metric: Metric) -> None:
        """Find the entry's query anew.

        What answered it so far goes on until the new one does, unless the metric has changed. Raises
        UnanswerableSelectorError, and then the request stands no longer.
        """
        with self._lock:
            now = self._clock.monotonic()
            if not self._demand.holds(entry):
                return
            former = entry.scope
            keep = former.query if same_metric(entry.metric, metric) and former.query.reading is not None else None
            if self._planner.distrusts(metric):
                # What is known to be another's value is not served while the right one is on its way.
                keep = None
            try:
                # Bound before it is released: a group that loses its last request is forgotten.
                scope = self._planner.bind(metric, entry.request, now, keep)
            except UnanswerableSelectorError:
                self._remove(entry, now)
                raise
            self._planner.release(entry.request, former, now)
            entry.metric, entry.scope = metric, scope
            begun = self._begin_for(scope, metric, now)
        self._launch_all(begun)

    def take_due(self) -> None:
        """Launch the queries that are due, as many as may run at once."""
        with self._lock:
            begun = self._begin(self._clock.monotonic())
        self._launch_all(begun)

    def next_due(self) -> float | None:
        """Return when to look again, in monotonic seconds; None where nothing is due, or no more may run at once.

        What is due while no more may run is not told: a caller that came back for it at once would spin.
        """
        with self._lock:
            return self._lanes.next_due()

    def settle(self, query: Query, outcome: Reading | Failure) -> Reading | None:
        """Enter how a query ended, and return the reading that it replaces."""
        with self._lock:
            now = self._clock.monotonic()
            self._lanes.end(query, now)
            replaced = None
            if isinstance(outcome, Failure):
                self._fail(query, outcome, now)
            else:
                replaced = self._succeed(query, outcome, now)
            self._join(query)
            begun = self._begin(now)
            query.settled.set()
        self._launch_all(begun)
        return replaced

    def sweep(self, pace: Pace) -> None:
        """Forget demand that has expired and queries that nobody needs; tell each query's period from its askers."""
        with self._lock:
            # Whatever is bound after this moment is bound at a later time: see `bound_at` below.
            began, standing = self._clock.monotonic(), self._demand.entries()
        periods: dict[Query, float] = {}
        for entries in pace.slices(standing, _ENTRIES_A_SLICE):
            now = self._clock.monotonic()
            for entry in entries:
                if self._demand.expired(entry, now):
                    self._expire(entry)
                    continue
                period = period_of(entry.metric, entry.arrivals.interval(now), self._settings)
                for query in (entry.scope.query, entry.scope.wanted):
                    periods[query] = min(period, periods.get(query, period))
        with self._lock:
            # Nobody asks any more, so nothing would tell that it is over.
            self._source_failed &= bool(self._planner.queries)
            for query in list(self._planner.queries.values()):
                if query in periods:
                    query.period = periods[query]
                elif query.bound_at < began:
                    self._planner.drop(query)
                    self._lanes.discard(query)

    def replan(self, catalogue: Catalogue, pace: Pace) -> None:
        """Prove all plans again and forget what was refused, as after a reload.

        Demand for metrics that are gone is forgotten.
        """
        with self._lock:
            self._planner.forget()
        refused: list[str] = []
        for entries in pace.slices(self._demand.entries(), _ENTRIES_A_SLICE):
            for entry in entries:
                metric = catalogue.current(entry.metric)
                if metric is None:
                    self._expire(entry)
                    continue
                try:
                    self.rebind(entry, metric)
                except UnanswerableSelectorError as error:
                    refused.append(error.message)
        with self._lock:
            # Rules have other numbers now.
            self.last_success = self._planner.last_successes()
        if refused:
            _log.info("%d requests are no longer answered, as the first: %s", len(refused), refused[0])

    def entries(self) -> list[Entry]:
        """Return all requests that stand."""
        return self._demand.entries()

    def troubles(self, pace: Pace) -> list[Trouble]:
        """Return what is wrong with rules whose queries fail, one for each query."""
        with self._lock:
            standing = list(self._planner.queries.values())
        return [
            query_trouble(query.metric.rule, failure)
            for queries in pace.slices(standing, _ENTRIES_A_SLICE)
            for query in queries
            if (failure := query.failure) is not None and not failure.of_source
        ]

    @property
    def source_failed(self) -> bool:
        """Whether Prometheus could not be asked when it was asked last."""
        return self._source_failed

    def distrust(self, group: Group, difference: str) -> None:
        """Ask a metric exactly until the next reload: its wider plan was seen to change somebody's answer."""
        with self._lock:
            if group.retired or self._planner.distrusts(group.metric):
                return
            kind = group.kind
            self._planner.distrust(group.metric, self._clock.monotonic())
        _log.error(
            "%s (%s): its %s plan gives other values than its exact query, so it is asked exactly until the next "
            "reload: %s",
            group.metric.qualified,
            group.metric.rule.id,
            kind,
            difference,
        )

    def distrusted(self) -> Counter[str]:
        """Return rule ids and how many of a rule's metrics are asked exactly because their plan gave other values."""
        with self._lock:
            return self._planner.distrusted_rules()

    def groups(self) -> list[Group]:
        """Return what is asked for, by metric and selector."""
        with self._lock:
            return self._planner.groups()

    def _admit(self, metric: Metric, request: Request) -> Entry:
        with self._lock:
            now = self._clock.monotonic()
            entry = self._demand.find(request)
            if entry is not None:
                return entry
            self._demand.check_room(request.namespace)
            entry = Entry(request, metric, self._planner.bind(metric, request, now), now)
            self._demand.add(entry)
            begun = self._begin_for(entry.scope, metric, now)
        self._launch_all(begun)
        return entry

    def _expire(self, entry: Entry) -> None:
        with self._lock:
            now = self._clock.monotonic()
            if self._demand.holds(entry):
                self._remove(entry, now)
            begun = self._begin(now)
        self._launch_all(begun)

    def _remove(self, entry: Entry, now: float) -> None:
        self._demand.remove(entry)
        self._planner.release(entry.request, entry.scope, now)

    def _begin(self, now: float) -> list[Query]:
        """Return the queries to launch: new ones are due at once."""
        for query in self._planner.take_new():
            self._lanes.set(query, now)
        return self._lanes.begin(now)

    def _begin_for(self, scope: Scope, metric: Metric, now: float) -> list[Query]:
        """Return the queries to launch after a request was bound: one that others share may be due sooner by it."""
        longest = longest_period(metric, self._settings)
        if longest < scope.wanted.period:
            self._hasten(scope.wanted, longest)
        return self._begin(now)

    def _launch_all(self, queries: list[Query]) -> None:
        for query in queries:
            self._launch(query)

    def _hasten(self, query: Query, period: float) -> None:
        query.period = min(query.period, period)
        if not query.failures:
            self._lanes.hasten(query, query.started_at + query.period)

    def _succeed(self, query: Query, reading: Reading, now: float) -> Reading | None:
        if self._source_failed:
            self._source_failed = False
            _log.info("Prometheus answers again")
        replaced, query.reading = query.reading, reading
        query.failure, query.failures = None, 0
        self.last_success[query.metric.rule.id] = reading.evaluated.wall
        self._telemetry.refreshed("ok")
        # A query that takes long is not asked all the time: at least as long as it took lies between.
        self._reschedule(query, max(query.started_at + query.period, now + (now - query.started_at)))
        return replaced

    def _fail(self, query: Query, failure: Failure, now: float) -> None:
        self._telemetry.refreshed("fault" if failure.error is ReadingError else "failed")
        if failure.narrows and query.kind is not PlanKind.EXACT:
            self._narrow(query, failure, now)
        else:
            self._log_failure(failure)
        query.failures += 1
        # After the scopes have been turned to narrower queries: who sees the failure sees where to go, too.
        query.failure = failure
        delay = retry_after(query.failures, query.period) if failure.of_source else query.period
        self._reschedule(query, now + delay)

    def _narrow(self, query: Query, failure: Failure, now: float) -> None:
        for group in self._planner.narrow(query, now):
            rule = group.metric.rule
            self._telemetry.narrowed(rule.id, query.kind)
            self._states.remark(
                rule,
                f"{query.kind} plan",
                "%s (%s): its %s query does not work, until the next reload it is asked by the %s plan: %s",
                group.metric.qualified,
                rule.id,
                query.kind,
                group.kind,
                failure.message,
            )

    def _reschedule(self, query: Query, due: float) -> None:
        if self._planner.queries.get(query.key) is query:
            self._lanes.set(query, due)

    def _join(self, query: Query) -> None:
        """Let the scopes that waited for the query's first reading use it."""
        waiting, query.joining = query.joining, []
        dropped = self._planner.queries.get(query.key) is not query
        for scope in waiting:
            if scope.wanted is not query:
                continue
            if query.reading is not None:
                scope.query = query
                scope.retired |= scope.private
            elif scope.private and dropped:
                scope.retired = True
            else:
                query.joining.append(scope)

    def _log_failure(self, failure: Failure) -> None:
        """Log a failure of Prometheus when it begins, once for all queries; those of queries are told by rule."""
        if failure.of_source and not self._source_failed:
            self._source_failed = True
            _log.warning(
                "Prometheus fails; answers are served until they are %g s old: %s",
                self._settings.max_answer_age_seconds,
                failure.message,
            )
