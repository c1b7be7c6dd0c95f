"""The load of the last day from Prometheus, after a start or an outage: which slots to ask for, and with what query.

One piece of one resource is asked in a refresh, the newest first, so that a day costs no more than refreshes may. What
is answered counts for the exporters that measure the nodes now.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.day import DAY_RESOURCES, SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import SAMPLE_WINDOWS_SECONDS, LoadResource
from adapter.nodes.queries.claiming import claimants_of
from adapter.nodes.queries.expressions import RATIO, RULES, RateFunction, by_of, selector, union, value_parts
from adapter.nodes.queries.joining import joined, mapped_rows
from adapter.nodes.queries.plan import MOST_POINTS, QueryPiece, steps_at_once
from adapter.nodes.queries.rows import layout_of, rows_of
from adapter.nodes.windows.day import known_slots
from adapter.nodes.windows.grid import MARGIN_SECONDS, aligned
from adapter.nodes.windows.verdicts import out_of_range

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.time.pace import Pace
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.model.scheduling_settings import SchedulingSettings
    from adapter.nodes.names.mapping import SeriesMapper
    from adapter.nodes.queries.claiming import ExporterRegister
    from adapter.nodes.queries.matrix import SeriesMatrix
    from adapter.nodes.queries.survey import Survey

_SCRAPES_A_SLOT: Final = 20
"""How many samples of a series a mean of five minutes reads, at a scrape interval of 15 s."""


@dataclass(frozen=True, slots=True)
class DayQuery:
    """One query for the past of a resource."""

    resource: LoadResource
    piece: QueryPiece
    expression: str
    is_recorded: bool = False
    """Whether it reads our recording rule."""


@dataclass(frozen=True, slots=True, eq=False)
class DayAnswer:
    """The answer to one query for the past."""

    slots: tuple[SampleGrid, ...] = ()
    queries: int = 0
    failure: str = ""
    """Why nothing came, one sentence; empty if that did not happen."""


@dataclass(slots=True)
class _PastProgress:
    """The part of a resource's past that has been asked for."""

    answered: set[int] = field(default_factory=set)
    """Slots that Prometheus has answered from counters, though perhaps with no sample."""
    answered_by_rule: set[int] = field(default_factory=set)
    """Likewise from our recording rule, which may be younger than a day."""
    most_steps: int = SLOTS
    """Limit that follows from queries that failed."""
    failures: int = 0
    """Queries in a row that failed."""


@dataclass(slots=True)
class DayProgress:
    """The part of the past that has been asked for, by resource. For one thread at a time."""

    resources: dict[LoadResource, _PastProgress] = field(
        default_factory=lambda: {resource: _PastProgress() for resource in DAY_RESOURCES}
    )

    def next_query(self, day: LoadDay, now: float, settings: SchedulingSettings, survey: Survey) -> DayQuery | None:
        """Return what to ask next; None if nothing is lacking. Slots that the samples will give are not asked for.

        The newest slots come first, but a resource whose queries fail waits for the other one.
        """
        last = aligned(now - SAMPLE_WINDOWS_SECONDS[0] - MARGIN_SECONDS, SLOT_SECONDS)
        steps = range(aligned(now, SLOT_SECONDS) - (SLOTS - 1) * SLOT_SECONDS, last + 1, SLOT_SECONDS)
        found = (
            self._lacking(resource, steps, known_slots(day, resource), settings, survey)
            for resource in DAY_RESOURCES
            if resource not in settings.queries and survey.series.get(resource)
        )
        queries = [query for query in found if query is not None]
        return min(
            queries, key=lambda query: (self.resources[query.resource].failures, -query.piece.last), default=None
        )

    def _lacking(
        self, resource: LoadResource, steps: range, known: set[int], settings: SchedulingSettings, survey: Survey
    ) -> DayQuery | None:
        """Return the query for the newest slots that a resource lacks: from the rule first, then from counters."""
        progress = self.resources[resource]
        progress.answered.intersection_update(steps)
        progress.answered_by_rule.intersection_update(steps)
        done = progress.answered | known
        reads = {False: survey.series[resource]}
        if resource in survey.recorded:
            reads = {True: survey.exporters.get(resource, 0), **reads}
        for recorded, series in reads.items():
            most = min(steps_at_once(series * _SCRAPES_A_SLOT, survey.answered(resource)), progress.most_steps)
            piece = newest_lacking(steps, done | progress.answered_by_rule if recorded else done, most)
            if piece is not None:
                expression = past_expression(resource, settings.matchers, recorded=recorded)
                return DayQuery(resource, piece, expression, is_recorded=recorded)
        return None

    def succeeded(self, query: DayQuery) -> None:
        """Take note of an answer: the next query may ask for more."""
        progress = self.resources[query.resource]
        (progress.answered_by_rule if query.is_recorded else progress.answered).update(query.piece.times)
        progress.most_steps = min(MOST_POINTS, 2 * progress.most_steps)
        progress.failures = 0

    def failed(self, query: DayQuery) -> None:
        """Ask for less next time, since the query may have been too large."""
        progress = self.resources[query.resource]
        progress.most_steps = max(1, query.piece.columns // 2)
        progress.failures += 1

    def forget(self) -> None:
        """Ask for the whole past again, since its answers had other names of nodes."""
        for progress in self.resources.values():
            progress.answered.clear()
            progress.answered_by_rule.clear()


def newest_lacking(steps: range, known: Collection[int], most_steps: int) -> QueryPiece | None:
    """Return the newest steps in a row that are not known, at most that many; None if all are known."""
    last = next((time for time in reversed(steps) if time not in known), None)
    if last is None:
        return None
    first = last
    while first > steps.start and first - steps.step not in known and (last - first) // steps.step + 1 < most_steps:
        first -= steps.step
    return QueryPiece(first, last, steps.step)


def past_expression(resource: LoadResource, matchers: Mapping[str, str], *, recorded: bool) -> str:
    """Return the expression for the mean of the five minutes before each step.

    Memory is read once for a slot, since it changes slowly and has no counter.
    """
    if recorded:
        rule = selector(RULES[resource], matchers)
        return union({RATIO: f"avg {by_of(resource)} (avg_over_time({rule}[{SLOT_SECONDS}s]))"})
    return union(value_parts(resource, RateFunction("rate", SLOT_SECONDS), matchers))


def past_slots(
    query: DayQuery,
    answer: SeriesMatrix,
    register: ExporterRegister,
    names: tuple[SeriesMapper, tuple[ClusterNode, ...] | None],
    pace: Pace,
) -> SampleGrid:
    """Return the slots that count. Raises PrometheusError for labels that cannot be read."""
    mapper, nodes = names
    labels = answer.names.labels(query.expression, pace)
    layout = layout_of(answer.names.digest, labels, query.resource)
    rows = rows_of(query.resource, layout, answer.values, query.piece, {})
    mapped = mapped_rows(layout.labels, mapper, nodes)
    counted = register.counted_of_the_past(claimants_of(mapped, layout.labels, mapper), rows, mapped)
    found = joined(query.resource, None, counted.rows, query.piece, counted.mapped)
    impossible = out_of_range(found.values)
    return replace(found, values=np.where(impossible, np.nan, np.clip(found.values, 0.0, 1.0)))
