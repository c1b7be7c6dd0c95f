"""The policies that are compared: each rates the placements on a node, and more points are better."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from adapter.nodes.scores.gpus.gpu_fragmentation import PointsTable, Workload, left_over
from adapter.nodes.scores.gpus.gpu_fragments import FragmentTable, gradient_points, mix_of
from benchmarks.gpu_lists import WHOLE_MILLI

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.workload import GpuPodKind
    from adapter.nodes.scores.gpus.gpu_fragments import GpuState, Integers
    from benchmarks.gpu_choices import Choices
    from benchmarks.gpu_lists import Arrival, GpuNode

PUBLISHED_COVERAGE: Final = 0.95
"""The share of all pods that counts as typical in the published experiments."""
_FIRST_UPDATE: Final = 20
_UPDATE_GROWTH: Final = 1.1
"""The learned mix is updated when a tenth more pods have been seen."""
_TIE_WEIGHT: Final = 0.0005
"""The weight of the tie-breaker among equal points, which is too small to change the order of unequal ones."""


class Largest(NamedTuple):
    """The largest node of the cluster in each resource."""

    cpu_milli: int
    gpus_milli: int


class Placements(NamedTuple):
    """The placements on one node: a row for each kind of pod and each state of the GPUs that it may leave."""

    choices: Choices
    cpu_milli: int
    """The free CPU of the node."""
    cpu_after_milli: Integers
    """The CPU that each row leaves free; negative if the CPU does not suffice."""
    gpus_after_milli: Integers
    """The free part of all GPUs together after the placement of each row."""


class Policy(Protocol):
    """The way in which a scheduler rates placements."""

    is_random: bool
    """Whether one of several nodes with the same points is drawn at random; otherwise the first one is taken."""

    def saw(self, shape: GpuPodKind) -> bool:
        """Record a pod that has arrived; return whether all points must be computed again."""

    def points(self, found: Placements) -> Floats:
        """Return the points of each row."""


class Fixed:
    """A policy whose points depend on the node alone."""

    def __init__(self, points: Callable[[Placements], Floats], *, is_random: bool = False) -> None:
        self.points = points
        self.is_random = is_random

    def saw(self, _shape: GpuPodKind) -> bool:
        """Record nothing."""
        return False


class GradientDescent(Fixed):
    """Fragmentation gradient descent as published: typical pods of the whole list, integers, the first of equal nodes.

    Its integers make many nodes equal, and taking the first of them fills the nodes one after another.
    """

    def __init__(self, pods: Sequence[Arrival]) -> None:
        super().__init__(self._points)
        self._mix = mix_of(Counter(pod.shape for pod in pods), PUBLISHED_COVERAGE)
        self._tables: dict[GpuState, FragmentTable] = {}

    def _points(self, found: Placements) -> Floats:
        choices = found.choices
        table = self._tables.get(choices.state)
        if table is None:
            table = self._tables[choices.state] = FragmentTable(choices.left_milli, self._mix)
        before = table.fragments_milli(_present(choices), np.array([found.cpu_milli]))
        return gradient_points(before, table.fragments_milli(choices.option, found.cpu_after_milli))


class Learning:
    """`gpu-fragmentation`: the points of the product, with the mix of the pods seen so far."""

    is_random = False

    def __init__(self, largest: Largest) -> None:
        self._largest = largest
        self._seen: Counter[GpuPodKind] = Counter()
        self._next = _FIRST_UPDATE
        self._workload = Workload({})
        self._tables: dict[GpuState, PointsTable] = {}

    def saw(self, shape: GpuPodKind) -> bool:
        """Count a pod that requests GPUs, as the product does."""
        if shape.gpu_count:
            self._seen[shape] += 1
        if self._seen.total() < self._next:
            return False
        self._next = int(_UPDATE_GROWTH * self._next) + 1
        self._workload, self._tables = Workload(self._seen), {}
        return True

    def points(self, found: Placements) -> Floats:
        """Return the points of the product, minus the tie-breaker."""
        choices = found.choices
        table = self._tables.get(choices.state)
        if table is None:
            table = self._tables[choices.state] = PointsTable(choices.left_milli, self._workload)
        cpu = np.array([found.cpu_milli])
        points = table.points(_present(choices), cpu, choices.option, found.cpu_after_milli)
        return points - _TIE_WEIGHT * left_over(found.cpu_after_milli, found.gpus_after_milli, *self._largest)


def policies(nodes: Sequence[GpuNode], pods: Sequence[Arrival]) -> dict[str, Callable[[], Policy]]:
    """Return a function that creates each policy, by the policy's name."""
    largest = Largest(max(node.cpu_milli for node in nodes), WHOLE_MILLI * max(node.gpus for node in nodes))
    return {
        "random": lambda: Fixed(lambda found: np.zeros(len(found.choices.kind)), is_random=True),
        "dot-product": lambda: Fixed(lambda found: _dot_product(found, largest)),
        "best-fit": lambda: Fixed(lambda found: _best_fit(found, largest)),
        "gpu-packing": lambda: Fixed(partial(_packing, random=Random(0))),
        "fgd": lambda: GradientDescent(pods),
        "gpu-fragmentation": lambda: Learning(largest),
    }


def packing_points(state: GpuState, count: int, milli: int) -> int:
    """Return the points of the published packing: GPUs in use first, then nodes in use, then empty ones."""
    whole = state.count(WHOLE_MILLI)
    if whole == len(state):
        return max(33 - whole, whole)
    taken = [left for left in state if left >= milli][:count] if count else []
    opened = taken.count(WHOLE_MILLI)
    if opened:
        return max(50 - opened, 33)
    return max(100 - sum(100 * left // WHOLE_MILLI for left in taken) // 10, 50)


def _present(choices: Choices) -> NDArray[np.intp]:
    """Return the row of the current state, which is the last one."""
    return np.array([len(choices.left)])


def _best_fit(found: Placements, largest: Largest) -> Floats:
    return -left_over(found.cpu_after_milli, found.gpus_after_milli, *largest)


def _dot_product(found: Placements, largest: Largest) -> Floats:
    """Return points that fall as the free resources match the requested ones better."""
    free = found.cpu_milli / largest.cpu_milli, sum(found.choices.state) / largest.gpus_milli
    wanted = found.cpu_milli - found.cpu_after_milli, sum(found.choices.state) - found.gpus_after_milli
    return -np.asarray(free[0] * wanted[0] / largest.cpu_milli + free[1] * wanted[1] / largest.gpus_milli)


def _packing(found: Placements, random: Random) -> Floats:
    """Return the points of each kind; it takes the GPUs of which the least is left, which is the first row.

    Of equal nodes whose GPUs are all free, any may be opened: the published rule does not say which.
    """
    points = np.array(
        [packing_points(found.choices.state, *demand) for demand in found.choices.demands], dtype=np.float64
    )
    is_free = found.choices.state.count(WHOLE_MILLI) == len(found.choices.state)
    return points + random.random() / 2.0 if is_free else points
