"""Determines which nodes are hot: from several refreshes in a row above a limit until several below it (pure).

A short burst does not make a node hot, and a short dip does not cool one, so that nobody evicts pods because of a burst
or forgets a node because of a dip.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import AVG

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource, LoadSnapshot
    from adapter.nodes.model.scheduling_settings import HotspotSettings


@dataclass(frozen=True, slots=True, eq=False)
class ResourceHeat:
    """How long the nodes have been over the limit of one resource, in the order of `HeatState.nodes`."""

    rounds: NDArray[np.int64]
    """Refreshes since a node rose above the limit; 0 if it is below and not hot."""
    below: NDArray[np.int64]
    """Number of consecutive refreshes in which a hot node has been below the limit."""
    is_hot: NDArray[np.bool_]
    sampled_at: Floats
    """Unix seconds of the newest sample that has counted; NaN for none."""


@dataclass(frozen=True, slots=True, eq=False)
class HeatState:
    """The state after the refreshes so far. Replaced by each refresh."""

    nodes: tuple[str, ...] = ()
    index: Mapping[str, int] = field(default_factory=dict)
    resources: Mapping[LoadResource, ResourceHeat] = field(default_factory=dict)


def advance(
    state: HeatState, loads: LoadSnapshot | None, settings: HotspotSettings, moved: Collection[str] = ()
) -> HeatState:
    """Return the state after one more refresh, which is judged by the average over 15 minutes.

    A refresh counts for a node and resource if it has a newer sample, which does not come from the state file. A node
    whose load is unknown becomes neither hotter nor cooler, and an estimate is not a known load. Nodes that `moved` to
    another source or machine start cold.
    """
    if loads is None or loads.from_file:
        return state
    return HeatState(
        nodes=loads.nodes,
        index=loads.index,
        resources={
            resource: _advance_heat(_align_heat(state, loads.nodes, resource, moved), loads, resource, settings)
            for resource in settings.limits
        },
    )


def _align_heat(
    state: HeatState, nodes: tuple[str, ...], resource: LoadResource, moved: Collection[str]
) -> ResourceHeat:
    """Return the heat for this list of nodes; nodes that are new or have `moved` start cold."""
    heat = state.resources.get(resource)
    if heat is None or not state.nodes:
        nothing = np.zeros(len(nodes), np.int64)
        return ResourceHeat(nothing, nothing, np.zeros(len(nodes), np.bool_), np.full(len(nodes), np.nan))
    if nodes == state.nodes and not moved:
        return heat
    rows = np.fromiter((-1 if name in moved else state.index.get(name, -1) for name in nodes), np.intp, len(nodes))
    is_old = rows >= 0
    sampled_at = np.where(is_old, heat.sampled_at[rows], np.nan)
    return ResourceHeat(heat.rounds[rows] * is_old, heat.below[rows] * is_old, heat.is_hot[rows] & is_old, sampled_at)


def _advance_heat(
    heat: ResourceHeat, loads: LoadSnapshot, resource: LoadResource, settings: HotspotSettings
) -> ResourceHeat:
    load = loads.resources.get(resource)
    if load is None:
        return heat
    # A sample that is older than the last one, as after a clock was set back, does not count, but those after it do.
    is_new = load.sampled_at > np.where(np.isnan(heat.sampled_at), -np.inf, heat.sampled_at)
    ratios, limit = np.where(is_new, load.measured_values(0, AVG), np.nan), settings.limits[resource]
    is_above = ratios > limit
    is_below = ratios <= limit  # Neither holds for NaN.
    rounds = np.where(is_above | (is_below & heat.is_hot), heat.rounds + 1, np.where(is_below, 0, heat.rounds))
    below = np.where(is_above, 0, np.where(is_below & heat.is_hot, heat.below + 1, heat.below))
    has_cooled = below >= settings.clear
    is_hot = (heat.is_hot | (is_above & (rounds >= settings.rounds))) & ~has_cooled
    sampled_at = np.where(np.isnan(load.sampled_at), heat.sampled_at, load.sampled_at)
    return ResourceHeat(np.where(has_cooled, 0, rounds), np.where(has_cooled, 0, below), is_hot, sampled_at)
