from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.resources.bounds import (
    POD_MINIMUM_BYTES,
    POD_MINIMUM_CORES,
    SizeSettings,
    bounds_of,
    confidences,
    minimum_of,
)
from recommender.kinds.resources.histograms import CPU_SCALE, MEMORY_SCALE, BucketScale, UsageHistograms, percentiles
from tests.recommender.kinds.resources import reference

DAY = 86_400.0
MIB = 2.0**20


def histograms(
    samples: list[tuple[float, float]], days: int = 8, scale: BucketScale = CPU_SCALE, rows: int = 1
) -> UsageHistograms:
    found = UsageHistograms(scale, days, rows)
    for value, age in samples:
        found.add(int(age // DAY), np.zeros(1, dtype=np.int64), np.array([value]), np.array([age]))
    return found


def target(found: UsageHistograms, share: float) -> float:
    return float(percentiles(found.cumulate(found.day_weights()), found.scale, share)[0])


@pytest.mark.parametrize(
    ("scale", "buckets", "ends"),
    [
        (CPU_SCALE, 176, {0: 0.01, 1: 0.0205, 2: 0.031525}),
        (MEMORY_SCALE, 176, {0: 1e7, 1: 2.05e7, 2: 3.1525e7}),
    ],
)
def test_buckets_begin_at_a_hundredth_and_grow_by_five_percent(
    scale: BucketScale, buckets: int, ends: dict[int, float]
) -> None:
    assert scale.count == buckets
    assert {place: pytest.approx(scale.ends()[place]) for place in ends} == ends


@pytest.mark.parametrize(
    ("cores", "bucket"),
    [(0.0, 0), (0.0099, 0), (0.01, 1), (0.0101, 1), (0.0204, 1), (0.0206, 2), (1.0, 36), (5000.0, 175)],
)
def test_values_are_assigned_to_their_buckets(cores: float, bucket: int) -> None:
    assert CPU_SCALE.bucket_of(np.array([cores])).tolist() == [bucket]


@given(st.floats(0, 999))
def test_a_percentile_of_one_value_is_at_most_five_percent_and_a_bucket_above_it(cores: float) -> None:
    found = target(histograms([(cores, 0.0)]), 0.9)
    assert cores * (1 - 1e-9) <= found <= cores * 1.05 + 0.0101


def test_a_sample_of_yesterday_weighs_half() -> None:
    # Weights 1 and 1/2: the older one is above two thirds of all.
    found = histograms([(0.1, 0.0), (1.0, DAY)])
    assert target(found, 0.66) == pytest.approx(reference.end_of_bucket(0.1, 0.01))
    assert target(found, 0.67) == pytest.approx(reference.end_of_bucket(1.0, 0.01))


def test_one_recent_sample_outweighs_a_thousand_old_ones() -> None:
    found = histograms([(2.0, 19.5 * DAY)] * 1000 + [(1.0, 0.0)], days=20)
    assert target(found, 0.99) == pytest.approx(reference.end_of_bucket(1.0, 0.01))


@given(
    st.lists(st.tuples(st.floats(0.001, 100), st.floats(0, 7.99 * DAY)), min_size=1, max_size=40),
    st.floats(0.05, 8),
)
def test_bounds_match_the_reference_histogram(samples: list[tuple[float, float]], confidence: float) -> None:
    # A value at the edge of a bucket, or a share at the edge of a weight, may fall to either side.
    samples = [(value * 1.000_123, age) for value, age in samples]
    found = bounds_of(histograms(samples), np.array([confidence]), SizeSettings(), np.zeros(1))
    expected = reference.bounds(samples, 0.01, confidence)
    actual = [float(each[0]) for each in (found.lower, found.target, found.upper)]
    for mine, theirs in zip(actual, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6) or _is_at_an_edge(samples)


def _is_at_an_edge(samples: list[tuple[float, float]]) -> bool:
    weighted = sorted((reference.end_of_bucket(value, 0.01), 2.0 ** (-age / DAY)) for value, age in samples)
    total = sum(weight for _, weight in weighted)
    covered = np.cumsum([weight for _, weight in weighted]) / total
    return any(abs(share - edge) < 1e-5 for share in (0.5, 0.9, 0.95) for edge in covered) or any(
        abs(value / start - 1) < 1e-9 for value, _ in samples for start in CPU_SCALE.ends()
    )


@pytest.mark.parametrize(
    ("days", "samples", "lower", "upper"),
    [
        # Confidence 8, 1 and 1/24, of a constant 0.2 cores: the factors that its bounds have.
        (8.0, 8 * 288, (1 + 0.001 / 8) ** -2, 1 + 1 / 8),
        (1.0, 288, 1.001**-2, 2.0),
        (1 / 24, 12, 1.024**-2, 25.0),
        # Eight days, but samples of one day alone.
        (8.0, 288, 1.001**-2, 2.0),
    ],
)
def test_little_history_widens_the_bounds(days: float, samples: int, lower: float, upper: float) -> None:
    confidence = confidences(np.array([days * DAY]), np.array([float(samples)]), 300.0)
    found = bounds_of(histograms([(0.2, 0.0)]), confidence, SizeSettings(), np.zeros(1))
    assert found.lower[0] == pytest.approx(found.target[0] * lower)
    assert found.upper[0] == pytest.approx(found.target[0] * upper)


def test_no_container_gets_less_than_its_share_of_the_minimum_pod() -> None:
    assert minimum_of(POD_MINIMUM_BYTES, np.array([1, 2, 5])).tolist() == [262_144_000, 131_072_000, 52_428_800]
    assert minimum_of(POD_MINIMUM_CORES, np.array([1, 2, 5])).tolist() == [0.025, 0.0125, 0.005]
    small = histograms([(1e6, 0.0)], scale=MEMORY_SCALE)
    found = bounds_of(small, np.ones(1), SizeSettings(), np.array([262_144_000.0]))
    assert [float(each[0]) for each in (found.lower, found.target, found.upper)] == [262_144_000.0] * 3


def test_different_days_widen_the_interval_and_equal_days_do_not() -> None:
    same = histograms([(0.5, day * DAY) for day in range(8)])
    other = histograms([(0.2 + 0.2 * day, day * DAY) for day in range(8)])
    for found, is_wide in ((same, False), (other, True)):
        sure = bounds_of(found, np.full(1, 8.0), SizeSettings(), np.zeros(1))
        assert sure.low[0] <= sure.target[0] <= sure.high[0]
        assert bool(sure.high[0] > 1.2 * sure.low[0]) is is_wide
        assert bool(sure.high[0] > 1.2 * sure.target[0]) is is_wide


def test_two_days_give_no_interval() -> None:
    found = bounds_of(histograms([(0.5, 0.0), (0.9, DAY)]), np.full(1, 2.0), SizeSettings(), np.zeros(1))
    assert np.isnan([found.low[0], found.high[0]]).all()


def test_a_row_of_two_days_does_not_take_the_interval_of_others() -> None:
    found = histograms([(0.5, day * DAY) for day in range(3)], rows=2)
    for day in range(2):
        found.add(day, np.array([1]), np.array([0.5]), np.array([day * DAY]))
    bounds = bounds_of(found, np.full(2, 3.0), SizeSettings(), np.zeros(2))
    assert np.isfinite([bounds.low, bounds.high]).tolist() == [[True, False]] * 2


def test_a_row_without_samples_has_no_bounds_and_does_not_affect_others() -> None:
    found = bounds_of(histograms([(0.5, 0.0)], rows=2), np.ones(2), SizeSettings(), np.zeros(2))
    assert found.target[0] > 0.5
    assert all(math.isnan(each[1]) for each in (found.lower, found.target, found.upper))


def test_an_automatic_percentile_covers_steady_usage_and_ignores_a_rare_spike() -> None:
    spiky = [(0.1, 300.0 * step) for step in range(280)] + [(5.0, 300.0 * step) for step in range(280, 283)]
    often = [(0.1, 300.0 * step) for step in range(140)] + [(0.4, 300.0 * step) for step in range(140, 280)]
    for samples, covered in ((spiky, 0.1), (often, 0.4)):
        found = bounds_of(histograms(samples), np.ones(1), SizeSettings(None, 0.0), np.zeros(1))
        assert found.target[0] == pytest.approx(reference.end_of_bucket(covered, 0.01))


@pytest.mark.parametrize(
    ("peaks", "swing", "covered"),
    [
        # The largest peak, even if it is six days old and small ones followed.
        ([100, 100, 100, 100, 100, 100, 300], 0.0, 300),
        # Half as much as the usual peak again at most.
        ([200, 200, 200], 0.2, 260),
        ([200, 200, 200], 9.0, 300),
    ],
)
def test_automatic_memory_covers_the_largest_peak_and_the_swing_of_peaks(
    peaks: list[float], swing: float, covered: float
) -> None:
    found = histograms([(peak * MIB, day * DAY) for day, peak in enumerate(peaks)], scale=MEMORY_SCALE)
    size = bounds_of(found, np.ones(1), SizeSettings(None, 0.0), np.zeros(1), np.array([swing])).target[0]
    # A bucket is up to 5% wide.
    assert covered * MIB <= size <= 1.08 * covered * MIB


def test_a_quiet_weekend_does_not_hide_the_days_before_it() -> None:
    # On weekdays, a third of each day is busy.
    week = [(1.0 if hour >= 48 and hour % 24 < 8 else 0.1, 3600.0 * hour) for hour in range(168)]
    found = bounds_of(histograms(week), np.ones(1), SizeSettings(None, 0.0), np.zeros(1))
    assert found.target[0] == pytest.approx(reference.end_of_bucket(1.0, 0.01))
