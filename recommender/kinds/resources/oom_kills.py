"""Raises memory after a container was killed because it was out of memory, as the Vertical Pod Autoscaler does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from recommender.kinds.resources.histograms import FloatArray
    from recommender.kinds.resources.usage import MemoryPeaks
    from recommender.kinds.resources.workloads import PodContainer

_OOM_RATIO: Final = 1.2
_OOM_BYTES: Final = 100.0 * 2**20


def memory_after_oom(peaks: FloatArray, requests: FloatArray) -> FloatArray:
    """Return the bytes of memory that containers need after they were killed because they were out of memory.

    A kill shows that the container needed more than it had, which samples never show. Requests may be 0.
    """
    held = np.maximum(peaks, requests)
    return np.maximum(held * _OOM_RATIO, held + _OOM_BYTES)


def peaks_after_kills(
    memory: MemoryPeaks, kills: Sequence[AbstractSet[PodContainer]], requests: Mapping[PodContainer, float]
) -> FloatArray:
    """Return the peaks, raised on days on which a container was killed for lack of memory; `kills` is by day."""
    raised = memory.peaks.copy()
    held = np.array([requests.get(pod, 0.0) for pod in memory.pods])
    for day, killed in enumerate(kills):
        places = [place for place, pod in enumerate(memory.pods) if pod in killed]
        raised[day, places] = memory_after_oom(np.nan_to_num(memory.peaks[day, places]), held[places])
    return raised
