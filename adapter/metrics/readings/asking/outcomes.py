"""Processes the end of a query: keeps its reading or failure, and schedules it again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.changes import Remark
from adapter.metrics.readings.asking.holdings import TOO_MUCH_SECONDS, is_too_much
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.retries import retry_after
from adapter.metrics.rulebook.model import PlanKind

if TYPE_CHECKING:
    from adapter.metrics.readings.asking.changes import Change
    from adapter.metrics.readings.asking.holdings import Keeping
    from adapter.metrics.readings.asking.lanes import Lanes
    from adapter.metrics.readings.asking.planning import Planner
    from adapter.metrics.readings.asking.queries import Query, Reading
    from adapter.metrics.readings.asking.rationing import Rations
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry


class QueryOutcomes:
    """Processes the ends of queries. Not thread-safe: the owner must hold a lock."""

    def __init__(
        self,
        *,
        settings: ReadingSettings,
        telemetry: ReadingsTelemetry,
        planner: Planner,
        lanes: Lanes,
        keeping: Keeping,
        rations: Rations,
    ) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._planner = planner
        self._lanes = lanes
        self._keeping = keeping
        self._rations = rations
        self.source_failed = False
        """Whether queries fail because Prometheus itself cannot be asked."""
        self.last_success: dict[str, float] = {}
        """Rule id, and Unix seconds of the evaluation that last brought a reading."""

    def enter(self, change: Change, query: Query, outcome: Reading | Failure, now: float) -> None:
        """Keep the result of a query, and schedule it again if it is still needed."""
        if not isinstance(outcome, Failure) and self._stands(query):
            outcome = self._keeping.take_in(change, query, outcome, now)
        if isinstance(outcome, Failure):
            self._fail(change, query, outcome, now)
        else:
            self._succeed(change, query, outcome, now)
        self._join(query)

    def _stands(self, query: Query) -> bool:
        return self._planner.queries.get(query.key) is query

    def _succeed(self, change: Change, query: Query, reading: Reading, now: float) -> None:
        if self.source_failed:
            self.source_failed = False
            change.remarks.append(Remark(logging.INFO, "Prometheus answers again"))
        if query.reading is not None:
            change.gone.append(query.reading)
        query.reading = reading
        query.failure, query.failures = None, 0
        self.last_success[query.metric.rule.id] = reading.evaluated.wall
        self._telemetry.refreshed("ok")
        due = query.started_at + query.period
        if not self._lanes.quiet:
            # If others wait, a slow query pauses for at least as long as it took.
            due = max(due, now + (now - query.started_at))
        self._reschedule(query, due)

    def _fail(self, change: Change, query: Query, failure: Failure, now: float) -> None:
        self._telemetry.refreshed("fault" if failure.error is ReadingError else "failed")
        if failure.narrows and query.kind is not PlanKind.EXACT:
            self._narrow(change, query, failure, now)
        elif failure.of_source and not self.source_failed:
            # Logged once for all queries when it begins; what is wrong with single queries is logged by rule.
            self.source_failed = True
            limit = f"answers are served until they are {self._settings.max_answer_age_seconds:g} s old"
            change.remarks.append(Remark(logging.WARNING, f"queries to Prometheus fail; {limit}: {failure.message}"))
        query.failures += 1
        # After the scopes have been turned to narrower queries: a request that sees the failure also sees the way out.
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
        self._keeping.holdings.release(query)
        where = "" if query.kind is PlanKind.WIDE else f" of {query.key.namespace!r}"
        for group, kind in self._planner.narrow(query, now, lasting=failure.lasting):
            metric, rule = group.metric, group.metric.rule
            self._telemetry.narrowed(rule.id, query.kind)
            text = (
                f"{metric.qualified} ({rule.id}): its {query.kind} query{where} fails; until it works again, the "
                "metric "
                f"is queried by the {kind} plan: {failure.message}"
            )
            change.of_rules.append((rule, f"{query.kind} plan", text))

    def _reschedule(self, query: Query, due: float) -> None:
        if self._stands(query) and not self._rations.puts_to_sleep(query):
            self._lanes.set(query, due)

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
