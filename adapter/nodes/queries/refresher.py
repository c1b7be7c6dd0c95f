"""Brings the samples up to date: asks Prometheus for what is lacking, and joins the answers with what there is.

A query that fails costs its own resource, and its samples stay as they were. All of a refresh ends within its time.
Used by one thread at a time.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.ranges import RangeLimits
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.names.mapping import SeriesMapper, series_mapper, unmapped_series
from adapter.nodes.names.matching import naming_of
from adapter.nodes.names.refused import RefusedSeries, measured_by, refused_series
from adapter.nodes.queries.claiming import Claimants, ExporterRegister, claimants_of
from adapter.nodes.queries.expressions import STEP_SECONDS, rate_function, resource_query
from adapter.nodes.queries.intervals import longest
from adapter.nodes.queries.joining import MappedRows, answered_steps, joined, mapped_rows, without_nodes
from adapter.nodes.queries.matrix import MatrixReader
from adapter.nodes.queries.past_queries import DAY, WEEK, PastAnswer, PastProgress, PastQuery, past_slots
from adapter.nodes.queries.plan import (
    QueryPiece,
    in_order,
    pieces_lacking,
    queries_allowed,
    steps_after_success,
    steps_at_once,
    time_limit,
    wanted,
)
from adapter.nodes.queries.progress import ResourceProgress
from adapter.nodes.queries.results import RefreshResult
from adapter.nodes.queries.rows import SeriesLayout, layout_of, rows_of
from adapter.nodes.queries.survey import SURVEY_SECONDS, Survey, past_of, survey_of, survey_query
from adapter.nodes.windows.day import known_slots
from adapter.nodes.windows.grid import kept_columns, not_after, regrid
from adapter.nodes.windows.week import known_quarters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.sources.prometheus.client import PrometheusClient
    from adapter.nodes.exporters.claims import Owner, Past, Source
    from adapter.nodes.model.day import LoadDay
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.model.scheduling_settings import SchedulingSettings
    from adapter.nodes.model.week import LoadWeek
    from adapter.nodes.queries.expressions import ResourceQuery
    from adapter.nodes.queries.matrix import SeriesMatrix
    from adapter.nodes.queries.rows import AnswerRows

LIMITS: Final = RangeLimits(max_bytes=256 * 1024 * 1024, max_series=250_000, max_samples=8_000_000)
"""For 5,000 nodes with four series each and 68 steps, with room for installations that scrape everything twice."""
MOST_UNASKED_SAMPLES: Final = 500_000_000
"""A week that reads more, which takes more than 25 queries, is asked for only if a policy needs it."""
_SURVEY_AGAIN_SECONDS = 60.0
_LONGEST_SURVEY_SECONDS = 5.0
_TIME_SHARE = 0.8
_MOST_SECONDS = 25.0
_LEAST_SECONDS = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class _Mapper:
    """A mapper, and what it was made of."""

    nodes: tuple[ClusterNode, ...] | None
    texts: tuple[object, ...] | None
    """All by which series are mapped to these nodes."""
    survey: Survey
    """A mapper remembers what it has looked up, so none is used for long."""
    mapper: SeriesMapper


def _texts_of(nodes: tuple[ClusterNode, ...] | None) -> tuple[object, ...] | None:
    return None if nodes is None else tuple(map(naming_of, nodes))


class SampleRefresher:
    """Refreshes the samples of all resources."""

    def __init__(
        self,
        client: PrometheusClient,
        settings: SchedulingSettings,
        *,
        refresh_seconds: float = 30.0,
        pace: Pace = UNPACED,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the client and what is configured; `refresh_seconds` bounds both time and number of queries.

        `pace` is for decoding answers; the client has its own for receiving them.
        """
        self._client = client
        self._settings = settings
        self._refresh_seconds = refresh_seconds
        self._pace = pace
        self._monotonic = monotonic
        self._survey = Survey()
        self._survey_due = -math.inf
        self._past: Mapping[LoadResource, Mapping[Source, Past]] = {}
        self._is_surveyed = False
        self._moved: dict[str, Source] = {}
        """Nodes that another source measures since this refresh, with the one that did before."""
        self._progress: dict[LoadResource, ResourceProgress] = {}
        self._sequence = count(1)
        self._knew_nodes: bool | None = None
        self._mapper: _Mapper | None = None
        self._day, self._week = PastProgress(DAY), PastProgress(WEEK)

    def refresh(
        self, now: float, samples: SampleSet | None, nodes: tuple[ClusterNode, ...] | None, *, kept_queries: int = 0
    ) -> RefreshResult:
        """Return the samples with the steps up to now (Unix seconds) that could be had.

        `samples` is what the refresh before returned, or what was read from the local file; None without either.
        `nodes` is all Node objects, None where they are not known. `kept_queries` of those that are allowed are left
        for `fill_day`. Never raises because of Prometheus.
        """
        began = self._monotonic()
        deadline = began + max(_LEAST_SECONDS, min(_MOST_SECONDS, _TIME_SHARE * self._refresh_seconds))
        allowed = max(0, queries_allowed(self._refresh_seconds) - kept_queries)
        grids = self._begin(now, samples, nodes)
        asked = 0
        if allowed and began >= self._survey_due:
            asked += 1
            self._ask_survey(now, min(_LONGEST_SURVEY_SECONDS, (deadline - began) / 4))
        mapper = self._mapper_of(nodes)
        plan = in_order(
            self._lacking(now, grids),
            {resource: progress.asked for resource, progress in self._progress.items()},
            allowed - asked,
        )
        failures: dict[LoadResource, str] = {}
        fresh = False
        for place, (resource, piece) in enumerate(plan):
            if resource in failures:
                continue
            asked += 1
            limit = time_limit(deadline - self._monotonic(), len(plan) - place)
            try:
                grids[resource], problem = self._ask(resource, piece, grids, (mapper, nodes), limit)
            except PrometheusError as e:
                self._note_failure(resource, piece, e)
                problem = str(e)
            else:
                fresh = True
            if problem:
                failures[resource] = problem
        unmapped = unmapped_series({resource: p.unmapped for resource, p in self._progress.items()}, mapper)
        refused = refused_series({resource: p.refused for resource, p in self._progress.items()})
        from_file = samples is not None and samples.from_file and not fresh
        return RefreshResult(
            SampleSet(grids, from_file),
            (*unmapped, *refused),
            failures,
            asked,
            self._monotonic() - began,
            measured_by(self._owners()),
            frozenset(self._moved),
            self._moves(),
        )

    def fill_day(self, now: float, day: LoadDay, nodes: tuple[ClusterNode, ...] | None, seconds: float) -> PastAnswer:
        """Ask for the newest part of the last day that is lacking, for at most so many seconds.

        To be called after `refresh`, with its nodes: only what the exporters of its answers have measured counts.
        Never raises because of Prometheus.
        """
        known = {resource: known_slots(day, resource) for resource in DAY.resources}
        return self._fill(self._day, self._day.next_query(known, now, self._settings, self._survey), nodes, seconds)

    def fill_week(
        self, now: float, week: LoadWeek, nodes: tuple[ClusterNode, ...] | None, seconds: float, *, is_needed: bool
    ) -> PastAnswer:
        """Likewise of the week before that day. That of a large cluster is asked for only if a policy needs it."""
        known = {LoadResource.CPU: known_quarters(week)}
        most = math.inf if is_needed else MOST_UNASKED_SAMPLES
        query = self._week.next_query(known, now, self._settings, self._survey, most_samples=most)
        return self._fill(self._week, query, nodes, seconds)

    def _fill(
        self, progress: PastProgress, query: PastQuery | None, nodes: tuple[ClusterNode, ...] | None, seconds: float
    ) -> PastAnswer:
        register = None if query is None else self._progress[query.resource].register
        if query is None or register is None:
            return PastAnswer()
        try:
            answer = self._read_piece(query.expression, query.piece, seconds).matrix()
            if answer.warnings:
                raise UnexpectedAnswerError(query.expression, f"the answer may be partial: {answer.warnings[0]}")
            found = past_slots(query, answer, register, (self._mapper_of(nodes), nodes), self._pace)
        except PrometheusError as e:
            progress.failed(query)
            return PastAnswer(queries=1, failure=str(e))
        progress.succeeded(query)
        return PastAnswer((found,), 1)

    def _read_piece(self, expression: str, piece: QueryPiece, timeout_seconds: float) -> MatrixReader:
        """Ask for a piece, and return what has read the answer. Raises PrometheusError."""
        reader = MatrixReader(expression, piece, LIMITS, self._pace)
        self._client.read_range(
            reader,
            expression,
            start=piece.first,
            end=piece.last,
            step_seconds=piece.step_seconds,
            timeout_seconds=timeout_seconds,
            limits=LIMITS,
        )
        return reader

    def _owners(self) -> dict[LoadResource, Mapping[str, Owner]]:
        return {resource: p.register.owners for resource, p in self._progress.items() if p.register is not None}

    def _moves(self) -> frozenset[tuple[Source, Source]]:
        """Return from which source to which nodes have moved in this refresh."""
        moved, self._moved = self._moved, {}
        return frozenset(
            (before, owners[node].source)
            for node, before in moved.items()
            for owners in self._owners().values()
            if node in owners and owners[node].source != before
        )

    def _begin(
        self, now: float, samples: SampleSet | None, nodes: tuple[ClusterNode, ...] | None
    ) -> dict[LoadResource, SampleGrid]:
        """Return the grids to start from, and learn from them which steps are there."""
        grids = {} if samples is None else {r: not_after(grid, now) for r, grid in samples.grids.items()}
        # Samples on other steps, as a file of another version may have them, cannot be joined with those that follow.
        grids = {
            r: grid for r, grid in grids.items() if grid.step_seconds == STEP_SECONDS and not grid.end % STEP_SECONDS
        }
        knows_nodes = nodes is not None
        if nodes is not None:
            names = tuple(sorted(node.name for node in nodes))
            grids = {resource: regrid(grid, names) for resource, grid in grids.items()}
        if self._knew_nodes is not None and knows_nodes != self._knew_nodes:
            # The names of the nodes change as a whole, so all steps are asked for under the new ones.
            for progress in self._progress.values():
                progress.covered.clear()
            self._day.forget()
            self._week.forget()
        self._knew_nodes = knows_nodes
        for resource in LoadResource:
            grid = grids.get(resource)
            if resource not in self._progress:
                self._progress[resource] = ResourceProgress(set() if grid is None else answered_steps(grid))
            elif grid is None:
                # The caller has dropped the samples, so they are asked for again.
                self._progress[resource].covered.clear()
        return grids

    def _mapper_of(self, nodes: tuple[ClusterNode, ...] | None) -> SeriesMapper:
        """Return the mapper for these nodes: that of the last survey, if no name or address has changed since."""
        last = self._mapper
        if last is not None and last.survey is self._survey:
            if last.nodes is nodes:
                return last.mapper
            if last.texts == _texts_of(nodes):
                self._mapper = replace(last, nodes=nodes)
                return last.mapper
        mapper = series_mapper(nodes, self._settings.match, self._survey.unames)
        self._mapper = _Mapper(nodes, _texts_of(nodes), self._survey, mapper)
        return mapper

    def _ask_survey(self, now: float, timeout_seconds: float) -> None:
        # Only the first survey asks which sources there were before the start, as a store may be slow to say that.
        is_first, self._is_surveyed = not self._is_surveyed, True
        query = survey_query(self._settings.matchers, with_past=is_first)
        try:
            answer = self._client.instant(query, timeout_seconds=timeout_seconds, at=math.floor(now))
            samples = [(one.labels, one.value) for batch in answer.batches(self._pace) for one in batch]
            if answer.warnings:
                # A part of the counts would say that there are no series of what another store has.
                raise UnexpectedAnswerError(query, f"the answer may be partial: {answer.warnings[0]}")
        except PrometheusError:
            # Without it queries work too: they only may be larger than they need to be.
            self._survey_due = self._monotonic() + _SURVEY_AGAIN_SECONDS
            return
        self._survey = survey_of(samples)
        if is_first:
            self._past = past_of(samples, now)
        self._survey_due = self._monotonic() + SURVEY_SECONDS

    def _lacking(
        self, now: float, grids: Mapping[LoadResource, SampleGrid]
    ) -> dict[LoadResource, tuple[QueryPiece, ...]]:
        steps = wanted(now, kept_columns(STEP_SECONDS), STEP_SECONDS)
        lacking: dict[LoadResource, tuple[QueryPiece, ...]] = {}
        for resource, progress in self._progress.items():
            if not self._is_there(resource) and resource not in grids:
                continue
            progress.covered.intersection_update(steps)
            at_once = steps_at_once(self._survey.series.get(resource), self._survey.answered(resource))
            lacking[resource] = pieces_lacking(steps, progress.covered, min(at_once, progress.most_steps))
        return lacking

    def _is_there(self, resource: LoadResource) -> bool:
        """Return whether a query can have a result, as far as is known."""
        is_known = resource in self._survey.series and resource not in self._settings.queries
        return not is_known or self._survey.series[resource] > 0 or resource in self._survey.recorded

    def _query(self, resource: LoadResource, grids: Mapping[LoadResource, SampleGrid]) -> ResourceQuery:
        # What the times of samples show is exact; the survey's counts take a new target for one that is rarely scraped.
        cpu = grids.get(LoadResource.CPU)
        seen = longest(cpu.scrape_seconds) if cpu is not None else math.nan
        return resource_query(
            resource,
            rate=rate_function(self._survey.longest_scrape_seconds if math.isnan(seen) else seen),
            matchers=self._settings.matchers,
            override=self._settings.queries.get(resource),
            recorded=resource in self._survey.recorded,
        )

    def _ask(
        self,
        resource: LoadResource,
        piece: QueryPiece,
        grids: Mapping[LoadResource, SampleGrid],
        names: tuple[SeriesMapper, tuple[ClusterNode, ...] | None],
        timeout_seconds: float,
    ) -> tuple[SampleGrid, str]:
        """Return the grid with the answer for a piece, and why it may lack something. Raises PrometheusError."""
        query, progress = self._query(resource, grids), self._progress[resource]
        progress.asked, began = next(self._sequence), self._monotonic()
        reader = self._read_piece(query.expression, piece, timeout_seconds)
        took = self._monotonic() - began
        answer = reader.matrix()
        layout = self._layout(resource, query, answer)
        rows = rows_of(
            resource, layout, answer.values, piece, self._survey.scrape_seconds, is_overridden=query.is_overridden
        )
        found, progress.unmapped = self._join_answer(resource, layout, rows, piece, grids.get(resource), names)
        if answer.warnings:
            # What came is right, but there may be more, so the steps are asked for again.
            return found, f"Prometheus answered with a warning, so nodes may be missing: {answer.warnings[0]}"
        if len(answer.values):
            # Without any series it is rather Prometheus that lacks something, such as just after its own restart.
            progress.covered.update(piece.times)
        progress.most_steps = steps_after_success(progress.most_steps, piece.columns, took, timeout_seconds)
        return found, ""

    def _layout(self, resource: LoadResource, query: ResourceQuery, answer: SeriesMatrix) -> SeriesLayout:
        """Return the layout of an answer: the last one if the series are the same."""
        progress, names = self._progress[resource], answer.names
        if progress.layout is None or progress.layout.digest != names.digest:
            labels = names.labels(query.expression, self._pace)
            progress.layout = layout_of(names.digest, labels, resource, is_overridden=query.is_overridden)
        return progress.layout

    def _join_answer(
        self,
        resource: LoadResource,
        layout: SeriesLayout,
        rows: AnswerRows,
        piece: QueryPiece,
        older: SampleGrid | None,
        names: tuple[SeriesMapper, tuple[ClusterNode, ...] | None],
    ) -> tuple[SampleGrid, tuple[Mapping[str, str], ...]]:
        """Return the grid with what counts of an answer, and the labels of rows without a node."""
        progress = self._progress[resource]
        mapped, claimants = self._map_rows(resource, layout, *names)
        if progress.register is None:
            # What an expression of the configuration returns does not tell its sources as the built-in ones do.
            past = {} if resource in self._settings.queries else self._past.get(resource, {})
            progress.register = ExporterRegister(past, float(piece.last))
        counted = progress.register.counted(claimants, rows, mapped, piece)
        if piece.last >= progress.judged_until:
            progress.judged_until = piece.last
            progress.refused = tuple(
                RefusedSeries(layout.labels[row], node, why) for row, (node, why) in counted.refused.items()
            )
        self._moved |= counted.moved
        if older is not None and counted.moved:
            older = without_nodes(older, counted.moved)
            # What the node's new source has measured before counts.
            progress.covered.clear()
        return joined(resource, older, counted.rows, piece, counted.mapped), mapped.unmapped

    def _map_rows(
        self, resource: LoadResource, layout: SeriesLayout, mapper: SeriesMapper, nodes: tuple[ClusterNode, ...] | None
    ) -> tuple[MappedRows, Claimants]:
        """Return the nodes and exporters of an answer's rows: as last time if neither series nor nodes are others."""
        progress = self._progress[resource]
        last = progress.mapped
        if last is None or last[0] is not layout or last[1] is not mapper:
            mapped = mapped_rows(layout.labels, mapper, nodes)
            last = progress.mapped = layout, mapper, mapped, claimants_of(mapped, layout.labels, mapper)
        return last[2], last[3]

    def _note_failure(self, resource: LoadResource, piece: QueryPiece, error: PrometheusError) -> None:
        """Ask for less next time if the query may have been too large; this grows again with each success."""
        is_bad = isinstance(error, QueryRefusedError) and error.error_type == "bad_data"
        if isinstance(error, AnswerTooLargeError | PrometheusTimeoutError | QueryRefusedError) and not is_bad:
            self._progress[resource].most_steps = max(1, piece.columns // 2)
