"""The upkeep of demand and its queries: what is no longer requested is forgotten, and a reload proves all plans again.

Each function works in slices, so that requests never wait long for the lock.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.query_outcomes import is_too_much
from adapter.metrics.readings.asking.refresh_periods import Paces
from adapter.metrics.readings.catalogue.rule_health import Trouble, query_trouble
from adapter.metrics.readings.errors import UnanswerableSelectorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.asking.asking_state import AskingState
    from adapter.metrics.readings.asking.queries import Query
    from adapter.metrics.readings.asking.query_scheduler import QueryScheduler
    from adapter.metrics.rulebook.model import Metric

_log = logging.getLogger(__name__)

_ENTRIES_A_SLICE = 300


def sweep(state: AskingState, pace: Pace) -> None:
    """Forget expired demand and unneeded queries; set each query's period from its requests."""
    with state.lock:
        # Queries that are bound after this moment have a later `bound_at`, see below.
        began, standing = state.clock.monotonic(), state.demand.entries()
    paces: dict[Query, Paces] = {}
    for entries in pace.slices(standing, _ENTRIES_A_SLICE):
        now = state.clock.monotonic()
        for entry in entries:
            if state.demand.is_expired(entry, now):
                state.expire(entry)
                continue
            for query in (entry.scope.query, entry.scope.wanted):
                paces.setdefault(query, Paces()).add(entry.metric, entry.arrivals, now, state.settings)
    with state.lock:
        # Without queries nothing would notice the end of an outage.
        backends = state.planner.backends()
        state.outcomes.failed_sources &= backends
        state.lanes.keep(backends)
        for query in list(state.planner.queries.values()):
            if query in paces:
                query.period, query.paced = paces[query].seconds, paces[query].known
            elif query.bound_at < began:
                state.planner.drop(query)
                state.lanes.of(query).discard(query)
                state.holdings.release(query)


def replan(scheduler: QueryScheduler, current: Callable[[Metric], Metric | None], pace: Pace) -> None:
    """Prove all plans again and forget refusals, as after a reload.

    `current` returns the current version of a metric; demand for metrics that no longer exist is forgotten.
    """
    state = scheduler.state
    with state.lock:
        state.planner.forget()
    refused: list[str] = []
    for entries in pace.slices(state.demand.entries(), _ENTRIES_A_SLICE):
        for entry in entries:
            metric = current(entry.metric)
            if metric is None:
                state.expire(entry)
                continue
            try:
                scheduler.rebind(entry, metric)
            except UnanswerableSelectorError as error:
                refused.append(error.message)
    with state.lock:
        # The numbers of rules have changed.
        state.outcomes.last_success = state.planner.last_successes()
    if refused:
        _log.info("requests that are no longer answered: %d; the first: %s", len(refused), refused[0])


def rule_troubles(state: AskingState, pace: Pace) -> list[Trouble]:
    """Return the problems of the rules in files whose queries fail, one for each query."""
    with state.lock:
        standing = list(state.planner.queries.values())
    return [
        query_trouble(query.metric.rule, failure)
        for queries in pace.slices(standing, _ENTRIES_A_SLICE)
        for query in queries
        if (failure := query.failure) is not None and not failure.of_source and not is_too_much(failure)
        # Owners of objects read `explain`: thousands of their rules must not fill the log of the adapter.
        if query.metric.rule.confinement is None
    ]
