"""Computes how much of a node's GPUs the pods of a workload cannot use: its fragments, in thousandths of a GPU.

After Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): for each kind of pod of the workload, everything that is
left of a node's GPUs is useless if the pod does not fit onto the node (or requests no GPU); otherwise, what is left of
a GPU is useless if it is less than the pod needs. The fragments are the mean over the workload. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.workload import GpuPodKind

    Integers: TypeAlias = NDArray[np.int64]

GpuState: TypeAlias = "tuple[int, ...]"
"""Thousandths that are left of each GPU of a node, in ascending order."""
MOST_KINDS: Final = 128
"""A mix has at most this many kinds of pods, the most frequent ones."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadMix:
    """Kinds of pods by ascending CPU, and how often each is seen; arrays of shape (kinds,)."""

    cpu_milli: Integers
    gpu_count: Integers
    gpu_milli: Integers
    share: Floats
    """The share of each kind, which add up to 1; without any kind, everything that is left is a fragment."""

    def kinds_with(self, cpu_milli: Integers) -> NDArray[np.intp]:
        """Return for how many of the kinds this amount of CPU is enough."""
        return np.asarray(np.searchsorted(self.cpu_milli, cpu_milli, side="right"))


def mix_of(seen: Mapping[GpuPodKind, float], coverage: float = 1.0) -> WorkloadMix:
    """Return the most frequent kinds that together cover this share of the pods seen; their own shares add up to 1.

    Equally frequent kinds are sorted by their values, so that the mix does not depend on the order of the pods.
    """
    most_frequent = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:MOST_KINDS]
    wanted = coverage * sum(seen.values())
    sums = accumulate(count for _, count in most_frequent)
    needed = next((place for place, covered in enumerate(sums, 1) if covered >= wanted), len(most_frequent))
    chosen = sorted(most_frequent[:needed])
    shapes = np.array([shape for shape, _ in chosen], dtype=np.int64).reshape(-1, 3)
    counts = np.array([count for _, count in chosen], dtype=np.float64)
    return WorkloadMix(shapes[:, 0], shapes[:, 1], shapes[:, 2], counts / max(counts.sum(), 1e-9))


class FragmentTable:
    """The fragments of each state of a node's GPUs under a mix of pods, for any amount of CPU that is left."""

    def __init__(self, left_milli: Integers, mix: WorkloadMix) -> None:
        """`left_milli` is what is left of each GPU (states, GPUs); 0 stands for a GPU that a node lacks."""
        self._mix = mix
        self._total_milli = left_milli.sum(axis=1)
        self._usable_milli = _usable_milli(left_milli, mix)

    def fragments_milli(self, states: NDArray[np.intp], cpu_milli: Integers) -> Floats:
        """Return the fragments of nodes in these states (rows of the table) with this amount of CPU left."""
        usable = self._usable_milli[states, self._mix.kinds_with(cpu_milli)]
        return np.asarray(self._total_milli[states] - usable)


def _usable_milli(left_milli: Integers, mix: WorkloadMix) -> Floats:
    """Return how much of the GPUs the workload could use if only the first k kinds had enough CPU: (states, k + 1)."""
    sums = np.zeros((len(left_milli), len(mix.share) + 1))
    usable = sums[:, 1:]
    for milli in np.unique(mix.gpu_milli[mix.gpu_count > 0]).tolist():
        kinds = np.flatnonzero((mix.gpu_milli == milli) & (mix.gpu_count > 0))
        is_enough = left_milli >= max(1, milli)
        fits = is_enough.sum(axis=1)[:, None] >= mix.gpu_count[kinds]
        usable[:, kinds] = fits * (left_milli * is_enough).sum(axis=1)[:, None] * mix.share[kinds]
    np.cumsum(usable, axis=1, out=usable)
    return sums


def gradient_points(before_milli: Floats, after_milli: Floats) -> Floats:
    """Return points from 0 to 100, as published: more for placements that reduce fragments more; 50 for no change."""
    # Rounded, since the sums of equal fragments may differ in the last place, and 50 would be rounded down to 49.
    fewer_gpus = np.clip(np.round(before_milli - after_milli, 6) / 1000.0, -50.0, 50.0)
    return np.asarray(np.floor(100.0 / (1.0 + np.exp(-fewer_gpus))))


def placements(state: GpuState, count: int, milli: int) -> tuple[GpuState, ...]:
    """Return the states in which a pod may leave a node's GPUs; none if the GPUs are not enough.

    A pod with one GPU may take any GPU that has enough left; a pod with several takes the GPUs with the least left.
    """
    if not count:
        return (state,)
    first = next((place for place, left in enumerate(state) if left >= milli), len(state))
    if len(state) - first < count:
        return ()
    starts = range(first, len(state)) if count == 1 else (first,)
    # GPUs with equal remainders are interchangeable.
    different = [start for start in starts if start == first or state[start] != state[start - 1]]
    return tuple(_state_after(state, start, start + count, milli) for start in different)


def as_array(states: Sequence[GpuState]) -> Integers:
    """Return states of shape (states, GPUs), with 0 for GPUs that only other nodes have."""
    found = np.zeros((len(states), max(map(len, states), default=0)), dtype=np.int64)
    for row, state in enumerate(states):
        found[row, : len(state)] = state
    return found


def _state_after(state: GpuState, start: int, end: int, milli: int) -> GpuState:
    return tuple(sorted((*state[:start], *(left - milli for left in state[start:end]), *state[end:])))
