"""The week of each node: quarters of an hour, from the slots of the day and from queries for the past (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.arrays import rows_of
from adapter.nodes.model.day import SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.week import QUARTER_SECONDS, QUARTERS, LoadWeek
from adapter.nodes.windows.grid import align_to_step
from adapter.nodes.windows.slots import SlotAxes, shift_means

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.model.week import QuarterMeans

_SLOTS_A_QUARTER: Final = QUARTER_SECONDS // SLOT_SECONDS


def week_at(week: LoadWeek, now: float, nodes: tuple[str, ...] | None = None, moved: Collection[str] = ()) -> LoadWeek:
    """Return the week that ends now (Unix seconds), without future quarters.

    `nodes` are the names of all Node objects, sorted; None if these are not known. Nodes that `moved` to another
    exporter lose what the former one measured.
    """
    end, names = align_to_step(now, QUARTER_SECONDS), week.nodes if nodes is None else nodes
    if end == week.end and names == week.nodes and not moved:
        return week
    before, after = (SlotAxes(*axes, QUARTER_SECONDS) for axes in ((week.nodes, week.end), (names, end)))
    means = shift_means(week.means, before, after, moved)
    if nodes is None:
        kept = np.flatnonzero(~np.isnan(means).all(axis=1))
        names, means = tuple(names[row] for row in kept.tolist()), means[kept]
    return LoadWeek(end, names, means)


def with_day(week: LoadWeek, day: LoadDay) -> LoadWeek:
    """Return the week with the quarters of an hour whose three slots are in the day; known ones stay unchanged."""
    slots = day.means.get(LoadResource.CPU)
    if slots is None:
        return week
    # The day may end within a quarter of an hour.
    last = align_to_step(day.end, QUARTER_SECONDS)
    until = SLOTS - (day.end - last) // SLOT_SECONDS
    whole = slots[:, until % _SLOTS_A_QUARTER : until]
    # Without nodes, numpy cannot work out the number of quarters by itself.
    by_quarter = whole.reshape(len(slots), whole.shape[1] // _SLOTS_A_QUARTER, _SLOTS_A_QUARTER)
    quarters = by_quarter.mean(axis=2).astype(np.float16)
    return _with_quarters(week, SlotAxes(day.nodes, last, QUARTER_SECONDS), quarters)


def with_past(week: LoadWeek, past: SampleGrid) -> LoadWeek:
    """Return the week with the quarters of an hour that a query for the past returned; known ones stay unchanged."""
    return _with_quarters(week, SlotAxes(past.nodes, past.end, past.step_seconds), past.values.astype(np.float16))


def known_quarters(week: LoadWeek) -> set[int]:
    """Return the ends of the quarters in which the mean of any node is known, in Unix seconds."""
    present = np.flatnonzero(~np.isnan(week.means).all(axis=0))
    return {week.end - (QUARTERS - 1 - column) * QUARTER_SECONDS for column in present.tolist()}


def _with_quarters(week: LoadWeek, axes: SlotAxes, found: QuarterMeans) -> LoadWeek:
    """Return the week with the quarters of an hour that it lacked; quarters outside the week are dropped."""
    names = week.nodes if week.nodes == axes.nodes else tuple(sorted({*week.nodes, *axes.nodes}))
    means = shift_means(
        week.means, SlotAxes(week.nodes, week.end, QUARTER_SECONDS), SlotAxes(names, week.end, QUARTER_SECONDS)
    )
    first = QUARTERS - (week.end - axes.end) // QUARTER_SECONDS - found.shape[1]
    start, stop = max(first, 0), min(first + found.shape[1], QUARTERS)
    news = np.full((len(names), max(stop - start, 0)), np.nan, dtype=np.float16)
    news[rows_of(axes.nodes, names)] = found[:, start - first : max(stop, start) - first]
    before = means[:, start : start + news.shape[1]]
    is_new = np.isnan(before) & ~np.isnan(news)
    if not is_new.any():
        return week
    joined = means.copy()
    joined[:, start:stop] = np.where(is_new, news, before)
    return LoadWeek(week.end, names, joined)
