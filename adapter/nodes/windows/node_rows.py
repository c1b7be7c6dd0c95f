"""Turns rows by series into rows by node; joins series of restarted exporters and of Prometheus pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.samples import SampleGrid
from adapter.nodes.windows.grid import without_repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource


@dataclass(frozen=True, slots=True, eq=False)
class SeriesRows:
    """Series of one resource on a grid of times, with the facts about each; a node may have several."""

    values: Floats
    """The samples, of shape (series, columns); NaN where there is none."""
    newest: Floats
    """The facts about each series, like those of `SampleGrid` about each node."""
    scrape_seconds: Floats
    advancing: Floats
    reset_at: Floats


def mean_by_node(values: Floats, node_of: NDArray[np.intp], nodes: int) -> Floats:
    """Return for each node and step the mean of the node's series that have a sample at that step; NaN without any.

    A restarted exporter leaves series that follow each other, which are joined; an HA pair leaves series at the same
    times, which are averaged. So each step counts once, whatever the number of series behind it.
    """
    known = np.flatnonzero(node_of >= 0)
    found = np.full((nodes, values.shape[1]), np.nan)
    order = known[np.argsort(node_of[known], kind="stable")]
    rows, starts, counts = np.unique(node_of[order], return_index=True, return_counts=True)
    single = counts == 1
    found[rows[single]] = values[order[starts[single]]]
    # Nearly all nodes have one series: only the others are worth the arithmetic.
    several = np.repeat(~single, counts)
    if not several.any():
        return found
    part = values[order[several]]
    present = ~np.isnan(part)
    edges = np.concatenate(([0], np.cumsum(counts[~single])[:-1]))
    # Values that are far out of range may overflow in a sum; they are not served in any case.
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.add.reduceat(np.where(present, part, 0.0), edges, axis=0)
    samples = np.add.reduceat(present.astype(np.int64), edges, axis=0)
    found[rows[~single]] = np.where(samples > 0, sums / np.maximum(samples, 1), np.nan)
    return found


def _by_node(facts: Floats, node_of: NDArray[np.intp], nodes: int, pick: np.ufunc) -> Floats:
    found = np.full(nodes, np.nan)
    known = node_of >= 0
    pick.at(found, node_of[known], facts[known])
    return found


def grid_of_series(
    rows: SeriesRows,
    node_of: NDArray[np.intp],
    resource: LoadResource,
    step_seconds: int,
    end: int,
    nodes: tuple[str, ...],
) -> SampleGrid:
    """Return the grid by node. `node_of` is the row of each series' node; -1 for an unknown one, which is left out.

    A series that has ended does not count where Prometheus only repeats its last sample. Of a node's series, the latest
    sample, counter advance and reset count, and the shortest scrape interval.
    """
    times = end - step_seconds * np.arange(rows.values.shape[1] - 1, -1, -1, dtype=np.float64)
    hold = np.fmax(rows.scrape_seconds, float(step_seconds))
    values = without_repeats(rows.values, times, rows.newest, hold)
    return SampleGrid(
        resource=resource,
        step_seconds=step_seconds,
        end=end,
        nodes=nodes,
        values=mean_by_node(values, node_of, len(nodes)),
        newest=_by_node(rows.newest, node_of, len(nodes), np.fmax),
        scrape_seconds=_by_node(rows.scrape_seconds, node_of, len(nodes), np.fmin),
        advancing=_by_node(rows.advancing, node_of, len(nodes), np.fmax),
        reset_at=_by_node(rows.reset_at, node_of, len(nodes), np.fmax),
    )
