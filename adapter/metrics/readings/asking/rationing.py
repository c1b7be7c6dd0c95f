"""Rations queries while a plan is suspended: each request pays for one narrower query, or for a part of a trial."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.changes import Remark, Trial
from adapter.metrics.rulebook.rendering import RenderError

if TYPE_CHECKING:
    from adapter.metrics.readings.asking.changes import Change
    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.lanes import Lanes
    from adapter.metrics.readings.asking.planning import Planner
    from adapter.metrics.readings.asking.queries import Query
    from adapter.metrics.readings.asking.setbacks import Place

_MOST_TRIALS = 2
"""Limit on concurrent trials, each of which occupies a thread."""


class Rations:
    """Queries that are only sent after a request, and trials. Not thread-safe: the owner must lock."""

    def __init__(self, planner: Planner, lanes: Lanes, max_answer_age_seconds: float) -> None:
        self._planner = planner
        self._lanes = lanes
        self._longest_seconds = max_answer_age_seconds / 2
        self._trials = 0

    def pay(self, change: Change, entry: DemandEntry, now: float) -> None:
        """Let a request pay for the trial of a plan that is due, or else wake the query that answers it."""
        group, query = entry.scope.group, entry.scope.wanted
        for place in self._planner.trial_places(group, entry.request.namespace):
            if self._trials < _MOST_TRIALS and group.setbacks.pay(place, now):
                if group.setbacks.begin(place):
                    self._begin_trial(change, entry, place, now)
                return
        if query.asleep:
            query.asleep = False
            fails = query.failure is not None or query.reading is None
            # Half of the asker's interval later: the answer is no older than that when the asker comes back.
            self._lanes.set(query, now if fails else now + query.period)

    def puts_to_sleep(self, query: Query) -> bool:
        """Return whether a query that has ended is not due before the next request.

        It is refreshed nevertheless if requests are so rare that its answer would be too old by then.
        """
        query.asleep = query.rationed and query.period <= self._longest_seconds
        return query.asleep

    def tried(self, change: Change, trial: Trial, failure: str | None, now: float, *, lasting: bool) -> None:
        """Enter how a trial ended: why its plan is not to be used yet, or None where it is used again."""
        self._trials -= 1
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
        self._trials += 1
        change.trials.append(Trial(entry, group, place, wider))
