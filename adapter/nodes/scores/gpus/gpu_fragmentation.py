"""gpu-fragmentation: a pod is placed where the remaining GPUs are the most useful to later pods.

The pods that the cluster has now stand for later ones. Nodes are ordered by points (`PointsTable`), and those with
equal points by the CPU and GPUs that the pod would leave. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.reports.counts import count_of
from adapter.nodes.scores.gpus.gpu_fragments import FragmentTable, as_array, gradient_points, mix_of, placements
from adapter.nodes.scores.gpus.gpu_value import value_by_free_milli, values_of_gpus
from adapter.nodes.scores.gpus.levels import level_scores
from adapter.nodes.scores.policy_scores import MIDDLE_SCORE, PolicyScores, column_of_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import GpuFragmentationArgs
    from adapter.nodes.model.workload import GpuPodKind
    from adapter.nodes.scores.gpus.gpu_fragments import GpuState, Integers
    from adapter.nodes.scores.policy_scores import Rows


_CPU: Final = "cpu"
_MOST_CPU_MILLI: Final = 1e12
"""Larger amounts are capped to this one, since a pod may request anything."""
_LIKE_A_GPU: Final = re.compile(r"/.*gpu|gpu.*/|/mig-", re.IGNORECASE)
"""Names of resources that may be GPUs or, such as `nvidia.com/mig-1g.5gb`, parts of them."""
_NO_ROOM: Final = -np.inf
_STATES_AT_ONCE: Final = 500
"""How many states of GPUs are examined together, which limits the memory of a request if all nodes differ."""


_POINTS_OF_A_GPU: Final = 100.0
_STEP_POINTS: Final = 2.0
"""Gradients are rounded down to multiples of this: more placements are equal, so nodes are filled one by one."""
_RARITY: Final = 0.7
"""Counts of kinds are raised to this power, so that rare kinds weigh more: they are uncertain, and often the
largest."""


class Workload:
    """The expected pods, which resemble those seen so far."""

    def __init__(self, seen: Mapping[GpuPodKind, float]) -> None:
        """`seen` counts the pods that request GPUs, by kind. Other pods would add the same amount to all fragments."""
        self.mix = mix_of({shape: count**_RARITY for shape, count in seen.items()})
        self.value_by_free_milli = value_by_free_milli(self.mix)


class PointsTable:
    """The points of placements that change one state of GPUs into another.

    Fragmentation gradient descent counts what no pod can use now. It does not see that a share of a GPU may leave a
    piece that no later pod will fill; the value of the free part of a GPU shows that. Losing the value of a whole GPU,
    beyond the value of the pod itself, counts as much as the whole range of the gradient. Of placements with equal
    points, the one that leaves the least CPU and GPUs on the node is the best.
    """

    def __init__(self, left_milli: Integers, workload: Workload) -> None:
        """`left_milli` is what is left of each GPU (states, GPUs); 0 stands for a GPU that a node lacks."""
        self.fragments = FragmentTable(left_milli, workload.mix)
        self._values_of_gpus = values_of_gpus(left_milli, workload.value_by_free_milli)

    def points(
        self, before: NDArray[np.intp], cpu_before: Integers, after: NDArray[np.intp], cpu_after: Integers
    ) -> Floats:
        """Return the points of placements from `before` to `after` (rows of the table); free CPU in millicores."""
        gradient = gradient_points(
            self.fragments.fragments_milli(before, cpu_before), self.fragments.fragments_milli(after, cpu_after)
        )
        steps = np.floor(gradient / _STEP_POINTS) * _STEP_POINTS
        lost_gpus = self._values_of_gpus[before] - self._values_of_gpus[after]
        # Rounded, so that placements which are equally good are exactly equal.
        return np.asarray(np.round(steps - _POINTS_OF_A_GPU * lost_gpus, 3))


def left_over(cpu_after: Integers, gpus_after_milli: Integers, most_cpu: float, most_gpus_milli: float) -> Floats:
    """Return a number from 0 to 1 for the CPU and GPUs that placements leave free, relative to the largest node."""
    cpu, gpus = cpu_after / max(1.0, most_cpu), gpus_after_milli / max(1.0, most_gpus_milli)
    return np.asarray((np.clip(cpu, 0.0, 1.0) + np.clip(gpus, 0.0, 1.0)) / 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The free amounts of the nodes of a request."""

    states: tuple[GpuState, ...]
    """The free share of each GPU of a node, in ascending order, for each node."""
    cpu_before: Integers
    cpu_after: Integers


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The best placement on each node."""

    points: Floats
    """The points; -inf where the node lacks the GPUs."""
    fragments_before: Floats
    fragments_after: Floats


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, _args: GpuFragmentationArgs) -> PolicyScores:
    """Return scores by the points of the pod's best placement on each node; 0 for a node without the GPUs.

    A pod without GPUs is scored too, since it takes CPU that pods with GPUs may need. If it requests devices of an
    unknown kind, it gets the same score everywhere.
    """
    unknown = _unknown_device(pod)
    if unknown:
        return PolicyScores(
            np.full(len(rows), MIDDLE_SCORE),
            lambda _: f"the pod requests {unknown}: nothing shows which of these devices are left",
        )
    nodes = _nodes(pod, columns, rows)
    found = _best_placements(pod, nodes, _workload(tuple(sorted(columns.gpu_workload.items()))))
    order = {
        points: place for place, points in enumerate(sorted(set(found.points.tolist()) - {_NO_ROOM}, reverse=True))
    }
    levels = np.array([order.get(points, -1) for points in found.points.tolist()], dtype=np.int64)
    most_gpus = max((sum(state) for state in nodes.states), default=0)
    # A pod may request any number: if it exceeds what the largest node has left, there is no place to compare.
    wanted = min(pod.gpu_count * pod.gpu_milli, most_gpus)
    gpus_after = np.array([sum(state) for state in nodes.states], dtype=np.int64) - wanted
    rest = left_over(nodes.cpu_after, gpus_after, float(nodes.cpu_before.max(initial=0)), most_gpus)

    def reason(position: int) -> str:
        if found.points[position] == _NO_ROOM:
            return f"the node has no room for {count_of(pod.gpu_count, 'GPU')} with {pod.gpu_milli} of 1000"
        before, after = found.fragments_before[position] / 1000, found.fragments_after[position] / 1000
        return f"fragments of GPUs that the cluster's pods cannot use: {before:.2f} before, {after:.2f} with the pod"

    return PolicyScores(level_scores(levels, len(order), 1.0 - rest), reason)


def _unknown_device(pod: PendingPod) -> str:
    """Return a requested resource that may be a GPU but does not count as one; empty if there is none."""
    if pod.gpu_count:
        return ""
    if pod.has_resource_claims:
        return "devices by ResourceClaims"
    asked = sorted(name for name, amount in pod.resources.requests.items() if amount)
    return next((name for name in asked if _LIKE_A_GPU.search(name)), "")


def _nodes(pod: PendingPod, columns: NodeColumns, rows: Rows) -> _Nodes:
    left = column_of_rows(columns.allocatable, _CPU, rows) - column_of_rows(columns.requested, _CPU, rows)
    before = np.clip(left, 0.0, _MOST_CPU_MILLI).astype(np.int64)
    wanted = min(pod.resources.requests.get(_CPU, 0), int(_MOST_CPU_MILLI))
    states = tuple(tuple(sorted(columns.gpu_left_milli[row])) for row in rows.tolist())
    return _Nodes(states, before, np.maximum(before - wanted, 0))


def _best_placements(pod: PendingPod, nodes: _Nodes, workload: Workload) -> _Found:
    """Return the best placement of the pod on each node. Nodes with equal remaining GPUs share the work."""
    size = len(nodes.states)
    found = _Found(np.full(size, _NO_ROOM), np.zeros(size), np.zeros(size))
    alike: dict[GpuState, list[int]] = {}
    for position, state in enumerate(nodes.states):
        alike.setdefault(state, []).append(position)
    states = list(alike.items())
    for first in range(0, size, _STATES_AT_ONCE):
        _write_best(pod, nodes, states[first : first + _STATES_AT_ONCE], workload, found)
    return found


def _write_best(
    pod: PendingPod, nodes: _Nodes, alike: Sequence[tuple[GpuState, list[int]]], workload: Workload, found: _Found
) -> None:
    """Write the points and fragments of the best placement on each node in these GPU states to `found`."""
    states: list[GpuState] = []
    rows: list[tuple[int, int, int]] = []
    for state, positions in alike:
        present = len(states)
        states += (state, *placements(state, pod.gpu_count, pod.gpu_milli))
        rows += [(position, present, option) for option in range(present + 1, len(states)) for position in positions]
    if not rows:
        return
    table = PointsTable(as_array(states), workload)
    node, before, after = np.array(rows, dtype=np.intp).T
    points = table.points(before, nodes.cpu_before[node], after, nodes.cpu_after[node])
    np.maximum.at(found.points, node, points)
    # Of equal placements the first one counts, so it is written last.
    best = np.flatnonzero(points == found.points[node])[::-1]
    at = node[best]
    found.fragments_before[at] = table.fragments.fragments_milli(before[best], nodes.cpu_before[at])
    found.fragments_after[at] = table.fragments.fragments_milli(after[best], nodes.cpu_after[at])


@lru_cache(maxsize=4)
def _workload(seen: tuple[tuple[GpuPodKind, float], ...]) -> Workload:
    """Return the workload of the current columns, which all requests share until a pod changes."""
    return Workload(dict(seen))
