from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.resources.oom_kills import memory_after_oom, peaks_after_kills
from recommender.kinds.resources.usage import MemoryPeaks
from recommender.kinds.resources.workloads import PodContainer

MIB = 2.0**20
ONE, TWO = (PodContainer("shop", f"web-1-{name}", "app") for name in "ab")


@pytest.mark.parametrize(
    ("peak", "requested", "needed"),
    [(100 * MIB, 0.0, 200 * MIB), (100 * MIB, 400 * MIB, 500 * MIB), (1000 * MIB, 512 * MIB, 1200 * MIB)],
)
def test_an_oom_kill_raises_memory_by_a_fifth_or_by_a_hundred_mebibytes(
    peak: float, requested: float, needed: float
) -> None:
    assert memory_after_oom(np.array([peak]), np.array([requested]))[0] == pytest.approx(needed)


def test_an_oom_kill_raises_only_the_peak_of_its_day() -> None:
    peaks = MemoryPeaks((ONE, TWO), np.array([[100.0, 100.0], [100.0, np.nan]]) * MIB)
    raised = peaks_after_kills(peaks, [frozenset(), frozenset({TWO})], {TWO: 500 * MIB})
    assert raised[0].tolist() == [100 * MIB, 100 * MIB]
    assert raised[1].tolist() == [100 * MIB, 600 * MIB]
    assert np.isnan(peaks.peaks[1, 1])
