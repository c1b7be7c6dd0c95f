"""Estimates for nodes without usable metrics: from the requests of their pods, and from earlier measurements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.arrays import rearranged_rows, rows_of
from adapter.nodes.model.loads import AVG, MAX, P95, SAMPLE_WINDOWS_SECONDS, STATS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource, LoadSnapshot, ResourceLoad

MIN_REQUESTED_RATIO: Final = 0.01
"""Requests below this say nothing about the usage: a daemon may use many times as much."""
_BAD_LONG_ENOUGH_SECONDS: Final = 300.0
"""How long a node that was never measured must have been bad before it has an estimate: one that has just joined is
measured by then."""
_FIRST_WINDOW: Final = 0
# Stored as the difference from the average.
_TAILS: Final = (P95, MAX)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceHistory:
    """The history of one resource from earlier refreshes, in the order of `BadSince.nodes`."""

    bad_since: Floats
    """Unix seconds of the refresh since which none of a node's windows could be served; NaN if one can be served."""
    measured_per_requested: Floats
    """Measured average divided by the requests, of the last refresh that had both; infinity if the requests were below
    `MIN_REQUESTED_RATIO`, and NaN if there was none."""
    spread: Floats
    """The statistics of the last refresh in which the node was measured, of shape (windows, stats, nodes): the average
    and the standard deviation, and how far the 95th percentile and the maximum were above the average. NaN if there was
    none."""


@dataclass(frozen=True, slots=True, eq=False)
class BadSince:
    """Since when nodes have been bad, and earlier measurements. A new value replaces it at each refresh."""

    nodes: tuple[str, ...] = ()
    resources: Mapping[LoadResource, ResourceHistory] = field(default_factory=dict)

    def after_refresh(
        self,
        snapshot: LoadSnapshot,
        requested_ratios: Mapping[LoadResource, Floats],
        moved: Collection[str] = (),
    ) -> BadSince:
        """Return the value after a refresh.

        `requested_ratios` are the requests of each node's pods as ratios of what the node has, in the order of the
        snapshot's nodes; NaN if unknown. Estimates in the snapshot do not count as measured. Nodes that `moved` to
        another source or machine begin anew.
        """
        rows = rows_of(snapshot.nodes, self.nodes)
        if moved:
            rows[np.isin(snapshot.nodes, list(moved))] = -1
        unknown = np.full(len(snapshot.nodes), np.nan)
        resources = {
            resource: _history(
                _for_nodes(self.resources.get(resource), rows),
                load,
                requested_ratios.get(resource, unknown),
                snapshot.assembled_at,
            )
            for resource, load in snapshot.resources.items()
        }
        # A resource that this snapshot lacks keeps its history.
        for resource, history in self.resources.items():
            if resource not in resources:
                resources[resource] = _for_nodes(history, rows)
        return BadSince(snapshot.nodes, resources)

    def of(self, resource: LoadResource) -> Floats:
        """Return the Unix seconds since which each node has been bad; NaN for a node that is not bad, or not known."""
        history = self.resources.get(resource)
        return np.full(len(self.nodes), np.nan) if history is None else history.bad_since


def is_measured(load: ResourceLoad) -> NDArray[np.bool_]:
    """Return which nodes have windows from metrics. If one window can be served, all of them can.

    An estimate is not taken from any window.
    """
    served: NDArray[np.bool_] = load.taken_from[_FIRST_WINDOW] >= 0
    return served


def _for_nodes(history: ResourceHistory | None, rows: NDArray[np.intp]) -> ResourceHistory:
    """Return the history for other nodes; new ones have none."""
    if history is None:
        unknown = np.full(len(rows), np.nan)
        return ResourceHistory(unknown, unknown, np.full((len(SAMPLE_WINDOWS_SECONDS), len(STATS), len(rows)), np.nan))
    return ResourceHistory(
        rearranged_rows(history.bad_since, rows),
        rearranged_rows(history.measured_per_requested, rows),
        rearranged_rows(history.spread, rows),
    )


def _history(before: ResourceHistory, load: ResourceLoad, requested: Floats, now: float) -> ResourceHistory:
    measured = is_measured(load)
    spread = load.stats.copy()
    spread[:, _TAILS] -= load.stats[:, [AVG]]
    spread = np.where(measured, spread, before.spread)
    # The requests of a node that was measured before they were known are those that are known first.
    is_first = ~np.isnan(spread[_FIRST_WINDOW, AVG]) & np.isnan(before.measured_per_requested)
    ratio = np.full_like(requested, np.inf)
    np.divide(spread[_FIRST_WINDOW, AVG], requested, out=ratio, where=~(requested < MIN_REQUESTED_RATIO))
    return ResourceHistory(
        bad_since=np.where(measured, np.nan, np.fmin(before.bad_since, now)),
        measured_per_requested=np.where(
            (measured | is_first) & ~np.isnan(requested), ratio, before.measured_per_requested
        ),
        spread=spread,
    )


def with_estimates(
    snapshot: LoadSnapshot, bad_since: BadSince, requested_ratios: Mapping[LoadResource, Floats]
) -> LoadSnapshot:
    """Return a snapshot in which bad nodes have estimates, marked as such.

    A node that was measured before has them at once, since an exporter on a node without free CPU may answer too late:
    the hottest node must not be taken for one of the middle. Any other node has them after five minutes.

    The average is the requests of the node's pods, times the ratio of usage to requests when both were last known,
    bounded to 0..1. For a node without a known ratio, it is the median of all nodes. If next to nothing was requested
    of the node when it was last measured, it is the median, too, and the node's last average is added. The standard
    deviation is the last one of the node, or else the median; the 95th percentile and the maximum are as far above the
    average as before. A node whose requests are unknown gets no estimate. `bad_since` is the value after this refresh.
    """
    rows = rows_of(snapshot.nodes, bad_since.nodes)
    resources = {
        resource: _estimate_load(
            load, _for_nodes(bad_since.resources.get(resource), rows), requested_ratios[resource], snapshot.assembled_at
        )
        if resource in requested_ratios
        else load
        for resource, load in snapshot.resources.items()
    }
    return replace(snapshot, resources=resources)


def _estimate_load(load: ResourceLoad, history: ResourceHistory, requested: Floats, now: float) -> ResourceLoad:
    last_average, is_added = history.spread[_FIRST_WINDOW, AVG], np.isinf(history.measured_per_requested)
    average = requested * _or_median(np.where(is_added, np.nan, history.measured_per_requested))
    is_added &= ~np.isnan(requested)
    average = np.clip(np.where(is_added, last_average + np.nan_to_num(average), average), 0.0, 1.0)
    is_due = ~np.isnan(last_average) | (history.bad_since <= now - _BAD_LONG_ENOUGH_SECONDS)
    wanted = is_due & ~is_measured(load) & ~np.isnan(average)
    if not wanted.any():
        return load
    estimate = _or_median(history.spread)
    estimate[:, _TAILS] += average
    estimate[:, AVG] = average
    np.clip(estimate, 0.0, 1.0, out=estimate)
    return replace(load, stats=np.where(wanted, estimate, load.stats), is_estimated=wanted | load.is_estimated)


def _or_median(values: Floats) -> Floats:
    """Return a copy in which the median of the known values along the last axis replaces NaN."""
    known = ~np.isnan(values).all(axis=-1, keepdims=True)
    # A row without any known value has no median.
    median = np.nanmedian(np.where(known, values, 0.0), axis=-1, keepdims=True) if values.shape[-1] else values
    return np.where(np.isnan(values), np.where(known, median, np.nan), values)
