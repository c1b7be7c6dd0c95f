"""Determines which nodes are hot at this moment, and why (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.reports.counts import agreeing
from adapter.nodes.model.loads import AVG, WINDOW_NAMES, LoadResource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.hotspots.hot_nodes import HeatState
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from adapter.nodes.model.scheduling_settings import HotspotSettings

_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
_MOST_PODS_RATIO: Final = 0.9


@dataclass(frozen=True, slots=True)
class HotNode:
    """A node from which pods should move."""

    name: str
    reasons: tuple[str, ...]
    utilization: Mapping[LoadResource, float]
    """Average ratios over 15 minutes, for all known resources."""
    estimated: tuple[LoadResource, ...]
    """The resources among these whose ratios are estimated from requests."""
    rounds: int
    """Refreshes since the node rose above its limit; 0 if utilisation is not among the reasons."""
    excess: Mapping[str, float]
    """The load that must leave the node to bring it to its limits: millicores (`cpu`) and bytes (`memory`)."""


def hot_nodes(snapshot: NodesSnapshot, heat: HeatState, settings: HotspotSettings) -> tuple[HotNode, ...]:
    """Return the hot nodes by name. Utilisation counts after several refreshes; conditions and pod counts, at once."""
    names = snapshot.columns.names or (snapshot.loads.nodes if snapshot.loads else ())
    conditions = {node.name: node for node in snapshot.nodes}
    heated = {heat.nodes[row] for each in heat.resources.values() for row in np.flatnonzero(each.is_hot).tolist()}
    found = []
    for name in names:
        over = tuple(_over(snapshot, heat, settings, name)) if name in heated else ()
        reasons = [text for _, text, _ in over]
        reasons += _conditions(conditions[name]) if name in conditions else []
        reasons += _pods(snapshot, name)
        if reasons:
            utilization, estimated = _utilization(snapshot, name)
            rounds = max((rounds for _, _, rounds in over), default=0)
            excess = _excess(snapshot, name, utilization, settings, [resource for resource, _, _ in over])
            found.append(HotNode(name, tuple(reasons), utilization, estimated, rounds, excess))
    return tuple(found)


def _over(
    snapshot: NodesSnapshot, heat: HeatState, settings: HotspotSettings, name: str
) -> Iterator[tuple[LoadResource, str, int]]:
    """Yield each resource by which the node is hot, with the reason and the number of rounds.

    A node whose load is not known now, or only estimated, is left out: nobody should act on a former or possible load.
    """
    place = heat.index.get(name)
    row = snapshot.loads.index.get(name) if snapshot.loads else None
    if snapshot.loads is None or row is None or place is None:
        return
    for resource, limit in settings.limits.items():
        heated, load = heat.resources.get(resource), snapshot.loads.resources.get(resource)
        if heated is None or load is None or not heated.is_hot[place]:
            continue
        ratio, rounds = float(load.stats[0, AVG, row]), int(heated.rounds[place])
        if math.isnan(ratio) or load.is_estimated[row]:
            continue
        window = WINDOW_NAMES[max(0, int(load.taken_from[0, row]))]
        side = "over" if ratio > limit else "not yet long enough below"
        text = f"{resource} {window} average {ratio * 100:.0f}% {side} the limit {limit * 100:.0f}%"
        yield resource, f"{text} for {rounds} {agreeing(rounds, 'refresh', 'refreshes')}", rounds


def _conditions(node: ClusterNode) -> list[str]:
    ready = node.conditions.get("Ready", "True")
    texts = [] if ready == "True" else [f"the node is not ready (condition Ready is {ready})"]
    return texts + [f"the kubelet reports {name}" for name in _PRESSURES if node.conditions.get(name) == "True"]


def _pods(snapshot: NodesSnapshot, name: str) -> list[str]:
    row, most = snapshot.columns.index.get(name), snapshot.columns.allocatable.get("pods")
    count = len(snapshot.pods_by_node.get(name, ()))
    if row is None or most is None or not most[row] > 0 or count <= _MOST_PODS_RATIO * most[row]:
        return []
    return [f"{count} of at most {most[row]:.0f} pods, over 90%"]


def _utilization(snapshot: NodesSnapshot, name: str) -> tuple[Mapping[LoadResource, float], tuple[LoadResource, ...]]:
    if snapshot.loads is None or (row := snapshot.loads.index.get(name)) is None:
        return {}, ()
    loads = snapshot.loads.resources
    known = {resource: float(load.stats[0, AVG, row]) for resource, load in loads.items()}
    known = {resource: ratio for resource, ratio in known.items() if not math.isnan(ratio)}
    return known, tuple(resource for resource in known if loads[resource].is_estimated[row])


def _excess(
    snapshot: NodesSnapshot,
    name: str,
    utilization: Mapping[LoadResource, float],
    settings: HotspotSettings,
    over: list[LoadResource],
) -> Mapping[str, float]:
    """Return by how much CPU and memory are over their limits, the largest share first."""
    row = snapshot.columns.index.get(name)
    shares = {resource: utilization[resource] - settings.limits[resource] for resource in over}
    excess = {}
    for resource in sorted(shares, key=lambda resource: -shares[resource]):
        capacity = snapshot.columns.capacity.get(resource.value)
        is_asked_for = resource in (LoadResource.CPU, LoadResource.MEMORY)
        if is_asked_for and row is not None and capacity is not None and shares[resource] > 0 and capacity[row] > 0:
            excess[resource.value] = shares[resource] * float(capacity[row])
    return excess
