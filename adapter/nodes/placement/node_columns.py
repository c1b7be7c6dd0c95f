"""Turns nodes, pods and loads into the columns that scores are computed from.

A builder keeps its results for each node, so that a change of some pods costs little in a cluster of thousands of
nodes: it compares the tuples of pods by identity, and recomputes only what differs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.pod_requests import CPU, MEMORY, PodResources, units_of
from adapter.nodes.model.columns import NodeColumns
from adapter.nodes.model.loads import AVG, STD, LoadResource, LoadSnapshot
from adapter.nodes.placement.gpus import MOST_GPUS, gpu_count, gpu_shapes
from adapter.nodes.placement.load_columns import forecast_column, rows_in_loads, statistics, usage_ratios, usage_sources
from adapter.nodes.placement.pod_sums import PODS, NodeSums, SumRules, sums_of
from adapter.nodes.placement.recently_bound_pods import LatelyBound, additions, lately_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.foundation.cluster.values.placed_pods import PlacedPods
    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
    from adapter.foundation.objects.quantities import Quantity
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.scheduling_settings import SchedulingSettings
    from adapter.nodes.model.workload import GpuPodKind

_ALWAYS: Final = (CPU, MEMORY, PODS)


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The columns that depend only on the Node objects."""

    source: tuple[ClusterNode, ...]
    names: tuple[str, ...]
    index: Mapping[str, int]
    capacity: Mapping[str, Floats]
    allocatable: Mapping[str, Floats]
    zone: NDArray[np.int32]
    pool: tuple[str, ...]
    gpus: tuple[int, ...]


@dataclass(slots=True)
class _Rows:
    """The columns that depend on the pods, as arrays that are updated in place and copied when columns are made."""

    pods: list[tuple[ClusterPod, ...]]
    lately: list[Floats]
    gpu_left: list[tuple[int, ...]]
    gpu_shapes: list[Counter[GpuPodKind]]
    requested: dict[str, Floats]
    non_zero: dict[str, Floats]
    limits: dict[str, Floats]
    bound: LatelyBound
    problems: dict[int, tuple[str, ...]] = field(default_factory=dict)


