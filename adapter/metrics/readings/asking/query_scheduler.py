"""Registers requests and decides when the queries that answer them run.

A request that has been made before takes no lock: it finds its entry, notes its arrival and reads. The lock of the
state is for changes.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.demand import DemandedRequest, DemandEntry
from adapter.metrics.readings.asking.effects import Remark, Trial
from adapter.metrics.readings.asking.refresh_periods import period_of
from adapter.metrics.readings.catalogue.catalogue import same_metric
from adapter.metrics.readings.errors import UnanswerableSelectorError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from adapter.metrics.readings.asking.asking_state import AskingState
    from adapter.metrics.readings.asking.queries import Query, QueryGroup, Reading
    from adapter.metrics.readings.failure import Failure
    from adapter.metrics.rulebook.model import Metric

_WORTH_HASTENING = 0.9


class QueryScheduler:
    """Registers requests, starts the queries that answer them, and records how these ended."""

    def __init__(self, state: AskingState) -> None:
        self.state = state

    def entry(self, metric: Metric, request: DemandedRequest, part: Hashable = None) -> DemandEntry:
        """Register a request and return its entry; its query is already under way.

        `part` is what the client wants of the answer, if clients that want different parts share a request. Raises
        TooMuchDemandError and UnanswerableSelectorError.
        """
        state = self.state
        now = state.clock.monotonic()
        entry = state.demand.find(request)
        if entry is None:
            return self._admit(metric, request, part)
        interval = entry.arrivals.note(now, part)
        scope = entry.scope
        if entry.metric is not metric or scope.retired or scope.group.retired:
            self.rebind(entry, metric)
        elif scope.wanted.asleep or scope.group.setbacks:
            with state.changing() as change:
                state.rationed.pay(change, entry, now)
                state.begin(change, now)
        if interval < math.inf:
            query, period = entry.scope.query, period_of(metric, interval, state.settings)
            if period < _WORTH_HASTENING * query.period:
                with state.lock:
                    state.hasten(query, period)
        return entry

    def query_of(self, entry: DemandEntry) -> Query:
        """Return the query that answers a request now; if its plan was abandoned, find another one first."""
        if entry.scope.retired or entry.scope.group.retired:
            self.rebind(entry, entry.metric)
        return entry.scope.query

    def rebind(self, entry: DemandEntry, metric: Metric) -> None:
        """Find the entry's query again.

        The former query keeps answering until the new one does, unless the metric has changed. Raises
        UnanswerableSelectorError, after which the request is no longer in demand.
        """
        state = self.state
        with state.changing() as change:
            now = state.clock.monotonic()
            if not state.demand.holds(entry):
                return
            former = entry.scope
            keep = former.query if same_metric(entry.metric, metric) and former.query.reading is not None else None
            if state.planner.plans.distrusts(metric):
                # A value that may belong to another object is not served while the right one is on its way.
                keep = None
            try:
                # Bound before it is released: a group that loses its last request is forgotten.
                scope = state.planner.bind(metric, entry.request, now, keep)
            except UnanswerableSelectorError:
                state.remove(entry, now)
                raise
            state.planner.release(entry.request, former, now)
            entry.metric, entry.scope = metric, scope
            state.begin_for(change, scope, metric, now)

    def take_due(self) -> None:
        """Launch the due queries, as many as may run at once."""
        with self.state.changing() as change:
            self.state.begin(change, self.state.clock.monotonic())

    def next_due(self) -> float | None:
        """Return when to look again, in monotonic seconds; None if nothing is due or no more queries may run at once.

        Queries that are due but may not run yet do not count: a caller that came back for them at once would spin.
        """
        with self.state.lock:
            return self.state.lanes.next_due()

    def settle(self, query: Query, outcome: Reading | Failure) -> list[Reading]:
        """Process the end of a query, and return the readings that are no longer needed."""
        state = self.state
        with state.changing() as change:
            now = state.clock.monotonic()
            state.lanes.of(query).end(query, now)
            state.outcomes.enter(change, query, outcome, now)
            state.begin(change, now)
            query.settled.set()
        return change.gone

    def record_trial(self, trial: Trial, failure: str | None, *, lasting: bool = False) -> None:
        """Record how the trial of a wider plan ended; `failure` says why the plan must not be used yet, or is None."""
        state = self.state
        with state.changing() as change:
            now = state.clock.monotonic()
            state.rationed.record_trial(change, trial, failure, now, lasting=lasting)
            state.begin(change, now)

    def distrust(self, group: QueryGroup, difference: str) -> None:
        """Query a metric exactly until the next reload, because its wider plan gave other values."""
        state = self.state
        with state.changing() as change:
            if group.retired or state.planner.plans.distrusts(group.metric):
                return
            kind = group.kind
            state.planner.distrust(group.metric, state.clock.monotonic())
            text = (
                f"{group.metric.qualified} ({group.metric.rule.id}): its {kind} plan gives other values than its exact "
                f"query, so it is queried exactly until the next reload: {difference}"
            )
            change.remarks.append(Remark(logging.ERROR, text))

    def _admit(self, metric: Metric, request: DemandedRequest, part: Hashable) -> DemandEntry:
        state = self.state
        with state.changing() as change:
            now = state.clock.monotonic()
            entry = state.demand.find(request)
            if entry is not None:
                return entry
            state.demand.check_room(request.namespace)
            state.holdings.check_room(request.namespace)
            entry = DemandEntry(request, metric, state.planner.bind(metric, request, now), now, part)
            state.demand.add(entry)
            state.begin_for(change, entry.scope, metric, now)
        return entry
