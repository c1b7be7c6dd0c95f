"""The points by which `gpu-fragmentation` and its benchmark choose a node with GPUs for a pod (pure).

Fragmentation gradient descent counts what no pod can use now. It does not see that a share of a GPU may leave a piece
that no later pod will fill; the value of the free part of a GPU does. Losing the value of a whole GPU, beyond the value
of the pod itself, counts as much as the whole range of the gradient. Of placements with equal points, the one that
leaves the least CPU and GPUs on the node is the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.scores.gpus.gpu_fragments import FragmentTable, gradient_points, mix_of
from adapter.nodes.scores.gpus.gpu_value import value_by_free_milli, values_of_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.workload import GpuPodKind
    from adapter.nodes.scores.gpus.gpu_fragments import Integers

_POINTS_OF_A_GPU: Final = 100.0
_STEP_POINTS: Final = 2.0
"""Gradients are rounded down to multiples of this; of equal ones, the remainder decides, so nodes fill one by one."""
_RARITY: Final = 0.7
"""Kinds count by this power of how often they were seen: a rare kind is more uncertain, and often the largest."""


class Workload:
    """The expected pods, which resemble those seen so far."""

    def __init__(self, seen: Mapping[GpuPodKind, float]) -> None:
        """`seen` counts the pods that request GPUs, by kind. Other pods would add the same amount to all fragments."""
        self.mix = mix_of({shape: count**_RARITY for shape, count in seen.items()})
        self.value_by_free_milli = value_by_free_milli(self.mix)


class PointsTable:
    """The points of placements that change one state of GPUs into another."""

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
    """Return 0..1 for the CPU and GPUs that placements leave on their nodes, relative to the largest node."""
    cpu, gpus = cpu_after / max(1.0, most_cpu), gpus_after_milli / max(1.0, most_gpus_milli)
    return np.asarray((np.clip(cpu, 0.0, 1.0) + np.clip(gpus, 0.0, 1.0)) / 2.0)
