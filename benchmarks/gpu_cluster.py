"""A cluster of GPUs in which pods arrive one after another and are placed by a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.gpu_lists import WHOLE_MILLI
from benchmarks.gpu_policies import Placements

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from benchmarks.gpu_choices import Kinds
    from benchmarks.gpu_lists import Arrival, GpuNode
    from benchmarks.gpu_policies import Policy

UNTIL_PERCENT: Final = 130
"""The percentage of the cluster's GPUs that the pods have requested together at the end."""
_NO_PLACE: Final = -np.inf


class ClusterError(Exception):
    """The simulation is wrong: its figures must not be used."""


def allocated_percent(
    nodes: Sequence[GpuNode], arrivals: Sequence[Arrival], policy: Policy, kinds: Kinds, random: Random
) -> list[float]:
    """Return the allocated percentage of the GPUs when the pods have requested 0, 1, 2, ... percent of them.

    A pod that fits nowhere is dropped. Raises ClusterError if the nodes do not hold what was allocated.
    """
    cluster = GpuCluster(nodes, policy, kinds, random)
    total = WHOLE_MILLI * sum(node.gpus for node in nodes)
    requested = allocated = 0
    curve = [0.0]
    for pod in arrivals:
        requested += pod.gpus_milli
        if cluster.place(pod):
            allocated += pod.gpus_milli
        while len(curve) <= UNTIL_PERCENT and 100 * requested >= len(curve) * total:
            curve.append(100.0 * allocated / total)
    if cluster.left_milli() + allocated != total:
        raise ClusterError(f"{cluster.left_milli()} of {total} are left, though {allocated} are allocated")
    return curve


class GpuCluster:
    """The points of every kind of pod on every node; after a placement, those of the pod's node are computed again."""

    def __init__(self, nodes: Sequence[GpuNode], policy: Policy, kinds: Kinds, random: Random) -> None:
        self._policy, self._kinds, self._random = policy, kinds, random
        self._cpu_milli = [node.cpu_milli for node in nodes]
        self._memory_mib = np.array([node.memory_mib for node in nodes], dtype=np.int64)
        self._states = [(WHOLE_MILLI,) * node.gpus for node in nodes]
        self._points = np.full((len(kinds.shapes), len(nodes)), _NO_PLACE)
        self._options = np.zeros((len(kinds.shapes), len(nodes)), dtype=np.intp)
        self._score_all()

    def left_milli(self) -> int:
        """Return how much is left of all GPUs together. Raises ClusterError if a node holds more than it has."""
        least = min(self._cpu_milli), int(self._memory_mib.min()), min(min(state, default=0) for state in self._states)
        if min(least) < 0:
            raise ClusterError(f"a node holds more than it has: {least} are left of CPU, memory and a GPU")
        return sum(map(sum, self._states))

    def place(self, pod: Arrival) -> bool:
        """Place a pod on the best node that has room; return whether there is one."""
        if self._policy.saw(pod.shape):
            self._score_all()
        kind = self._kinds.place[pod.shape]
        points = np.where(self._memory_mib >= pod.memory_mib, self._points[kind], _NO_PLACE)
        node = int(points.argmax())
        if points[node] == _NO_PLACE:
            return False
        if self._policy.is_random:
            node = self._random.choice(np.flatnonzero(points == points[node]).tolist())
        self._states[node] = self._kinds.choices(self._states[node]).left[self._options[kind, node]]
        self._cpu_milli[node] -= pod.shape.cpu_milli
        self._memory_mib[node] -= pod.memory_mib
        self._score(node)
        return True

    def _score_all(self) -> None:
        """Compute the points of all nodes, and those of equal nodes only once."""
        known: dict[object, int] = {}
        for node, place in enumerate(zip(self._states, self._cpu_milli, strict=True)):
            same = known.setdefault(place, node)
            if same == node:
                self._score(node)
            else:
                self._points[:, node], self._options[:, node] = self._points[:, same], self._options[:, same]

    def _score(self, node: int) -> None:
        choices, cpu_milli = self._kinds.choices(self._states[node]), self._cpu_milli[node]
        self._points[:, node] = _NO_PLACE
        if not len(choices.kind):
            return
        cpu_after = cpu_milli - self._kinds.cpu_milli[choices.kind]
        gpus_after = choices.left_milli.sum(axis=1)[choices.option]
        points = self._policy.points(Placements(choices, cpu_milli, cpu_after, gpus_after))
        points = np.where(cpu_after >= 0, points, _NO_PLACE)
        best = np.maximum.reduceat(points, choices.first)
        kinds = choices.kind[choices.first]
        self._points[kinds, node] = best
        rows = np.flatnonzero(points == best[np.searchsorted(kinds, choices.kind)])
        if self._policy.is_random:
            rows = np.array(self._random.sample(rows.tolist(), len(rows)))
        # The first of equal rows is written last.
        self._options[choices.kind[rows[::-1]], node] = choices.option[rows[::-1]]
