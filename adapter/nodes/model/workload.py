"""The kinds of pods that a cluster runs, distinguished only by what matters for the use of its GPUs."""

from __future__ import annotations

from typing import NamedTuple


class GpuPodKind(NamedTuple):
    """The requests of a pod that decide whether it fits; pods with equal requests are of one kind."""

    cpu_milli: int
    gpu_count: int
    gpu_milli: int
    """The thousandths that the pod needs of each of its GPUs: 1000 for whole GPUs, 0 without GPUs."""
