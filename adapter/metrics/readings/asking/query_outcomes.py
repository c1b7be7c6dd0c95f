"""Processes the end of a query, and of a trial: keeps the reading or the failure, and schedules the query again.

While a plan is suspended, the narrower queries are rationed: each request pays for one of them, and for a part of the
trial that shows whether the wider plan works again. A trial takes the place of no refresh: a client that lists all
namespaces at long intervals would leave the same namespaces without one each time.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.backend import Backend, backend_text
from adapter.metrics.readings.asking.effects import Change, Remark, Trial
from adapter.metrics.readings.asking.held_values import HeldValues, size_of_reading
from adapter.metrics.readings.errors import ReadingError, TooMuchDemandError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.retries import retry_after
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.query_rendering import RenderError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.queries import Query, Reading
    from adapter.metrics.readings.asking.query_choice import Planner
    from adapter.metrics.readings.asking.query_concurrency import BackendLanes
    from adapter.metrics.readings.asking.refused_plans import Place
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
TOO_MUCH_SECONDS = 30.0
"""Shortest time until a query whose answer was too large is sent again."""
_MOST_TRIALS = 2
"""Limit on concurrent trials with one Prometheus, each of which occupies a thread."""


class QueryOutcomes:
    """Processes the ends of queries. Not thread-safe: the owner must hold a lock."""

    def __init__(
        self,
        *,
        settings: ReadingSettings,
        telemetry: ReadingsTelemetry,
        planner: Planner,
        lanes: BackendLanes,
        holdings: HeldValues,
        rationed: RationedQueries,
    ) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._planner = planner
        self._lanes = lanes
        self._holdings = holdings
        self._rationed = rationed
        self.failed_sources: set[Backend | None] = set()
        """Backends, None for the Prometheus of the flags, that cannot be asked at all, so that their queries fail."""
        self.last_success: dict[str, float] = {}
        """The Unix seconds of the evaluation behind the last good reading, by rule id."""

    def enter(self, change: Change, query: Query, outcome: Reading | Failure, now: float) -> None:
        """Keep the result of a query, and schedule it again if it is still needed."""
        if not isinstance(outcome, Failure) and self._stands(query):
            outcome = self._take_in(change, query, outcome, now)
        if isinstance(outcome, Failure):
            self._fail(change, query, outcome, now)
        else:
            self._succeed(change, query, outcome, now)
        self._join(query)

    def _stands(self, query: Query) -> bool:
        return self._planner.queries.get(query.key) is query

    def _take_in(self, change: Change, query: Query, reading: Reading, now: float) -> Reading | Failure:
        """Record the size of a query's new reading and return the reading; a Failure if it is too large."""
        owner, shared = _owner_of(query)
        size = size_of_reading(reading)
        verdict = self._holdings.judge(query, size, owner, shared=shared)
        if verdict.refusal is not None:
            change.gone.append(reading)
            return Failure(TooMuchDemandError, verdict.refusal)
        self._drop_readings(change, verdict.shed, now)
        self._holdings.hold(query, size, owner, shared=shared)
        return reading

    def _drop_readings(self, change: Change, queries: Iterable[Query], now: float) -> None:
        for query in queries:
            self._holdings.release(query)
            # Set before the reading is removed, so that a request that finds none also finds the reason.
            query.failure = Failure(TooMuchDemandError, self._holdings.beyond_all())
            query.failures += 1
            if query.reading is not None:
                change.gone.append(query.reading)
                query.reading = None
            if not self._lanes.of(query).runs(query):
                self._lanes.of(query).set(query, now + TOO_MUCH_SECONDS)

    def _succeed(self, change: Change, query: Query, reading: Reading, now: float) -> None:
        if query.key.backend in self.failed_sources:
            self.failed_sources.remove(query.key.backend)
            change.remarks.append(Remark(logging.INFO, f"{backend_text(query.key.backend)} answers again"))
        if query.reading is not None:
            change.gone.append(query.reading)
        query.reading = reading
        query.failure, query.failures = None, 0
        self.last_success[query.metric.rule.label_value] = reading.evaluated.wall
        self._telemetry.count_refresh("ok")
        due = query.started_at + query.period
        if not self._lanes.of(query).quiet:
            # If others wait, a slow query pauses for at least as long as it took.
            due = max(due, now + (now - query.started_at))
        self._reschedule(query, due)

    def _fail(self, change: Change, query: Query, failure: Failure, now: float) -> None:
        self._telemetry.count_refresh("fault" if failure.error is ReadingError else "failed")
        if failure.narrows and query.kind is not PlanKind.EXACT:
            self._narrow(change, query, failure, now)
        elif failure.of_source and query.key.backend not in self.failed_sources:
            # Logged once for all queries when it begins; what is wrong with single queries is logged by rule.
            self.failed_sources.add(query.key.backend)
            limit = f"answers are served until they are {self._settings.max_answer_age_seconds:g} s old"
            text = f"queries to {backend_text(query.key.backend)} fail; {limit}: {failure.message}"
            change.remarks.append(Remark(logging.WARNING, text))
        query.failures += 1
        # This follows the change of the scopes to narrower queries: a request that sees the failure also sees its
        # replacement.
        query.failure = failure
        self._reschedule(query, now + self._delay(query, failure))

    def _delay(self, query: Query, failure: Failure) -> float:
        """Return the seconds until a query that failed is sent again."""
        if failure.of_source:
            return retry_after(query.failures, query.period)
        if is_too_much(failure):
            return max(query.period, TOO_MUCH_SECONDS)
        return min(query.period, self._settings.refresh_interval_seconds)

    def _narrow(self, change: Change, query: Query, failure: Failure, now: float) -> None:
        self._holdings.release(query)
        where = "" if query.kind is PlanKind.WIDE else f" of {query.key.namespace!r}"
        for group, kind in self._planner.narrow(query, now, lasting=failure.lasting):
            metric, rule = group.metric, group.metric.rule
            self._telemetry.count_refused_plan(rule.label_value, query.kind)
            text = (
                f"{metric.qualified} ({rule.id}): its {query.kind} query{where} fails; until it works again, the "
                f"metric is queried by the {kind} plan: {failure.message}"
            )
            change.of_rules.append((rule, f"{query.kind} plan", text))

    def _reschedule(self, query: Query, due: float) -> None:
        if self._stands(query) and not self._rationed.puts_to_sleep(query):
            self._lanes.of(query).set(query, due)

    def _join(self, query: Query) -> None:
        """Let the scopes that waited for the query's first reading use it."""
        waiting, query.joining = query.joining, []
        dropped = not self._stands(query)
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


