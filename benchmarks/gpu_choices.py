"""The GPUs of a node that each kind of pod may leave free, computed once for each state and for all policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.scores.gpus.gpu_fragments import as_array, placements

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.workload import GpuPodKind
    from adapter.nodes.scores.gpus.gpu_fragments import GpuState, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """The choices of a state: one row for each kind of pod that has the GPUs and each state that it may leave.

    The rows of a kind are adjacent; the GPU of which the least is left comes first.
    """

    state: GpuState
    left: tuple[GpuState, ...]
    """The states that may be left."""
    left_milli: Integers
    """The same states as an array (states + 1, GPUs), whose last row is the current state."""
    kind: NDArray[np.intp]
    """The kind of each row."""
    option: NDArray[np.intp]
    """The state that each row leaves."""
    demands: tuple[tuple[int, int], ...]
    """How many GPUs each row requests, and how much of each."""
    first: NDArray[np.intp]
    """The first row of each kind that has a row."""


class Kinds:
    """The kinds of pods of a simulation, and their choices by state."""

    def __init__(self, shapes: Iterable[GpuPodKind]) -> None:
        self.shapes: Sequence[GpuPodKind] = sorted(set(shapes), key=lambda shape: (shape[1:], shape[0]))
        self.place = {shape: place for place, shape in enumerate(self.shapes)}
        self.cpu_milli = np.array([shape.cpu_milli for shape in self.shapes], dtype=np.int64)
        self._demands: dict[tuple[int, int], list[int]] = {}
        for place, shape in enumerate(self.shapes):
            self._demands.setdefault((shape.gpu_count, shape.gpu_milli), []).append(place)
        self._known: dict[GpuState, Choices] = {}

    def choices(self, state: GpuState) -> Choices:
        """Return the choices of a state."""
        found = self._known.get(state)
        if found is None:
            found = self._known[state] = self._choices(state)
        return found

    def _choices(self, state: GpuState) -> Choices:
        left: list[GpuState] = []
        kinds: list[int] = []
        options: list[int] = []
        demands: list[tuple[int, int]] = []
        for (count, milli), places in self._demands.items():
            states = placements(state, count, milli)
            for place in places:
                kinds += [place] * len(states)
                options += range(len(left), len(left) + len(states))
                demands += [(count, milli)] * len(states)
            left += states
        kind = np.array(kinds, dtype=np.intp)
        return Choices(
            state=state,
            left=tuple(left),
            left_milli=as_array([*left, state]),
            kind=kind,
            option=np.array(options, dtype=np.intp),
            demands=tuple(demands),
            first=np.flatnonzero(np.diff(kind, prepend=-1)),
        )
