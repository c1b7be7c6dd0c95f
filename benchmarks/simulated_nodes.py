"""Nodes with a daily season and batch pods, in virtual time: the load that follows from the placement of the pods.

There are twelve nodes with 8 cores. Four are busy by day, four by night, and four steadily; their base load stays, with
the noise of real load and with days that differ. In addition, batch pods arrive, most of them between midnight and
noon, which run for two to eight hours. In the week before, as many pods were placed on random nodes, whatever the
policy. Everything follows from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod
from adapter.foundation.objects.pod_requests import ContainerSpec, PodSpecResources, pod_resources
from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.day import SLOT_SECONDS, SLOTS, LoadDay
from adapter.nodes.model.loads import SAMPLE_WINDOWS_SECONDS, STATS, LoadResource, LoadSnapshot, ResourceLoad
from adapter.nodes.model.nodes_snapshot import NodesSnapshot
from adapter.nodes.model.samples import SampleGrid
from adapter.nodes.model.scheduling_settings import SchedulingSettings, TargetLoadPackingArgs
from adapter.nodes.model.week import WEEK_DAYS, Backtest, LoadWeek
from adapter.nodes.placement.node_columns import ColumnsBuilder
from adapter.nodes.scores.loads.target_load_packing import predicted_cpu_milli
from adapter.nodes.windows.day import day_after, with_day
from adapter.nodes.windows.next_hour_forecast import backtest, forecast
from adapter.nodes.windows.statistics import statistics_of
from adapter.nodes.windows.week import week_at
from adapter.nodes.windows.week import with_day as week_with_day

if TYPE_CHECKING:
    from adapter.foundation.objects.pod_requests import PodResources
    from adapter.nodes.model.arrays import Floats

NODES: Final = tuple(f"batch-{number:02d}" for number in range(12))
CORES_MILLI: Final = 8000
START: Final = 1_700_006_400
"""Unix seconds of the midnight at which the week begins."""
HISTORY: Final = WEEK_DAYS * SLOTS
OVER: Final = 0.8


@dataclass(frozen=True, slots=True)
class BatchPod:
    """A batch pod."""

    name: str
    starts: int
    """The slot of five minutes, counted from the beginning of the week, at whose beginning the pod arrives."""
    ends: int
    request_milli: int
    used_milli: float

    @property
    def resources(self) -> PodResources:
        """The pod's requests."""
        return pod_resources(PodSpecResources((ContainerSpec("main", {"cpu": f"{self.request_milli}m"}),)))


@dataclass(slots=True)
class SimulatedNodes:
    """The nodes, their loads, and what `nodes` would know of them at each slot."""

    base: Floats
    """Ratios of shape (nodes, slots of the week and of one more day): the load without the batch pods."""
    arrivals: tuple[BatchPod, ...]
    """The pods of the last day, in the order in which they arrive."""
    load: Floats = field(init=False)
    """The same ratios with the pods that have been placed; they may exceed 1."""
    _placed: list[tuple[BatchPod, str]] = field(default_factory=list)
    _day: LoadDay = field(default_factory=LoadDay)
    _week: LoadWeek = field(default_factory=LoadWeek)
    _backtest: Backtest = field(default_factory=Backtest)
    _builder: ColumnsBuilder = field(init=False)
    _nodes: tuple[ClusterNode, ...] = field(default_factory=lambda: tuple(map(_node, NODES)))

    def __post_init__(self) -> None:
        args = TargetLoadPackingArgs()
        self._builder = ColumnsBuilder(SchedulingSettings(), lambda resources: predicted_cpu_milli(resources, args))
        self.load = self.base.copy()

    def place(self, pod: BatchPod, node: str) -> None:
        """Let a pod run on a node from the pod's beginning to its end."""
        self.load[NODES.index(node), pod.starts : pod.ends] += pod.used_milli / CORES_MILLI
        self._placed.append((pod, node))

    def ended(self, slot: int) -> list[BatchPod]:
        """Return the pods that end at the beginning of a slot."""
        return [pod for pod, _ in self._placed if pod.ends == slot]

    def advance(self, slot: int) -> None:
        """Measure the load before the beginning of a slot."""
        now = _time(slot)
        measured = np.clip(self.load[:, max(0, slot - SLOTS) : slot], 0.0, 1.0)
        self._day = day_after(self._day, [_grid(measured, now)], now, NODES)
        before = self._week
        self._week = week_with_day(week_at(before, now, NODES), self._day)
        if self._week is not before:
            self._backtest = backtest(self._week, UNPACED)

    def snapshot(self, slot: int) -> NodesSnapshot:
        """Return the snapshot with everything that is known at the beginning of a slot."""
        now = _time(slot)
        measured = np.clip(self.load[:, slot - 3 : slot], 0.0, 1.0)
        loads = with_day(_snapshot(measured, now), self._day)
        loads = replace(loads, forecast=forecast(loads, self._week, self._backtest, now))
        pods = pods_by_place(_bound(pod, node) for pod, node in self._placed if pod.starts <= slot < pod.ends)
        return NodesSnapshot(self._builder.build(self._nodes, pods, loads, now), loads, "metrics", self._nodes)


