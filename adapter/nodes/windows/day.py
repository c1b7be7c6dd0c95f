"""Windows of an hour and a day, from the means of slots of five minutes: samples to slots, slots to statistics (pure).

A peak of a day is the largest mean of five minutes, as crane-scheduler's `cpu_usage_max_avg_1d` is: a single sample
says little about what a node can bear for a while.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from adapter.nodes.model.arrays import rearranged_rows, rows_of
from adapter.nodes.model.day import DAY_RESOURCES, SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import AVG, SAMPLE_WINDOWS_SECONDS, SLOT_WINDOWS_SECONDS, STATS, WINDOWS_SECONDS
from adapter.nodes.model.samples import SampleGrid, SampleSet
from adapter.nodes.windows.bad_metrics import out_of_range
from adapter.nodes.windows.grid import align_to_step, column_times, kept_columns, regrid, span, without_repeats
from adapter.nodes.windows.slots import SlotAxes, shift_means
from adapter.nodes.windows.statistics import MIN_COVERAGE, last_columns, statistics_of, window_coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.day import SlotMeans
    from adapter.nodes.model.loads import LoadResource, LoadSnapshot

SETTLED_SECONDS: Final = 60
"""Time after the end of a slot until its mean is taken, so that late samples count."""
_FIVE_MINUTES: Final = SAMPLE_WINDOWS_SECONDS.index(SLOT_SECONDS)
_NODES_AT_ONCE: Final = 500
"""Nodes in a slice. Statistics are computed in double precision, in slices, so that not all nodes take that memory at
once."""
_SHAPE: Final = len(SLOT_WINDOWS_SECONDS), len(STATS)
_SLOT_WINDOWS: Final = np.arange(len(SAMPLE_WINDOWS_SECONDS), len(WINDOWS_SECONDS), dtype=np.int8)[:, None]


def complete_slots(samples: SampleSet, now: float) -> dict[LoadResource, SampleGrid]:
    """Return the slots whose five minutes are in the samples, as grids with the step of a slot.

    A node has a mean where at least 80% of its samples are there. Values out of range do not count.
    """
    grids = (samples.grids[resource] for resource in DAY_RESOURCES if resource in samples.grids)
    return {grid.resource: slots for grid in grids if (slots := _slots_of(grid, now)) is not None}


def _slots_of(grid: SampleGrid, now: float) -> SampleGrid | None:
    step = grid.step_seconds
    if SLOT_SECONDS % step or grid.end % step:
        return None
    columns = SLOT_SECONDS // step
    newest = align_to_step(min(float(grid.end), now) - SETTLED_SECONDS, SLOT_SECONDS)
    first = grid.end - (grid.values.shape[1] - 1) * step
    ends = range(newest, first + SLOT_SECONDS - step - 1, -SLOT_SECONDS)[::-1]
    if not ends:
        return None
    hold = np.fmax(grid.scrape_seconds, float(step))
    values = without_repeats(grid.values, column_times(grid), grid.newest, hold)
    possible = replace(grid, values=np.where(out_of_range(values), np.nan, np.clip(values, 0.0, 1.0)))
    means = np.full((len(grid.nodes), len(ends)), np.nan)
    for column, end in enumerate(ends):
        until = span(possible, end, kept_columns(step)).values
        has_enough = window_coverage(until, grid.scrape_seconds, step)[_FIVE_MINUTES] >= MIN_COVERAGE
        means[has_enough, column] = statistics_of(last_columns(until, columns)[has_enough])[AVG]
    return replace(grid, step_seconds=SLOT_SECONDS, end=ends[-1], values=means)


def day_after(
    day: LoadDay,
    slots: Iterable[SampleGrid],
    now: float,
    nodes: tuple[str, ...] | None = None,
    moved: Collection[str] = (),
) -> LoadDay:
    """Return the day that ends now, with further slots added. Known slots stay unchanged; future slots are dropped.

    `nodes` are the names of all Node objects, sorted; None if these are not known. Nodes that `moved` to another
    exporter lose what the former one measured.
    """
    found = tuple(slots)
    names = tuple(sorted({*day.nodes, *(name for grid in found for name in grid.nodes)})) if nodes is None else nodes
    end = align_to_step(now, SLOT_SECONDS)
    axes, present = SlotAxes(day.nodes, day.end, SLOT_SECONDS), SlotAxes(names, end, SLOT_SECONDS)
    means = {resource: shift_means(values, axes, present, moved) for resource, values in day.means.items()}
    is_changed = end != day.end or names != day.nodes or bool(moved)
    for grid in found:
        before = means.get(grid.resource)
        joined = _with_slots(before, regrid(grid, names), end)
        is_changed |= joined is not before
        if joined is not None:
            means[grid.resource] = joined
    if not is_changed:
        return day
    if nodes is None:
        names, means = _without_vanished(names, means)
    return LoadDay(end, names, means, {resource: _statistics(values) for resource, values in means.items()})


def _with_slots(before: SlotMeans | None, found: SampleGrid, end: int) -> SlotMeans | None:
    """Return the means of a resource with new ones added; if nothing is new, `before`, which may be None.

    Only the columns that were found are compared: all slots of 5,000 nodes would take 30 MB for a moment.
    """
    first = SLOTS - (end - found.end) // SLOT_SECONDS - found.values.shape[1]
    start, stop = max(first, 0), max(min(first + found.values.shape[1], SLOTS), 0)
    values = found.values[:, start - first : max(stop, start) - first].astype(np.float32)
    is_new = ~np.isnan(values)
    if before is not None:
        is_new &= np.isnan(before[:, start : start + values.shape[1]])
    if not is_new.any():
        return before
    means = np.full((len(found.nodes), SLOTS), np.nan, dtype=np.float32) if before is None else before.copy()
    np.copyto(means[:, start:stop], values, where=is_new)
    return means


def known_slots(day: LoadDay, resource: LoadResource) -> set[int]:
    """Return the ends of the slots in which the mean of any node is known, in Unix seconds."""
    means = day.means.get(resource)
    if means is None:
        return set()
    present = np.flatnonzero(~np.isnan(means).all(axis=0))
    return {day.end - (SLOTS - 1 - column) * SLOT_SECONDS for column in present.tolist()}


def with_day(snapshot: LoadSnapshot, day: LoadDay) -> LoadSnapshot:
    """Return the snapshot with the windows of an hour and a day added to its windows of samples.

    A resource that the day lacks has NaN in the added windows.
    """
    rows = rows_of(snapshot.nodes, day.nodes)
    resources = {}
    for resource, load in snapshot.resources.items():
        long = rearranged_rows(day.stats.get(resource, np.empty((*_SHAPE, 0))), rows)
        taken_from = np.where(np.isnan(long[:, AVG]), np.int8(-1), _SLOT_WINDOWS)
        resources[resource] = replace(
            load,
            stats=np.concatenate((load.stats, long)),
            taken_from=np.concatenate((load.taken_from, taken_from)),
        )
    return replace(snapshot, resources=resources)


def samples_of_day(day: LoadDay) -> SampleSet:
    """Return the means as samples, for the state file."""
    unknown = np.full(len(day.nodes), np.nan)
    return SampleSet(
        {
            resource: SampleGrid(
                resource=resource,
                step_seconds=SLOT_SECONDS,
                end=day.end,
                nodes=day.nodes,
                # The file has them in single precision, so twice as many bytes would only wait to be written.
                values=cast("Floats", means),
                newest=unknown,
                scrape_seconds=unknown,
                advancing=unknown,
                reset_at=unknown,
            )
            for resource, means in day.means.items()
        }
    )


def day_of_samples(samples: SampleSet, now: float) -> LoadDay:
    """Return the day of a state file; grids that are out of range or not in slots of five minutes are dropped."""
    grids = (grid for resource, grid in samples.grids.items() if resource in DAY_RESOURCES)
    return day_after(LoadDay(), [grid for grid in grids if _is_day(grid)], now)


def _is_day(grid: SampleGrid) -> bool:
    return grid.step_seconds == SLOT_SECONDS and not grid.end % SLOT_SECONDS and not out_of_range(grid.values).any()


def _without_vanished(
    nodes: tuple[str, ...], means: Mapping[LoadResource, SlotMeans]
) -> tuple[tuple[str, ...], dict[LoadResource, SlotMeans]]:
    """Return the day without nodes that no longer have a mean."""
    present = np.zeros(len(nodes), dtype=np.bool_)
    for values in means.values():
        present |= ~np.isnan(values).all(axis=1)
    if present.all():
        return nodes, dict(means)
    kept = tuple(name for name, is_there in zip(nodes, present.tolist(), strict=True) if is_there)
    return kept, {resource: values[present] for resource, values in means.items()}


def _statistics(means: SlotMeans) -> Floats:
    found = np.full((*_SHAPE, len(means)), np.nan)
    for start in range(0, len(means), _NODES_AT_ONCE):
        part = means[start : start + _NODES_AT_ONCE].astype(np.float64)
        for window, seconds in enumerate(SLOT_WINDOWS_SECONDS):
            slots = last_columns(part, seconds // SLOT_SECONDS)
            has_enough = (~np.isnan(slots)).mean(axis=1) >= MIN_COVERAGE
            stats = np.where(has_enough, statistics_of(slots), np.nan)
            found[window, :, start : start + _NODES_AT_ONCE] = stats
    return found