class RationedQueries:
    """Queries that are only sent after a request, and trials. Not thread-safe: the owner must lock."""

    def __init__(self, planner: Planner, lanes: BackendLanes, max_answer_age_seconds: float) -> None:
        self._planner = planner
        self._lanes = lanes
        self._longest_seconds = max_answer_age_seconds / 2
        self._trials: Counter[Backend | None] = Counter()

    def pay(self, change: Change, entry: DemandEntry, now: float) -> None:
        """Let a request pay for the trial of a plan that is due, and wake the query that answers it."""
        group, query = entry.scope.group, entry.scope.wanted
        for place in self._planner.suspended_plans(group, entry.request.namespace):
            if self._trials[query.key.backend] < _MOST_TRIALS and group.setbacks.pay(place, now):
                if group.setbacks.begin(place):
                    self._begin_trial(change, entry, place, now)
                break
        if query.asleep:
            query.asleep = False
            fails = query.failure is not None or query.reading is None
            # Half of the requester's interval later: the answer is no older than that when the requester comes back.
            self._lanes.of(query).set(query, now if fails else now + query.period)

    def puts_to_sleep(self, query: Query) -> bool:
        """Return whether a query that has ended is not due before the next request.

        It is refreshed nevertheless if requests are so rare that its answer would be too old by then.
        """
        query.asleep = query.rationed and query.period <= self._longest_seconds
        return query.asleep

    def record_trial(self, change: Change, trial: Trial, failure: str | None, now: float, *, lasting: bool) -> None:
        """Record how a trial ended; `failure` says why its plan must not be used yet, and is None if it may be."""
        self._trials[trial.wider.key.backend] -= 1
        group, place = trial.group, trial.place
        if group.retired or place not in group.setbacks:
            return
        if failure is not None:
            group.setbacks.fail(place, now, lasting=lasting)
            return
        self._planner.restore(group, place, trial.entry.request.selector, now)
        text = f"{group.metric.qualified} ({group.metric.rule.id}): its {place[0]} query works again and is used again"
        change.remarks.append(Remark(logging.INFO, text))

    def _begin_trial(self, change: Change, entry: DemandEntry, place: Place, now: float) -> None:
        group = entry.scope.group
        try:
            wider = self._planner.trial(group, entry.request, place[0])
        except RenderError:
            group.setbacks.fail(place, now, lasting=True)
            return
        self._trials[wider.key.backend] += 1
        change.trials.append(Trial(entry, group, place, wider))


def _owner_of(query: Query) -> tuple[str | None, bool]:
    """Return the namespace whose limit a query's values count toward, and whether it serves several.

    If it serves several namespaces, its values count toward no namespace's limit.
    """
    if query.kind is not PlanKind.WIDE and query.key.namespace is not None:
        return query.key.namespace, False
    requesters = query.requesters()
    first = next(requesters, None)
    return first, any(other != first for other in requesters)


def is_too_much(failure: Failure) -> bool:
    """Return whether a query failed because its answer is more than may be held, so that its rule is not at fault."""
    return failure.error is TooMuchDemandError