def simulated_nodes(seed: int, pods: int) -> SimulatedNodes:
    """Return the nodes of a seed, after a week of history; `pods` is the number of pods that arrive each day."""
    random = np.random.default_rng(seed)
    slots = HISTORY + SLOTS
    hours = (np.arange(slots) % SLOTS) * SLOT_SECONDS / 3600.0
    by_day = 0.15 + 0.5 * _between(hours, 8.0, 18.0)
    by_night = 0.15 + 0.45 * (1.0 - _between(hours, 5.0, 20.0))
    shapes = (by_day, by_night, np.full(slots, 0.3))
    base = np.empty((len(NODES), slots))
    for row in range(len(NODES)):
        each_day = np.repeat(random.uniform(0.85, 1.15, WEEK_DAYS + 1), SLOTS)
        noise = np.empty(slots)
        noise[0] = 0.0
        for slot, shock in enumerate(0.01 * random.standard_normal(slots - 1)):
            noise[slot + 1] = 0.9 * noise[slot] + shock
        base[row] = shapes[row % len(shapes)] * each_day + noise
    nodes = SimulatedNodes(np.clip(base, 0.01, 1.0), tuple(_batch_pods(random, WEEK_DAYS, pods)))
    for day in range(WEEK_DAYS):
        for pod in _batch_pods(random, day, pods):
            nodes.place(pod, NODES[random.integers(len(NODES))])
        nodes.advance((day + 1) * SLOTS)
    return nodes


def minutes_over(nodes: SimulatedNodes) -> int:
    """Return for how many minutes the nodes were over 80% of their CPU on the last day, as the sum over all nodes."""
    return int(np.count_nonzero(nodes.load[:, HISTORY:] > OVER)) * SLOT_SECONDS // 60


def _batch_pods(random: np.random.Generator, day: int, pods: int) -> list[BatchPod]:
    starts = np.sort(random.beta(2.0, 2.0, pods) * SLOTS / 2).astype(int) + day * SLOTS
    lasts = random.uniform(2.0, 8.0, pods) * 3600 / SLOT_SECONDS
    requests = random.choice([250, 500, 750], pods)
    used = requests * random.uniform(0.8, 1.4, pods)
    return [
        BatchPod(f"batch-{day}-{number:03d}", int(start), int(start + last), int(request), float(use))
        for number, (start, last, request, use) in enumerate(zip(starts, lasts, requests, used, strict=True))
    ]


def _between(hours: Floats, first: float, last: float) -> Floats:
    """Return 1 between two hours and 0 outside, with an hour of rise and fall."""
    found: Floats = np.clip(np.minimum(hours - first, last - hours), 0.0, 1.0)
    return found


def _time(slot: int) -> float:
    return float(START + slot * SLOT_SECONDS)


def _grid(means: Floats, end: float) -> SampleGrid:
    unknown = np.full(len(means), np.nan)
    return SampleGrid(LoadResource.CPU, SLOT_SECONDS, int(end), NODES, means, unknown, unknown, unknown, unknown)


def _snapshot(last: Floats, now: float) -> LoadSnapshot:
    """Return the windows that end now, from the load of five-minute slots."""
    windows = [statistics_of(last[:, -(seconds // SLOT_SECONDS) :]) for seconds in SAMPLE_WINDOWS_SECONDS]
    count = len(NODES)
    own = np.repeat(np.arange(len(windows), dtype=np.int8)[:, None], count, axis=1)
    fresh = np.zeros(count, dtype=np.int8)
    load = ResourceLoad(
        LoadResource.CPU,
        np.stack(windows).reshape(len(windows), len(STATS), count),
        own,
        fresh,
        np.full(count, now),
        fresh.astype(np.bool_),
        np.full(count, 15.0),
    )
    index = {name: row for row, name in enumerate(NODES)}
    return LoadSnapshot(NODES, {LoadResource.CPU: load}, now, now, index=index)


def _node(name: str) -> ClusterNode:
    has = {"cpu": parse_quantity(f"{CORES_MILLI}m"), "memory": parse_quantity("64Gi"), "pods": parse_quantity("110")}
    return ClusterNode(
        name=name,
        labels={},
        taints=(),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=None,
        capacity=has,
        allocatable=has,
    )


def _bound(pod: BatchPod, node: str) -> ClusterPod:
    return ClusterPod(
        namespace="batch",
        name=pod.name,
        uid=pod.name,
        node=node,
        labels={},
        controller=None,
        phase="Running",
        is_terminating=False,
        bound_at=_time(pod.starts),
        ended_at=None,
        priority=0,
        resources=pod.resources,
    )
