"""What pods a cluster runs, as far as it decides where GPUs are left."""

from __future__ import annotations

from typing import NamedTuple


class GpuPodKind(NamedTuple):
    """What of a pod decides whether it fits; pods of one shape are one kind."""

    cpu_milli: int
    gpu_count: int
    gpu_milli: int
    """What it needs of each of its GPUs: 1000 for whole ones, 0 without GPUs."""
