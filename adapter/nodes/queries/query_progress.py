"""The results of a resource's queries so far: answered steps, the exporter of each node, the last layout.

They determine how the next answer is read, and each answer updates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    QueryRefusedError,
)
from adapter.nodes.names.uncounted_series import RefusedSeries
from adapter.nodes.queries.answer_rows import AnswerRows, SeriesLayout, layout_of
from adapter.nodes.queries.counted_rows import Claimants, CountedRows, ExporterRegister, claimants_of
from adapter.nodes.queries.known_cpus import KnownCpus, cpus_of_nodes, without_parts
from adapter.nodes.queries.query_steps import MOST_POINTS, OVERLAP_STEPS, QueryPiece
from adapter.nodes.queries.sample_grid_joining import MappedRows, answered_steps, first_late_step, mapped_rows
from adapter.nodes.queries.usual_sums import UsualSums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.time.pace import Pace
    from adapter.nodes.exporters.claims import Past, Source
    from adapter.nodes.model.loads import LoadResource
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.names.mapping import SeriesMapper
    from adapter.nodes.queries.expressions import ResourceQuery
    from adapter.nodes.queries.node_mapping import NodeMapping
    from adapter.nodes.queries.range_matrix import SeriesNames


@dataclass(slots=True)
class ResourceProgress:
    """The results of a resource's queries so far."""

    covered: set[int] = field(default_factory=set)
    """Steps that have been answered, Unix seconds."""
    most_steps: int = MOST_POINTS
    """Limit of the steps of one query, which is lowered when a query was too large."""
    judged_until: int = 0
    """Unix seconds of the newest step whose exporters were judged."""
    unmapped: tuple[Mapping[str, str], ...] = ()
    refused: tuple[RefusedSeries, ...] = ()
    left_out: int = 0
    """How many series of the last answer were left out because of long labels."""
    register: ExporterRegister | None = None
    """Which exporter measures each node; None before the first answer."""
    layout: SeriesLayout | None = None
    """The layout of the last answer."""
    usual_sums: UsualSums = field(default_factory=UsualSums)
    """What the modes of CPUs add up to in the last answers."""
    known_cpus: KnownCpus = field(default_factory=KnownCpus)
    """How many CPUs there are in whole answers."""
    mapped: tuple[SeriesLayout, SeriesMapper, MappedRows, Claimants] | None = None
    """The mapped rows of the last answer and their claimants, preceded by the layout and mapper that they come from."""

    def not_after(self, step: int) -> None:
        """Undo what was judged for steps after this one (Unix seconds), while the clock was ahead."""
        self.judged_until = min(self.judged_until, step)
        if self.register is not None:
            self.register.not_after(step)

    def keep_covered(self, steps: range, grid: SampleGrid | None) -> None:
        """Forget all but these steps, and those after the newest sample of the grid: a remote write may be behind."""
        sampled = set[int]() if grid is None else answered_steps(grid)
        newest = max(sampled, default=steps[-1])
        self.covered = {step for step in self.covered.intersection(steps) if step <= newest}

    def note_answer(self, piece: QueryPiece, older: SampleGrid | None, found: SampleGrid) -> None:
        """Note the steps of a piece that was answered; `older` is the grid before its samples were joined to it."""
        self.covered.update(piece.times)
        # A shorter piece does not show what lies before it: the other steps of a refresh are in other pieces.
        if older is not None and piece.columns >= OVERLAP_STEPS:
            first_late = first_late_step(older, found, piece.first)
            self.covered = {step for step in self.covered if step < first_late}

    def read_layout(self, resource: LoadResource, query: ResourceQuery, names: SeriesNames, pace: Pace) -> SeriesLayout:
        """Return the layout of an answer: the last one if the series are the same. Raises PrometheusError."""
        if self.layout is None or self.layout.digest != names.digest:
            labels = names.labels(query.expression, pace)
            self.layout = layout_of(names.digest, labels, resource, is_overridden=query.is_overridden)
        return self.layout

    def count_rows(
        self,
        layout: SeriesLayout,
        rows: AnswerRows,
        piece: QueryPiece,
        mapping: NodeMapping,
        past: Mapping[Source, Past],
        *,
        is_partial: bool = False,
    ) -> CountedRows:
        """Return the rows of an answer that count, and note which do not; only the first answer needs `past`."""
        mapped, claimants = self._map_rows(layout, mapping)
        if self.register is None:
            self.register = ExporterRegister(past, float(piece.last))
        counted = self.register.count_rows(claimants, rows, mapped, piece)
        if piece.last >= self.judged_until:
            self.judged_until = piece.last
            self.refused = tuple(
                RefusedSeries(layout.labels[row], node, why) for row, (node, why) in counted.refused.items()
            )
            if not is_partial:
                self.known_cpus.note(layout, rows)
        self.unmapped = mapped.unmapped
        if is_partial:
            # Only now, since an exporter is there even if its load is not known.
            stated = cpus_of_nodes(mapped, mapping.nodes)
            counted = replace(
                counted, rows=without_parts(counted.rows, piece.times, self.known_cpus.of(layout), stated)
            )
        return counted

    def note_failure(self, piece: QueryPiece, error: PrometheusError) -> bool:
        """Return whether the query may have been too large; if so, fewer steps are requested until queries succeed."""
        is_bad = isinstance(error, QueryRefusedError) and error.is_of_text
        may_be = isinstance(error, AnswerTooLargeError | PrometheusTimeoutError | QueryRefusedError) and not is_bad
        if may_be:
            self.most_steps = max(1, piece.columns // 2)
        return may_be

    def _map_rows(self, layout: SeriesLayout, mapping: NodeMapping) -> tuple[MappedRows, Claimants]:
        """Return the node and the exporter of each row; the last result is reused until a series or node changes."""
        last, mapper = self.mapped, mapping.mapper
        if last is None or last[0] is not layout or last[1] is not mapper:
            mapped = mapped_rows(layout.labels, mapper, mapping.nodes)
            last = self.mapped = layout, mapper, mapped, claimants_of(mapped, layout.labels, mapper)
        return last[2], last[3]
