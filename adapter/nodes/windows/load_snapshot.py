"""Turns samples into the snapshot that every reader sees. One bad resource or node harms only itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import SAMPLE_WINDOWS_SECONDS, LoadSnapshot, ResourceLoad
from adapter.nodes.windows.bad_metrics import JudgingTime, is_served, judge, last_sample_at, out_of_range
from adapter.nodes.windows.grid import (
    align_to_step,
    column_times,
    kept_columns,
    not_after,
    regrid,
    span,
    without_repeats,
)
from adapter.nodes.windows.statistics import (
    MIN_COVERAGE,
    served_statistics,
    window_coverage,
    window_statistics,
    windows_served,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource, MeasuringJob, UnmappedSeries
    from adapter.nodes.model.samples import SampleGrid, SampleSet


@dataclass(frozen=True, slots=True, eq=False)
class RefreshFacts:
    """The facts, besides the samples, from which a snapshot is assembled."""

    now: float
    """The current time, in Unix seconds."""
    refresh_seconds: float
    pod_changed_at: Floats | None = None
    """Unix seconds at which a pod was last bound to each node, or ended there, in the order of the snapshot's nodes;
    NaN if none is known. None if pods are not known."""
    unmapped: tuple[UnmappedSeries, ...] = ()
    measured_by: tuple[MeasuringJob, ...] = ()
    moved: frozenset[str] = frozenset()
    """Nodes whose earlier samples do not count, since another source or machine is measured now."""
    query_failures: Mapping[LoadResource, str] = field(default_factory=dict)


def node_names(samples: SampleSet) -> tuple[str, ...]:
    """Return the nodes that have samples, sorted: the nodes of a snapshot where Node objects are not known."""
    return tuple(sorted({name for grid in samples.grids.values() for name in grid.nodes}))


def grid_fault(grid: SampleGrid) -> str | None:
    """Return why no window can be computed from a grid, such as one from a damaged file; None if one can."""
    rows = len(grid.nodes)
    if grid.step_seconds <= 0 or grid.end % grid.step_seconds:
        return f"the step ({grid.step_seconds} s) does not fit the end ({grid.end})"
    if grid.values.ndim != 2 or len(grid.values) != rows:
        return f"samples of shape {grid.values.shape} for {rows} nodes"
    for name in ("newest", "scrape_seconds", "advancing", "reset_at"):
        shape = getattr(grid, name).shape
        if shape != (rows,):
            return f"{name} of shape {shape} for {rows} nodes"
    return None


def resource_load(grid: SampleGrid, moment: JudgingTime, pod_changed_at: Floats) -> ResourceLoad:
    """Return the windows of samples of one resource, for the nodes of its grid. They end at `moment.window_end`.

    A window that lacks samples is served from another window that has enough. Samples from 1 to 1.02 count as 1.
    """
    step = grid.step_seconds
    hold = np.fmax(grid.scrape_seconds, float(step))
    grid = _with_values(grid, without_repeats(grid.values, column_times(grid), grid.newest, hold))
    grid = span(grid, align_to_step(moment.window_end, step), kept_columns(step))
    possible = np.where(out_of_range(grid.values), np.nan, grid.values)
    coverage = window_coverage(possible, grid.scrape_seconds, step)
    verdicts = judge(grid, coverage, moment, pod_changed_at)
    newest = last_sample_at(grid)
    usable = (coverage >= MIN_COVERAGE) & is_served(verdicts)
    if moment.from_file:
        usable &= moment.now - newest <= np.array(SAMPLE_WINDOWS_SECONDS)[:, None]
    taken_from = windows_served(usable)
    stats = window_statistics(np.clip(possible, 0.0, 1.0), step)
    return ResourceLoad(
        resource=grid.resource,
        stats=served_statistics(stats, taken_from),
        taken_from=taken_from,
        verdicts=verdicts,
        sampled_at=newest,
        is_estimated=np.zeros(len(grid.nodes), dtype=np.bool_),
        resolution_seconds=grid.scrape_seconds,
    )


def _with_values(grid: SampleGrid, values: Floats) -> SampleGrid:
    return grid if values is grid.values else replace(grid, values=values)


def assemble(samples: SampleSet, nodes: tuple[str, ...], facts: RefreshFacts) -> LoadSnapshot:
    """Return the snapshot for these nodes (sorted names), whose windows end at the last step that any resource has.

    A resource whose grid is damaged is left out and named in `query_failures`; the others stay.
    """
    pods = np.full(len(nodes), np.nan) if facts.pod_changed_at is None else facts.pod_changed_at
    failures = dict(facts.query_failures)
    grids: dict[LoadResource, SampleGrid] = {}
    for resource, grid in samples.grids.items():
        fault = grid_fault(grid)
        if fault is None:
            grids[resource] = not_after(grid, facts.now)
        else:
            failures[resource] = f"The samples of {resource} cannot be used: {fault}."
    window_end = max((grid.end for grid in grids.values()), default=int(facts.now))
    moment = JudgingTime(facts.now, facts.refresh_seconds, window_end, samples.from_file)
    return LoadSnapshot(
        nodes=nodes,
        resources={resource: resource_load(regrid(grid, nodes), moment, pods) for resource, grid in grids.items()},
        assembled_at=facts.now,
        window_end=float(window_end),
        from_file=samples.from_file,
        unmapped=facts.unmapped,
        measured_by=facts.measured_by,
        index={name: row for row, name in enumerate(nodes)},
        query_failures=failures,
    )
