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


@dataclass(frozen=True, slots=True, eq=False)
class DayAnswer:
    """The answer to one query for the past."""

    slots: tuple[SampleGrid, ...] = ()
    queries: int = 0
    failure: str = ""
    """Why nothing came, one sentence; empty if that did not happen."""


@dataclass(slots=True)
class DayProgress:
    """What has been asked of the past. For one thread at a time."""

    answered: dict[LoadResource, set[int]] = field(default_factory=dict)
    """Slots that Prometheus has answered, though perhaps with no sample."""
    most_steps: int = SLOTS
    """Limit that follows from queries that failed."""

    def next_query(self, day: LoadDay, now: float, settings: SchedulingSettings, survey: Survey) -> DayQuery | None:
        """Return what to ask next; None if nothing is lacking. Slots that the samples will give are not asked for."""
        last = aligned(now - SAMPLE_WINDOWS_SECONDS[0] - MARGIN_SECONDS, SLOT_SECONDS)
        steps = range(aligned(now, SLOT_SECONDS) - (SLOTS - 1) * SLOT_SECONDS, last + 1, SLOT_SECONDS)
        found: QueryPiece | None = None
        of: LoadResource | None = None
        for resource in DAY_RESOURCES:
            answered = self.answered.setdefault(resource, set())
            answered.intersection_update(steps)
            if resource in settings.queries or not survey.series.get(resource):
                continue
            most = steps_at_once(survey.series[resource] * _SCRAPES_A_SLOT, survey.answered(resource))
            piece = newest_lacking(steps, answered | known_slots(day, resource), min(most, self.most_steps))
            if piece is not None and (found is None or piece.last > found.last):
                found, of = piece, resource
        if found is None or of is None:
            return None
        return DayQuery(of, found, past_expression(of, settings.matchers, recorded=of in survey.recorded))

    def succeeded(self, query: DayQuery) -> None:
        """Take note of an answer: the next query may ask for more."""
        self.answered.setdefault(query.resource, set()).update(query.piece.times)
        self.most_steps = min(MOST_POINTS, 2 * self.most_steps)

    def failed(self, query: DayQuery) -> None:
        """Ask for less next time, since the query may have been too large."""
        self.most_steps = max(1, query.piece.columns // 2)


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
    counted = register.counted(claimants_of(mapped, layout.labels, mapper), rows, mapped, query.piece)
    found = joined(query.resource, None, counted.rows, query.piece, counted.mapped)
    impossible = out_of_range(found.values)
    return replace(found, values=np.where(impossible, np.nan, np.clip(found.values, 0.0, 1.0)))
