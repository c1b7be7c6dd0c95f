"""Restores the load of the last day and week from Prometheus after a start or an outage.

This module decides which slots to request, and reads the answers. Each refresh requests one piece of one resource, the
newest first, so that the past costs no more than a refresh may. Answers count for the exporters that measure the nodes
now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.day import DAY_RESOURCES, SLOT_SECONDS, SLOTS
from adapter.nodes.model.loads import SAMPLE_WINDOWS_SECONDS, LoadResource
from adapter.nodes.model.week import QUARTER_SECONDS, QUARTERS
from adapter.nodes.queries.answer_rows import layout_of, rows_of
from adapter.nodes.queries.counted_rows import ExporterRegister, claimants_of
from adapter.nodes.queries.expressions import (
    RATIO,
    RULES,
    RateFunction,
    by_clause_of,
    selector,
    union,
    value_parts,
    with_bounds,
)
from adapter.nodes.queries.query_steps import MOST_POINTS, QueryPiece, steps_at_once
from adapter.nodes.queries.sample_grid_joining import join_piece, mapped_rows
from adapter.nodes.windows.bad_metrics import out_of_range
from adapter.nodes.windows.grid import MARGIN_SECONDS, align_to_step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from adapter.foundation.time.pace import Pace
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.model.scheduling_settings import SchedulingSettings
    from adapter.nodes.queries.node_mapping import NodeMapping
    from adapter.nodes.queries.range_matrix import SeriesMatrix
    from adapter.nodes.queries.series_survey import Survey
    from adapter.nodes.queries.usual_sums import UsualSums

_SCRAPE_SECONDS: Final = 15
"""The scrape interval that is assumed when the samples behind a mean are counted."""


@dataclass(frozen=True, slots=True)
class PastSpan:
    """The slots of the past that are kept."""

    resources: tuple[LoadResource, ...]
    slot_seconds: int
    slots: int
    known_by_itself_seconds: int
    """Slots younger than this need not be requested, since they will come from other kept data."""

    def steps(self, now: float) -> range:
        """Return the ends of the slots that may be requested, in Unix seconds."""
        last = align_to_step(now - self.known_by_itself_seconds, self.slot_seconds)
        return range(
            align_to_step(now, self.slot_seconds) - (self.slots - 1) * self.slot_seconds, last + 1, self.slot_seconds
        )


DAY: Final = PastSpan(DAY_RESOURCES, SLOT_SECONDS, SLOTS, SAMPLE_WINDOWS_SECONDS[0] + MARGIN_SECONDS)
WEEK: Final = PastSpan((LoadResource.CPU,), QUARTER_SECONDS, QUARTERS, SLOTS * SLOT_SECONDS)
"""The week; the slots of its last day come from the kept day."""


@dataclass(frozen=True, slots=True)
class PastQuery:
    """One query for the past of a resource."""

    resource: LoadResource
    piece: QueryPiece
    expression: str
    is_recorded: bool = False
    """Whether the query reads our recording rule."""


@dataclass(frozen=True, slots=True, eq=False)
class PastAnswer:
    """The answer to one query for the past."""

    slots: tuple[SampleGrid, ...] = ()
    queries: int = 0
    failure: str = ""
    """Why a query has no answer, in one sentence; empty if it has one, or if nothing was queried."""


@dataclass(slots=True)
class _ResourceProgress:
    """The part of a resource's past that has been requested."""

    answered: set[int] = field(default_factory=set)
    """Slots that Prometheus has answered from counters, perhaps without a sample."""
    answered_by_rule: set[int] = field(default_factory=set)
    """Slots that Prometheus has answered from our recording rule, which may have existed for less than a day."""
    most_steps: int = MOST_POINTS
    """Limit of the steps of one query, which is lowered when queries fail."""
    failures: int = 0
    """Number of consecutive queries that failed."""


