"""Brings the samples up to date: asks Prometheus for missing ones, and joins the answers with the current ones.

A query that fails affects only its own resource, whose samples stay as they were. A whole refresh ends within its time.
A refresher is used by one thread at a time.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    refuse_partial,
)
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.samples import SampleGrid, SampleSet
from adapter.nodes.names.uncounted_series import measured_by, refused_series
from adapter.nodes.queries.answer_rows import rows_of
from adapter.nodes.queries.expressions import STEP_SECONDS
from adapter.nodes.queries.long_labels import long_answer_series
from adapter.nodes.queries.node_absences import NodeAbsences
from adapter.nodes.queries.node_mapping import KeptMapping, NodeMapping
from adapter.nodes.queries.past_queries import DAY, WEEK, PastAnswer, PastProgress, PastQuery, past_slots
from adapter.nodes.queries.query_progress import ResourceProgress
from adapter.nodes.queries.query_steps import (
    QueryPiece,
    pieces_lacking,
    queries_allowed,
    steps_after_success,
    steps_at_once,
    time_limit,
    wanted_steps,
)
from adapter.nodes.queries.query_turns import QueryTurns
from adapter.nodes.queries.range_matrix import read_piece
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.queries.sample_grid_joining import answered_steps, grids_to_join, join_piece, without_nodes
from adapter.nodes.queries.survey_schedule import KeptSurvey
from adapter.nodes.windows.day import known_slots
from adapter.nodes.windows.grid import align_to_step, kept_columns
from adapter.nodes.windows.week import known_quarters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.nodes.exporters.claims import Owner, Source
    from adapter.nodes.model.day import LoadDay
    from adapter.nodes.model.scheduling_settings import SchedulingSettings
    from adapter.nodes.model.week import LoadWeek

MOST_UNASKED_SAMPLES: Final = 500_000_000
"""A week that takes more samples than this, and so more than 25 queries, is requested only if a policy needs it."""
_OF_ALL_SERIES: Final = frozenset({LoadResource.CPU, LoadResource.MEMORY})
"""Resources whose built-in queries notice if a part of a node's series is missing.