class ColumnsBuilder:
    """Builds the columns, reusing its earlier results. Not thread-safe; the columns that it returns are immutable."""

    def __init__(self, settings: SchedulingSettings, predict_cpu: Callable[[PodResources], float]) -> None:
        """`predict_cpu` returns the CPU in millicores that TargetLoadPacking expects of a pod."""
        self._pool_label = settings.pool_label
        self._always = (*_ALWAYS, *settings.gpu.resources)
        self._rules = SumRules(predict_cpu, settings.gpu.resources)
        self._nodes: _Nodes | None = None
        self._rows: _Rows | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of pods in the last columns, one sentence each."""
        rows = self._rows
        return tuple(problem for found in rows.problems.values() for problem in found) if rows else ()

    def build(
        self, nodes: tuple[ClusterNode, ...], pods: PlacedPods, loads: LoadSnapshot | None, now: float
    ) -> NodeColumns:
        """Return the columns at a time in Unix seconds.

        Rows are in the order of `nodes`, sorted by name. Without Node objects, the nodes are those with a load.
        """
        known, rows = self._current(nodes, loads, pods, now)
        places = rows_in_loads(known.names, loads)
        added = additions(rows.bound, loads, places, now)
        return NodeColumns(
            names=known.names,
            index=known.index,
            capacity=known.capacity,
            allocatable=known.allocatable,
            requested={name: column.copy() for name, column in rows.requested.items()},
            non_zero_requested={name: column.copy() for name, column in rows.non_zero.items()},
            limits={name: column.copy() for name, column in rows.limits.items()},
            mean_ratio=statistics(loads, places, AVG),
            measured_ratio=statistics(loads, places, AVG, are_measured=True),
            usage_ratio=usage_ratios(loads, places),
            measured_usage_ratio=usage_ratios(loads, places, are_measured=True),
            usage_from=usage_sources(loads, places),
            std_ratio=statistics(loads, places, STD),
            recent_cpu_prediction_milli=added.cpu_prediction_milli,
            recent_requests=added.requests,
            recent_limits=added.limits,
            recent_usage_requests=added.usage_requests,
            recent_usage_limits=added.usage_limits,
            zone=known.zone,
            pool=known.pool,
            gpu_left_milli=tuple(rows.gpu_left),
            gpu_workload=self._workload(rows, pods),
            forecast=forecast_column(loads, places),
        )

    def _workload(self, rows: _Rows, pods: PlacedPods) -> Mapping[GpuPodKind, float]:
        """Return the number of pods that request GPUs, by kind; pending pods are weighted."""
        bound: Counter[GpuPodKind] = Counter()
        for shapes in filter(None, rows.gpu_shapes):
            bound.update(shapes)
        pending = gpu_shapes(pods.pending, self._rules.gpu_resources)
        weight = min(1.0, bound.total() / pending.total()) if bound and pending else 1.0
        return {shape: bound[shape] + weight * pending[shape] for shape in bound | pending}

    def _current(
        self, nodes: tuple[ClusterNode, ...], loads: LoadSnapshot | None, pods: PlacedPods, now: float
    ) -> tuple[_Nodes, _Rows]:
        """Return the facts about nodes and pods, reused from the last time as far as possible."""
        before, rows = self._nodes, self._rows
        known = self._node_parts(nodes, loads)
        if rows is not None and before is not None and _same_rows(known, before):
            self._update(rows, known, pods, now)
        else:
            rows = self._all_rows(known, pods, now)
        self._nodes, self._rows = known, rows
        return known, rows

    def _node_parts(self, nodes: tuple[ClusterNode, ...], loads: LoadSnapshot | None) -> _Nodes:
        before = self._nodes
        if before is not None and before.source is nodes and (nodes or before.names == _names(loads)):
            return before
        names = tuple(node.name for node in nodes) if nodes else _names(loads)
        # Other resources that pods request have no column: anybody who may create pods can invent names of resources.
        columns = set(self._always).union(*(node.capacity for node in nodes), *(node.allocatable for node in nodes))
        return _Nodes(
            source=nodes,
            names=names,
            index={name: row for row, name in enumerate(names)},
            capacity=_amounts(columns, [node.capacity for node in nodes], len(names)),
            allocatable=_amounts(columns, [node.allocatable for node in nodes], len(names)),
            zone=zone_numbers([zone_key(node.labels) for node in nodes] or [""] * len(names)),
            pool=tuple(node.labels.get(self._pool_label, "") for node in nodes) or ("",) * len(names),
            gpus=tuple(self._gpus(node) for node in nodes) or (0,) * len(names),
        )

    def _gpus(self, node: ClusterNode) -> int:
        # Allocatable, since it excludes devices that are not healthy.
        amounts = {name: units_of(name, amount) for name, amount in node.allocatable.items()}
        return min(gpu_count(amounts, self._rules.gpu_resources), MOST_GPUS)

    def _all_rows(self, known: _Nodes, pods: PlacedPods, now: float) -> _Rows:
        held = _pods_by_node(known, pods)
        sums = [sums_of(each, gpus, self._rules, now) for each, gpus in zip(held, known.gpus, strict=True)]
        size = len(known.names)
        lately = [each.bound_lately for each in sums]
        shapes: list[Counter[GpuPodKind]] = [Counter()] * size
        rows = _Rows(held, lately, [()] * size, shapes, {}, {}, {}, lately_bound(lately))
        rows.requested.update({name: np.zeros(size) for name in known.allocatable})
        for name in (CPU, MEMORY):
            rows.non_zero[name] = np.zeros(size)
            rows.limits[name] = np.zeros(size)
        for row, each in enumerate(sums):
            _write(rows, row, each)
        return rows

    def _update(self, rows: _Rows, known: _Nodes, pods: PlacedPods, now: float) -> None:
        """Compute the sums of the nodes whose pods have changed."""
        held = _pods_by_node(known, pods)
        changed = [row for row, (new, old) in enumerate(zip(held, rows.pods, strict=True)) if new is not old]
        for row in changed:
            _write(rows, row, sums_of(held[row], known.gpus[row], self._rules, now))
        if changed:
            rows.pods = held
            rows.bound = lately_bound(rows.lately)


def requested_ratio(columns: NodeColumns, gpu_resources: Iterable[str]) -> dict[LoadResource, Floats]:
    """Return the requests of each node as shares of its capacity; NaN without capacity, and for network and disk."""
    gpus = tuple(gpu_resources)
    zeros = np.zeros(len(columns.names))

    def ratio(resources: Sequence[str]) -> Floats:
        asked = sum((columns.requested.get(name, zeros) for name in resources), zeros)
        has = sum((columns.capacity.get(name, zeros) for name in resources), zeros)
        return np.divide(asked, has, out=np.full_like(zeros, np.nan), where=has > 0.0)

    by = {LoadResource.CPU: (CPU,), LoadResource.MEMORY: (MEMORY,), LoadResource.GPU: gpus}
    return {resource: ratio(by.get(resource, ())) for resource in LoadResource}


def _pods_by_node(known: _Nodes, pods: PlacedPods) -> list[tuple[ClusterPod, ...]]:
    return list(map(pods.by_node.get, known.names, repeat(())))


def _write(rows: _Rows, row: int, sums: NodeSums) -> None:
    rows.lately[row], rows.gpu_left[row] = sums.bound_lately, sums.gpu_left_milli
    rows.gpu_shapes[row] = sums.gpu_shapes
    for columns, amounts in (
        (rows.requested, sums.requested),
        (rows.non_zero, sums.non_zero_requested),
        (rows.limits, sums.limits),
    ):
        for name, column in columns.items():
            column[row] = amounts.get(name, 0)
    if sums.problems:
        rows.problems[row] = sums.problems
    else:
        rows.problems.pop(row, None)


def _same_rows(nodes: _Nodes, others: _Nodes) -> bool:
    """Return whether the sums over pods are calculated in the same way for both sets of nodes."""
    return nodes is others or (
        nodes.names == others.names
        and nodes.gpus == others.gpus
        and nodes.allocatable.keys() == others.allocatable.keys()
    )


def _names(loads: LoadSnapshot | None) -> tuple[str, ...]:
    return loads.nodes if loads else ()


def _amounts(columns: Iterable[str], nodes: Sequence[Mapping[str, Quantity]], size: int) -> dict[str, Floats]:
    found = {name: np.zeros(size) for name in columns}
    for row, amounts in enumerate(nodes):
        for name, amount in amounts.items():
            found[name][row] = units_of(name, amount)
    return found


NO_ZONE: Final = -1

_REGIONS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_key(labels: Mapping[str, str]) -> str:
    """Return region and zone together, since zones of different regions may share a name; empty without both.

    It is the key of kube-scheduler's SelectorSpread (`component-helpers/node/topology`, `GetZoneKey`).
    As in the scheduler, the older label of each wins if it is present.
    """
    region, zone = _first(labels, _REGIONS), _first(labels, _ZONES)
    return f"{region}:\x00:{zone}" if region or zone else ""


def zone_numbers(keys: Iterable[str]) -> NDArray[np.int32]:
    """Return a number for each key, by the order in which keys first appear; `NO_ZONE` for an empty key."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) if key else NO_ZONE for key in keys], dtype=np.int32)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if key in labels), "")
