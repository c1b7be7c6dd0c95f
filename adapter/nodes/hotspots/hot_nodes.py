"""Determines which nodes are hot: from several refreshes in a row above a limit until several below it (pure).

A short burst does not make a node hot, and a short dip does not cool one, so that nobody evicts pods because of a burst
or forgets a node because of a dip.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import AVG, LoadResource, LoadSnapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.scheduling_settings import HotspotSettings


@dataclass(frozen=True, slots=True, eq=False)
class ResourceHeat:
    """How long the nodes have been over the limit of one resource, in the order of `HeatState.nodes`."""

    rounds: NDArray[np.int64]
    """Refreshes since a node rose above the limit; 0 if it is below and not hot."""
    below: NDArray[np.int64]
    """Number of consecutive refreshes in which a hot node has been below the limit."""
    is_hot: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class HeatState:
    """The state after the refreshes so far. Replaced by each refresh."""

    nodes: tuple[str, ...] = ()
    index: Mapping[str, int] = field(default_factory=dict)
    window_end: float = -np.inf
    """End of the windows of the last counted refresh, in Unix seconds."""
    resources: Mapping[LoadResource, ResourceHeat] = field(default_factory=dict)


def advance(state: HeatState, loads: LoadSnapshot | None, settings: HotspotSettings) -> HeatState:
    """Return the state after one more refresh, which is judged by the average over 15 minutes.

    A refresh without new samples, or with those of the state file, does not count. A node whose load is unknown becomes
    neither hotter nor cooler, and an estimate is not a known load.
    """
    if loads is None or loads.from_file or loads.window_end == state.window_end:
        return state
    if loads.window_end < state.window_end:
        # The clock was set back, and the refreshes after this one must count.
        return replace(state, window_end=loads.window_end)
    return HeatState(
        nodes=loads.nodes,
        index=loads.index,
        window_end=loads.window_end,
        resources={
            resource: _advance_heat(
                _align_heat(state, loads.nodes, resource), _averages(loads, resource), limit, settings
            )
            for resource, limit in settings.limits.items()
        },
    )


def _averages(loads: LoadSnapshot, resource: LoadResource) -> Floats:
    load = loads.resources.get(resource)
    return np.full(len(loads.nodes), np.nan) if load is None else load.measured(0, AVG)


def _align_heat(state: HeatState, nodes: tuple[str, ...], resource: LoadResource) -> ResourceHeat:
    """Return the heat for this list of nodes; a new node starts cold."""
    heat = state.resources.get(resource)
    if heat is None or not state.nodes:
        nothing = np.zeros(len(nodes), np.int64)
        return ResourceHeat(nothing, nothing, np.zeros(len(nodes), np.bool_))
    if nodes == state.nodes:
        return heat
    rows = np.fromiter((state.index.get(name, -1) for name in nodes), np.intp, len(nodes))
    is_old = rows >= 0
    return ResourceHeat(heat.rounds[rows] * is_old, heat.below[rows] * is_old, heat.is_hot[rows] & is_old)


def _advance_heat(heat: ResourceHeat, ratios: Floats, limit: float, settings: HotspotSettings) -> ResourceHeat:
    is_above = ratios > limit
    is_below = ratios <= limit  # Neither holds for NaN.
    rounds = np.where(is_above | (is_below & heat.is_hot), heat.rounds + 1, np.where(is_below, 0, heat.rounds))
    below = np.where(is_above, 0, np.where(is_below & heat.is_hot, heat.below + 1, heat.below))
    has_cooled = below >= settings.clear
    is_hot = (heat.is_hot | (is_above & (rounds >= settings.rounds))) & ~has_cooled
    return ResourceHeat(np.where(has_cooled, 0, rounds), np.where(has_cooled, 0, below), is_hot)
