from __future__ import annotations

import numpy as np
import pytest

from recommender.kinds.resources.usage import CollectedCpu, ContainerRows, MemoryPeaks, UsageSamples
from recommender.kinds.resources.workloads import PodContainer, SizedWorkload, WorkloadContainer

MIB = 2.0**20
ONE, TWO = (PodContainer("shop", f"web-1-{name}", "app") for name in "ab")
WEB = WorkloadContainer(SizedWorkload("shop", "Deployment", "web"), "app")
ROWS = ContainerRows.of({ONE: WEB, TWO: WEB})
END = 1_000_000.0


def samples(pod: PodContainer, values: list[float]) -> UsageSamples:
    return UsageSamples(pod, END - 300.0 * np.arange(len(values), dtype=np.float64), np.array(values))


def test_impossible_samples_are_ignored() -> None:
    collected = CollectedCpu.empty(ROWS, 1, END)
    unknown = PodContainer("lab", "other", "app")
    collected.add(
        0,
        [
            samples(ONE, [0.5, np.nan, -0.1, np.inf, 1e6, 0.5]),
            samples(TWO, [0.5]),
            samples(unknown, [9.0]),
            samples(TWO, []),
        ],
    )
    assert collected.samples.tolist() == [3]
    assert (collected.first[0], collected.last[0]) == (END - 1500, END)
    assert np.count_nonzero(collected.histograms.weights) == 1


@pytest.mark.parametrize(
    ("peaks", "is_newest_partial", "swing"),
    [
        ([100.0, 100.0, 100.0, 100.0], False, 0.0),
        # Twice as much each day, or half as much.
        ([800.0, 400.0, 200.0, 100.0], False, 1.0),
        ([100.0, 200.0, 400.0, 800.0], False, 1.0),
        # A day that has just begun is no fall.
        ([10.0, 100.0, 100.0, 100.0], True, 0.0),
        # Two days, or days that are not consecutive, give no swing of their own.
        ([100.0, 900.0], False, 0.07),
        ([100.0, np.nan, 900.0, np.nan], False, 0.07),
        ([0.0, 0.0, 0.0, 0.0], False, 0.07),
    ],
)
def test_the_swing_of_peaks_is_their_change_from_day_to_day(
    peaks: list[float],
    is_newest_partial: bool,  # noqa: FBT001 - a column of the table
    swing: float,
) -> None:
    days = np.array([peaks, [50.0, *[np.nan] * (len(peaks) - 1)]]).T * MIB
    found = MemoryPeaks((ONE, TWO), days, is_newest_partial).swings(ROWS)
    assert found[0] == pytest.approx(swing)
