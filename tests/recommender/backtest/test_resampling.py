from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.backtest.errors import BacktestError
from recommender.backtest.recorded.resampling import Missing, resample
from recommender.backtest.recorded.trace_file import RecordedLoad, of_samples

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.history import LoadHistory

NAN = math.nan


def grid(
    samples: dict[float, float], step: float | None = None, missing: Missing = Missing.GAP
) -> tuple[float, float, list[float]]:
    trace = of_samples("load.csv", np.array(list(samples), dtype=float), np.array(list(samples.values()), dtype=float))
    found = resample(trace, step, missing)
    return found.start_seconds, found.step_seconds, found.values[0].tolist()


@pytest.mark.parametrize(
    ("samples", "step", "missing", "expected"),
    [
        ({0: 1, 60: 2, 120: 3}, None, Missing.GAP, (0, 60, [1, 2, 3])),
        ({0: 1, 60: 2, 180: 4}, None, Missing.GAP, (0, 60, [1, 2, NAN, 4])),
        ({0: 1, 60: 2, 180: 4}, None, Missing.ZERO, (0, 60, [1, 2, 0, 4])),
        ({0: 1, 60: NAN, 120: 4}, None, Missing.GAP, (0, 60, [1, NAN, 4])),
        # What is unknown at the ends is no part of the load.
        ({0: NAN, 60: NAN, 120: 4, 180: NAN, 240: 5, 300: NAN}, None, Missing.GAP, (120, 60, [4, NAN, 5])),
        ({0: NAN, 60: NAN, 120: NAN, 180: 4, 240: 5}, 120.0, Missing.GAP, (120, 120, [4])),
        ({0: 1, 60: 3, 120: NAN, 180: NAN}, 120.0, Missing.GAP, (0, 120, [2])),
        # A sample whose value is unknown is not missing.
        ({0: 1, 60: NAN, 120: 4, 240: 5}, None, Missing.ZERO, (0, 60, [1, NAN, 4, 0, 5])),
        ({0: NAN, 60: 2, 120: NAN}, None, Missing.ZERO, (60, 60, [2])),
        ({0: NAN, 60: NAN, 120: 2, 180: NAN, 240: 5}, 120.0, Missing.ZERO, (120, 120, [2])),
        ({0: 1, 62: 2, 118: 3, 180: 4}, None, Missing.GAP, (0, 62, [1, 2, 3, 4])),
        ({7: 5}, None, Missing.GAP, (7, 60, [5])),
        ({7: 5}, 10.0, Missing.GAP, (7, 10, [5])),
        ({0: 1, 60: 3, 120: 5, 180: 7}, 120.0, Missing.GAP, (0, 120, [2, 6])),
        # The last step is not over.
        ({0: 1, 60: 3, 120: 5}, 120.0, Missing.GAP, (0, 120, [2])),
        ({0: 1, 60: 3, 300: 5, 360: 9}, 120.0, Missing.GAP, (0, 120, [2, NAN, 5, 9][:3])),
        ({0: 1, 60: 3, 300: 5, 360: 9}, 120.0, Missing.ZERO, (0, 120, [2, 0, 2.5])),
    ],
)
def test_samples_are_resampled_to_a_grid(
    samples: dict[float, float], step: float | None, missing: Missing, expected: tuple[float, float, list[float]]
) -> None:
    start, found_step, values = grid(samples, step, missing)
    assert (start, found_step) == expected[:2]
    np.testing.assert_array_equal(values, expected[2])


def test_a_time_without_a_sample_can_be_part_of_a_load() -> None:
    """The answer to a range query has each step of the range."""
    values, times = np.array([1.0, NAN, NAN, 4.0]), 60.0 * np.arange(4, dtype=np.float64)
    trace = RecordedLoad("http://prometheus: load", times, values, is_sample=np.array([True, True, False, True]))
    np.testing.assert_array_equal(resample(trace, None, Missing.ZERO).values[0], [1, NAN, 0, 4])
    np.testing.assert_array_equal(resample(trace, None, Missing.GAP).values[0], values)
    np.testing.assert_array_equal(resample(trace, 120.0, Missing.ZERO).values[0], [1, 2])


@pytest.mark.parametrize(
    ("samples", "step", "message"),
    [
        ({0: 1, 60: 2, 120: 3}, 30.0, r"load\.csv: a step of 30 s is finer .* write --step=60s or more"),
        ({0: NAN, 60: NAN}, None, "no sample has a value"),
        ({0: 1, 1: 2, 2: 3, 4e9: 1}, None, "4,000,000,001 steps of 1 s are more than 1,000,000: write --step=4020s"),
        ({0: 1, 1: 2, 2: 3, 4e9: 1}, 4020.0, "check the first and the last time"),
        ({0: 1, 1e-15: 2, 2e-15: 3, 1e9: 1}, 86_400.0, "check the first and the last time"),
    ],
)
def test_a_grid_that_cannot_be_made_is_refused(samples: dict[float, float], step: float | None, message: str) -> None:
    with pytest.raises(BacktestError, match=message):
        grid(samples, step)


def padded(history: LoadHistory, steps: int) -> FloatArray:
    """Return the values with the unknown ones at the end, which a history leaves out."""
    return np.pad(history.values[0], (0, steps - history.steps), constant_values=NAN)


@given(
    st.lists(st.one_of(st.just(NAN), st.integers(0, 50).map(float)), min_size=4, max_size=60),
    st.integers(0, 59),
    st.sampled_from([None, 120.0, 300.0]),
    st.sampled_from(list(Missing)),
)
def test_no_step_depends_on_later_samples(values: list[float], at: int, step: float | None, missing: Missing) -> None:
    """Samples from a moment on are changed: steps that had ended by then must stay the same."""
    values[0] = 1.0
    at = min(at, len(values) - 1)
    times = 60.0 * np.arange(len(values), dtype=np.float64)
    poisoned = np.where(np.arange(len(values)) >= at, 1e6, values)
    before = resample(of_samples("x", times, np.array(values)), step, missing)
    after = resample(of_samples("x", times, poisoned), step, missing)
    over = int(60 * at // before.step_seconds)
    np.testing.assert_array_equal(padded(before, after.steps)[:over], after.values[0, :over])


@given(st.lists(st.one_of(st.just(NAN), st.integers(1, 50).map(float)), min_size=2, max_size=60))
def test_no_values_are_invented_in_a_gap(values: list[float]) -> None:
    values[0] = 1.0
    found = resample(
        of_samples("x", 60.0 * np.arange(len(values), dtype=np.float64), np.array(values)), None, Missing.GAP
    )
    np.testing.assert_array_equal(padded(found, len(values)), values)
