"""Arithmetic on grids of samples: join with newer steps, shift, cut, follow the list of nodes. Vectorised."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.arrays import Floats, rearranged_rows, rows_of
from adapter.nodes.model.loads import SAMPLE_WINDOWS_SECONDS

if TYPE_CHECKING:
    from adapter.nodes.model.samples import SampleGrid

MARGIN_SECONDS: Final = 120
"""Time kept beyond the longest window of samples: two steps for late samples, and the sample before the window that is
still in force at its start if a node is scraped less often than once a step."""

_UNKNOWN_HOLD_SECONDS: Final = 90.0


def kept_columns(step_seconds: int) -> int:
    """Return how many columns of a grid are worth keeping."""
    return -(-(SAMPLE_WINDOWS_SECONDS[0] + MARGIN_SECONDS) // step_seconds)


def column_times(grid: SampleGrid) -> Floats:
    """Return the Unix seconds of each column."""
    columns = grid.values.shape[1]
    return grid.end - grid.step_seconds * np.arange(columns - 1, -1, -1, dtype=np.float64)


def align_to_step(seconds: float, step_seconds: int) -> int:
    """Return the last multiple of the step that is not later than `seconds`."""
    return int(seconds // step_seconds) * step_seconds


def span(grid: SampleGrid, end: int, columns: int) -> SampleGrid:
    """Return the part of a grid that ends at `end` and has `columns` columns; missing columns are NaN.

    Raises ValueError if `end` is not a whole number of steps away from the end of the grid.
    """
    if (end - grid.end) % grid.step_seconds:
        raise ValueError(f"{end} is not on the {grid.step_seconds} s steps of a grid that ends at {grid.end}")
    had = grid.values.shape[1]
    # The position of the grid's first column in the result.
    first = columns - had + (grid.end - end) // grid.step_seconds
    if first == 0 and had == columns:
        return grid
    values = np.full((len(grid.nodes), columns), np.nan)
    start, stop = max(first, 0), min(first + had, columns)
    if start < stop:
        values[:, start:stop] = grid.values[:, start - first : stop - first]
    return replace(grid, end=end, values=values)


def trim_grid(grid: SampleGrid) -> SampleGrid:
    """Return the grid with only the columns that are worth keeping."""
    return span(grid, grid.end, min(grid.values.shape[1], kept_columns(grid.step_seconds)))


def not_after(grid: SampleGrid, now: float) -> SampleGrid:
    """Return the grid without steps that are later than now, which a file may have after the clock was set back."""
    if grid.end <= now:
        return grid
    steps = -((align_to_step(now, grid.step_seconds) - grid.end) // grid.step_seconds)
    return span(grid, grid.end - steps * grid.step_seconds, grid.values.shape[1])


def regrid(grid: SampleGrid, nodes: tuple[str, ...]) -> SampleGrid:
    """Return the grid for another list of nodes: new ones have no samples, removed ones are dropped."""
    if nodes == grid.nodes:
        return grid
    rows = rows_of(nodes, grid.nodes)
    return replace(
        grid,
        nodes=nodes,
        values=np.ascontiguousarray(rearranged_rows(grid.values.T, rows).T),
        newest=rearranged_rows(grid.newest, rows),
        scrape_seconds=rearranged_rows(grid.scrape_seconds, rows),
        advancing=rearranged_rows(grid.advancing, rows),
        reset_at=rearranged_rows(grid.reset_at, rows),
    )


def join(older: SampleGrid, newer: SampleGrid) -> SampleGrid:
    """Return one grid from both, cut to what is worth keeping, for the nodes of either.

    If both have a step, the newer value counts unless it is NaN; so a late sample fills a former NaN, and a node that
    one answer lacks keeps its samples. An older grid whose steps are all later than the kept steps of the newer one
    (its clock was wrong) is dropped. Raises ValueError if the grids are of different resources or on different steps.
    """
    if (older.resource, older.step_seconds) != (newer.resource, newer.step_seconds):
        raise ValueError(
            f"cannot join {older.resource} at {older.step_seconds} s with {newer.resource} at {newer.step_seconds} s"
        )
    step, most = newer.step_seconds, kept_columns(newer.step_seconds)
    if older.end - newer.end >= most * step:
        return trim_grid(newer)
    if older.nodes != newer.nodes:
        nodes = tuple(sorted({*older.nodes, *newer.nodes}))
        older, newer = regrid(older, nodes), regrid(newer, nodes)
    end = max(older.end, newer.end)
    first = min(grid.end - (grid.values.shape[1] - 1) * step for grid in (older, newer))
    columns = min(most, (end - first) // step + 1)
    before, after = span(older, end, columns), span(newer, end, columns)
    return replace(
        newer,
        end=end,
        values=np.where(np.isnan(after.values), before.values, after.values),
        newest=np.fmax(older.newest, newer.newest),
        scrape_seconds=np.where(np.isnan(newer.scrape_seconds), older.scrape_seconds, newer.scrape_seconds),
        advancing=np.fmax(older.advancing, newer.advancing),
        reset_at=np.fmax(older.reset_at, newer.reset_at),
    )


def repeated_seconds(scrape_seconds: Floats, step_seconds: float) -> Floats:
    """Return for how long a sample may be repeated, in seconds: one scrape may fail. An interval may be NaN."""
    hold = np.where(np.isnan(scrape_seconds), _UNKNOWN_HOLD_SECONDS, 2 * scrape_seconds)
    return np.asarray(np.maximum(hold, step_seconds))


def without_repeats(values: Floats, times: Floats, newest: Floats, hold_seconds: Floats) -> Floats:
    """Return the rows without the steps that only repeat their newest sample.

    Prometheus answers with the last sample for up to five minutes after it. A sample is in force for `hold_seconds`
    (the scrape interval, at least a step); later columns are NaN. A row whose newest sample is unknown stays.
    """
    # Compared with NaN, nothing is later.
    last = newest + hold_seconds
    if not np.any(times[-1:] > last):
        return values
    return np.where(times > last[:, None], np.nan, values)
