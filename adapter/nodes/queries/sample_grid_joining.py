"""Turns rows by series into the grid by node, joined with the current one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.arrays import rows_of
from adapter.nodes.queries.expressions import STEP_SECONDS
from adapter.nodes.windows.grid import column_times, join, not_after, regrid, repeated_seconds, without_repeats
from adapter.nodes.windows.node_rows import grid_of_series

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.loads import LoadResource
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.names.mapping import SeriesMapper
    from adapter.nodes.queries.answer_rows import AnswerRows
    from adapter.nodes.queries.query_steps import QueryPiece

_LONGEST_LATE_SECONDS: Final = 300.0
"""A node that had no samples for longer is not late. Where some of thousands of nodes come and go, the samples of all
nodes for a quarter of an hour would be asked for again and again."""


def grids_to_join(
    grids: Mapping[LoadResource, SampleGrid], now: float, nodes: tuple[ClusterNode, ...] | None
) -> dict[LoadResource, SampleGrid]:
    """Return the grids with which later samples can be joined, without steps after now (Unix seconds).

    With Node objects, they have exactly those nodes.
    """
    kept = {resource: not_after(grid, now) for resource, grid in grids.items()}
    # Samples on other steps, such as from a file of another version, cannot be joined with later ones.
    kept = {r: grid for r, grid in kept.items() if grid.step_seconds == STEP_SECONDS and not grid.end % STEP_SECONDS}
    if nodes is None:
        return kept
    names = tuple(sorted(node.name for node in nodes))
    return {resource: regrid(grid, names) for resource, grid in kept.items()}


def answered_steps(grid: SampleGrid) -> set[int]:
    """Return the steps at which a grid has a sample of any node; all other steps are requested again."""
    present = ~np.isnan(grid.values).all(axis=0) if grid.nodes else np.zeros(grid.values.shape[1], dtype=bool)
    return {int(time) for time in column_times(grid)[present]}


@dataclass(frozen=True, slots=True, eq=False)
class MappedRows:
    """Which node each row of an answer is about."""

    nodes: tuple[str, ...]
    """Sorted names of the Node objects or, if there are no Node objects, the names in the series."""
    node_of: NDArray[np.intp]
    """The node of each row; -1 where it is not known."""
    unmapped: tuple[Mapping[str, str], ...]
    """The labels of the rows whose node is not known."""
    are_nodes_known: bool
    """Whether there are Node objects."""


def mapped_rows(
    labels: Sequence[Mapping[str, str]], mapper: SeriesMapper, nodes: tuple[ClusterNode, ...] | None
) -> MappedRows:
    """Return the nodes of rows with these labels."""
    names = [mapper.node_of(one) for one in labels]
    known = tuple(sorted({name for name in names if name} if nodes is None else {node.name for node in nodes}))
    unmapped = tuple(one for one, name in zip(labels, names, strict=True) if not name)
    return MappedRows(known, rows_of(names, known), unmapped, nodes is not None)


def join_piece(
    resource: LoadResource, older: SampleGrid | None, rows: AnswerRows, piece: QueryPiece, mapped: MappedRows
) -> SampleGrid:
    """Return the grid with the rows of a piece, which may be newer or older than the grid.

    With Node objects, the grid has exactly those nodes; without them, the nodes that have samples within the kept time.
    """
    known = mapped.nodes
    found = grid_of_series(rows, mapped.node_of, resource, piece.step_seconds, piece.last, known)
    if older is not None:
        found = _without_repeats(join(older, found) if piece.last >= older.end else join(found, older))
    found = regrid(found, known) if mapped.are_nodes_known else _without_vanished(found)
    return _counted_from_first_sight(found, rows, mapped)


def first_late_step(older: SampleGrid, newer: SampleGrid, asked_from: int) -> float:
    """Return the first step (Unix seconds) at which a node may have samples that came after it was asked for.

    Infinity if there is none. It is a node that has newer samples than in `older`, and had none that reach the first
    step of the last query: its remote write is behind the others, or its exporter was away for a few minutes.
    """
    before = regrid(older, newer.nodes)
    held_until = before.newest + repeated_seconds(before.scrape_seconds, before.step_seconds)
    is_late = (newer.newest > before.newest) & (held_until < asked_from)
    is_late &= before.newest >= asked_from - _LONGEST_LATE_SECONDS
    return float(np.min(before.newest[is_late], initial=np.inf))


def without_nodes(grid: SampleGrid, moved: Container[str]) -> SampleGrid:
    """Return the grid without any sample of these nodes."""
    others = tuple(name for name in grid.nodes if name not in moved)
    return regrid(regrid(grid, others), grid.nodes)


def _without_repeats(grid: SampleGrid) -> SampleGrid:
    """Return the grid without steps at which rates only repeat a sample of an earlier piece.

    They are dropped before a newer sample comes, after which nothing would show that they are repetitions.
    """
    hold = repeated_seconds(grid.scrape_seconds, grid.step_seconds)
    return replace(grid, values=without_repeats(grid.values, column_times(grid), grid.newest, hold))


def _without_vanished(grid: SampleGrid) -> SampleGrid:
    """Return the grid without nodes that have no sample any more."""
    present = ~np.isnan(grid.values).all(axis=1) | (grid.newest >= column_times(grid)[0])
    if present.all():
        return grid
    return regrid(grid, tuple(name for name, is_there in zip(grid.nodes, present, strict=True) if is_there))


def _counted_from_first_sight(grid: SampleGrid, rows: AnswerRows, mapped: MappedRows) -> SampleGrid:
    """Return the grid with counters that never advanced marked as standing still since they were first seen.

    Otherwise, counters that were stuck from the start would count as unknown, and not as stuck.
    """
    node_of = mapped.node_of
    if grid.nodes is not mapped.nodes:
        # The place after the last one is for rows without a node.
        node_of = np.append(rows_of(mapped.nodes, grid.nodes), -1)[node_of]
    first = np.full(len(grid.nodes), np.nan)
    is_known = node_of >= 0
    np.fmin.at(first, node_of[is_known], rows.first_known[is_known])
    unseen = np.isnan(grid.advancing) & ~np.isnan(first)
    if not unseen.any():
        return grid
    return replace(grid, advancing=np.where(unseen, first - grid.step_seconds, grid.advancing))