class PastProgress:
    """The part of the past that has been requested, by resource. Not thread-safe."""

    def __init__(self, span: PastSpan) -> None:
        self._span = span
        self.resources = {resource: _ResourceProgress() for resource in span.resources}

    def follow_clock(self, now: float) -> None:
        """Forget answers about slots that are not kept at this time: those are requested again if they are kept later.

        A clock that was wrong for a moment must not leave a gap that nothing fills.
        """
        steps = self._span.steps(now)
        for progress in self.resources.values():
            progress.answered.intersection_update(steps)
            progress.answered_by_rule.intersection_update(steps)

    def next_query(
        self,
        known: Mapping[LoadResource, Collection[int]],
        now: float,
        settings: SchedulingSettings,
        survey: Survey,
        *,
        most_samples: float = math.inf,
    ) -> PastQuery | None:
        """Return the next query; None if nothing is lacking. `known` are the known slots of each resource.

        The newest slots come first, but a resource whose queries fail waits for the others. Nothing is requested if all
        slots together would read more than `most_samples`.
        """
        steps = self._span.steps(now)
        found = (
            self._query_for_missing_slots(resource, steps, known.get(resource, ()), settings, survey, most_samples)
            for resource in self._span.resources
            if resource not in settings.queries and survey.series.get(resource)
        )
        queries = [query for query in found if query is not None]
        return min(
            queries, key=lambda query: (self.resources[query.resource].failures, -query.piece.last), default=None
        )

    def _query_for_missing_slots(
        self,
        resource: LoadResource,
        steps: range,
        known: Collection[int],
        settings: SchedulingSettings,
        survey: Survey,
        most_samples: float,
    ) -> PastQuery | None:
        """Return the query for the newest slots that a resource lacks: from the rule first, then from counters."""
        progress = self.resources[resource]
        done = progress.answered.union(known)
        reads = {False: survey.series[resource]}
        if resource in survey.recorded:
            reads = {True: survey.exporters.get(resource, 0), **reads}
        for recorded, series in reads.items():
            read_for_a_slot = series * (self._span.slot_seconds // _SCRAPE_SECONDS)
            if read_for_a_slot * len(steps) > most_samples:
                continue
            most = min(steps_at_once(read_for_a_slot, survey.most_series(resource)), progress.most_steps)
            piece = newest_lacking(steps, done | progress.answered_by_rule if recorded else done, most)
            if piece is not None:
                expression = past_expression(
                    resource,
                    survey.matchers(resource, settings.matchers),
                    recorded=recorded,
                    slot_seconds=self._span.slot_seconds,
                )
                return PastQuery(resource, piece, expression, is_recorded=recorded)
        return None

    def note_success(self, query: PastQuery) -> None:
        """Note that a query was answered, so that the next one may ask for more."""
        progress = self.resources[query.resource]
        (progress.answered_by_rule if query.is_recorded else progress.answered).update(query.piece.times)
        progress.most_steps = min(MOST_POINTS, 2 * progress.most_steps)
        progress.failures = 0

    def note_failure(self, query: PastQuery) -> None:
        """Ask for less next time, since the query may have been too large."""
        progress = self.resources[query.resource]
        progress.most_steps = max(1, query.piece.columns // 2)
        progress.failures += 1

    def forget(self) -> None:
        """Ask for the whole past again, since the node names in the answers have changed."""
        for progress in self.resources.values():
            progress.answered.clear()
            progress.answered_by_rule.clear()


def newest_lacking(steps: range, known: Collection[int], most_steps: int) -> QueryPiece | None:
    """Return the newest consecutive steps that are not known, at most `most_steps`; None if all are known."""
    last = next((time for time in reversed(steps) if time not in known), None)
    if last is None:
        return None
    first = last
    while first > steps.start and first - steps.step not in known and (last - first) // steps.step + 1 < most_steps:
        first -= steps.step
    return QueryPiece(first, last, steps.step)


def past_expression(
    resource: LoadResource, matchers: Sequence[str], *, recorded: bool, slot_seconds: int = SLOT_SECONDS
) -> str:
    """Return the expression for the mean of the slot before each step.

    Memory is read once for a slot, since it changes slowly and has no counter.
    """
    matchers = with_bounds(matchers)
    if recorded:
        rule = selector(RULES[resource], matchers)
        return union({RATIO: f"avg {by_clause_of(resource)} (avg_over_time({rule}[{slot_seconds}s]))"})
    return union(value_parts(resource, RateFunction("rate", slot_seconds), matchers))


def past_slots(
    query: PastQuery,
    answer: SeriesMatrix,
    register: ExporterRegister,
    usual_sums: UsualSums,
    mapping: NodeMapping,
    pace: Pace,
) -> SampleGrid:
    """Return the slots of an answer that count. Raises PrometheusError for labels that cannot be read.

    `register` and `usual_sums` are those of the answers about the newest steps.
    """
    labels = answer.names.labels(query.expression, pace)
    layout = layout_of(answer.names.digest, labels, query.resource)
    usual = usual_sums.of_the_past(layout, answer.values)
    rows = rows_of(query.resource, layout, answer.values, query.piece, {}, usual)
    mapped = mapped_rows(layout.labels, mapping.mapper, mapping.nodes)
    counted = register.counted_in_older_answer(claimants_of(mapped, layout.labels, mapping.mapper), rows, mapped)
    found = join_piece(query.resource, None, counted.rows, query.piece, counted.mapped)
    impossible = out_of_range(found.values)
    return replace(found, values=np.where(impossible, np.nan, np.clip(found.values, 0.0, 1.0)))