A store may hold a part of a node's series. The largest or the mean of that part looks like that of all.
"""
_OF_THE_SERVER = (PrometheusUnreachableError, PrometheusTimeoutError, AuthenticationRefusedError)
"""Errors that may fail all queries alike, so that their messages do not quote the expression."""
_LONGEST_SURVEY_SECONDS = 5.0
_TIME_SHARE = 0.8
_MOST_SECONDS = 25.0
_LEAST_SECONDS = 3.0


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
        """Take the client and the configuration; `refresh_seconds` bounds both time and number of queries.

        `pace` is for decoding answers; the client has its own for receiving them.
        """
        self._client = client
        self._settings = settings
        self._refresh_seconds = refresh_seconds
        self._pace = pace
        self._monotonic = monotonic
        self._survey = KeptSurvey(client, settings, pace, monotonic)
        self._moved: dict[str, Source] = {}
        """Nodes whose measuring source changed in this refresh, with their former source."""
        self._progress: dict[LoadResource, ResourceProgress] = {}
        self._turns = QueryTurns()
        self._knew_nodes: bool | None = None
        self._is_answered = True
        self._absences = NodeAbsences()
        self._mapping = KeptMapping(settings.match)
        self._day, self._week = PastProgress(DAY), PastProgress(WEEK)

    def refresh(
        self, now: float, samples: SampleSet | None, nodes: tuple[ClusterNode, ...] | None, *, kept_queries: int = 0
    ) -> RefreshResult:
        """Return the samples with the available steps up to now (Unix seconds).

        `samples` are those of the last refresh or of the state file, or None if there are none. `nodes` are all Node
        objects, or None if they are not known. `kept_queries` is how many of the allowed queries to reserve for
        `fill_day` and `fill_week`. Never raises Prometheus errors.
        """
        began = self._monotonic()
        deadline = began + max(_LEAST_SECONDS, min(_MOST_SECONDS, _TIME_SHARE * self._refresh_seconds))
        allowed = max(0, queries_allowed(self._refresh_seconds) - kept_queries)
        grids = self._begin(now, samples, nodes)
        asked = 0
        if allowed and self._survey.is_due(began):
            seconds = min(_LONGEST_SURVEY_SECONDS, (deadline - began) / 4)
            # If one query is allowed, a survey at each refresh would leave none whose failure is reported.
            rest = self._refresh_seconds if allowed == 1 else 0.0
            counted = None if nodes is None else len(nodes)
            asked += self._survey.ask(now, seconds, counted, needs_past=not self._owners(), rest_seconds=rest)
        mapping = self._mapping.of(nodes, self._absences.gone, self._survey.last)
        lacking = self._missing_pieces(now, grids)
        # A survey in several queries may have used more than one short refresh is allowed.
        plan = self._turns.plan(lacking, max(0, allowed - asked))
        failures: dict[LoadResource, str] = {}
        fresh = False
        for place, (resource, piece) in enumerate(plan):
            if resource in failures:
                continue
            asked += 1
            self._turns.note(resource, piece, is_newest=piece is lacking[resource][0])
            limit = time_limit(deadline - self._monotonic(), len(plan) - place)
            try:
                grids[resource], problem = self._ask(resource, piece, grids, mapping, limit)
            except PrometheusError as e:
                if self._progress[resource].note_failure(piece, e):
                    self._survey.hasten()
                problem = e.cause if isinstance(e, _OF_THE_SERVER) else str(e)
            else:
                fresh = True
            if problem:
                failures[resource] = problem
        self._is_answered = fresh if plan else self._is_answered
        unmapped = mapping.unmapped({resource: p.unmapped for resource, p in self._progress.items()})
        refused = refused_series({resource: p.refused for resource, p in self._progress.items()})
        left_out = long_answer_series({resource: p.left_out for resource, p in self._progress.items()})
        from_file = samples is not None and samples.from_file and not fresh
        return RefreshResult(
            SampleSet(grids, from_file),
            (*unmapped, *refused, *self._survey.last.unread(), *left_out),
            failures,
            asked,
            self._monotonic() - began,
            measured_by(self._owners(), None if nodes is None else {node.name for node in nodes}),
            frozenset(self._moved),
            self._moves(),
            frozenset(LoadResource).difference(lacking),
            self._is_answered,
        )

    def fill_day(self, now: float, day: LoadDay, nodes: tuple[ClusterNode, ...] | None, seconds: float) -> PastAnswer:
        """Ask for the newest missing part of the last day, and wait at most `seconds` for the answer.

        Call it after `refresh`, with the same nodes, since only measurements by the exporters in that refresh's answers
        count. Never raises Prometheus errors.
        """
        known = {resource: known_slots(day, resource) for resource in DAY.resources}
        query = self._day.next_query(known, now, self._settings, self._survey.last)
        return self._fill(self._day, query, nodes, seconds)

    def fill_week(
        self, now: float, week: LoadWeek, nodes: tuple[ClusterNode, ...] | None, seconds: float, *, is_needed: bool
    ) -> PastAnswer:
        """Ask for the newest missing part of the week before the last day; in a large cluster, only if `is_needed`."""
        known = {LoadResource.CPU: known_quarters(week)}
        most = math.inf if is_needed else MOST_UNASKED_SAMPLES
        query = self._week.next_query(known, now, self._settings, self._survey.last, most_samples=most)
        return self._fill(self._week, query, nodes, seconds)

    def _fill(
        self, progress: PastProgress, query: PastQuery | None, nodes: tuple[ClusterNode, ...] | None, seconds: float
    ) -> PastAnswer:
        newest = None if query is None else self._progress[query.resource]
        if query is None or newest is None or newest.register is None:
            return PastAnswer()
        try:
            answer = read_piece(self._client, query.expression, query.piece, seconds, self._pace).matrix()
            refuse_partial(query.expression, answer.warnings)
            mapping = self._mapping.of(nodes, self._absences.gone, self._survey.last)
            found = past_slots(query, answer, newest.register, newest.usual_sums, mapping, self._pace)
        except PrometheusError as e:
            progress.note_failure(query)
            return PastAnswer(queries=1, failure=str(e))
        progress.note_success(query)
        return PastAnswer((found,), 1)

    def _owners(self) -> dict[LoadResource, Mapping[str, Owner]]:
        return {resource: p.register.owners for resource, p in self._progress.items() if p.register is not None}

    def _moves(self) -> frozenset[tuple[Source, Source]]:
        """Return the moves of nodes between sources in this refresh."""
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
        """Return the grids to start from, and note the steps that they have."""
        grids = {} if samples is None else grids_to_join(samples.grids, now, nodes)
        for past in (self._day, self._week):
            past.follow_clock(now)
        knows_nodes = bool(nodes)
        has_changed = self._knew_nodes is not None and knows_nodes != self._knew_nodes
        if self._absences.have_ended(now, nodes) or has_changed:
            # All nodes have other names, are gone or are back, or one is back whose samples were dropped when it went:
            # the samples of all steps are requested again.
            for progress in self._progress.values():
                progress.covered.clear()
        if has_changed:
            self._day.forget()
            self._week.forget()
        self._knew_nodes = knows_nodes
        for resource in LoadResource:
            grid = grids.get(resource)
            if resource not in self._progress:
                self._progress[resource] = ResourceProgress(set() if grid is None else answered_steps(grid))
            elif grid is None:
                # The caller has dropped the samples, so they are requested again.
                self._progress[resource].covered.clear()
            self._progress[resource].not_after(align_to_step(now, STEP_SECONDS))
        return grids

    def _missing_pieces(
        self, now: float, grids: Mapping[LoadResource, SampleGrid]
    ) -> dict[LoadResource, tuple[QueryPiece, ...]]:
        steps = wanted_steps(now, kept_columns(STEP_SECONDS), STEP_SECONDS)
        lacking: dict[LoadResource, tuple[QueryPiece, ...]] = {}
        for resource, progress in self._progress.items():
            if not self._survey.may_answer(resource) and resource not in grids:
                continue
            progress.keep_covered(steps, grids.get(resource))
            at_once = steps_at_once(self._survey.last.series.get(resource), self._survey.last.most_series(resource))
            lacking[resource] = pieces_lacking(steps, progress.covered, min(at_once, progress.most_steps))
        return lacking

    def _ask(
        self,
        resource: LoadResource,
        piece: QueryPiece,
        grids: Mapping[LoadResource, SampleGrid],
        mapping: NodeMapping,
        timeout_seconds: float,
    ) -> tuple[SampleGrid, str]:
        """Return the grid with the answer for a piece, and why it may lack something. Raises PrometheusError."""
        query, progress = self._survey.query(resource, grids), self._progress[resource]
        began = self._monotonic()
        reader = read_piece(self._client, query.expression, piece, timeout_seconds, self._pace)
        took = self._monotonic() - began
        answer = reader.matrix(is_overridden=query.is_overridden)
        if query.is_overridden or resource not in _OF_ALL_SERIES:
            refuse_partial(query.expression, answer.warnings)
        progress.left_out = answer.left_out
        layout = progress.read_layout(resource, query, answer.names, self._pace)
        scrape_seconds = self._survey.last.scrape_seconds
        rows = rows_of(
            resource,
            layout,
            answer.values,
            piece,
            scrape_seconds,
            progress.usual_sums.with_answer(layout, answer.values, piece.times, is_partial=bool(answer.warnings)),
            is_overridden=query.is_overridden,
        )
        past, is_partial = self._survey.past(resource), bool(answer.warnings)
        counted = progress.count_rows(layout, rows, piece, mapping, past, is_partial=is_partial)
        self._moved |= counted.moved
        older = grids.get(resource)
        if older is not None and counted.moved:
            older = without_nodes(older, counted.moved)
            # Earlier measurements of the node's new source count.
            progress.covered.clear()
        found = join_piece(resource, older, counted.rows, piece, counted.mapped)
        if answer.warnings:
            # The values are right, but there may be more, so the steps are requested again.
            return found, f"Prometheus answered with a warning, so nodes may be missing: {answer.warnings[0]}"
        if len(answer.values):
            # If there are no series at all, Prometheus probably lacks them, such as just after its own restart.
            progress.note_answer(piece, older, found)
        progress.most_steps = steps_after_success(progress.most_steps, piece.columns, took, timeout_seconds)
        return found, ""
