"""The pods that a cluster runs, as far as they determine where GPUs are left."""

from __future__ import annotations

from typing import NamedTuple


class GpuPodKind(NamedTuple):
    """The requests of a pod that decide whether it fits; pods of one shape are one kind."""

    cpu_milli: int
    gpu_count: int
    gpu_milli: int
    """Thousandths of each of its GPUs that it needs: 1000 for whole ones, 0 without GPUs."""
