"""Statistics and coverage of windows."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.loads import AVG, MAX, P95, STD
from adapter.nodes.windows.statistics import (
    columns_per_scrape,
    served_statistics,
    statistics_of,
    window_coverage,
    window_statistics,
    windows_served,
)
from tests.support.sample_grids import NAN, STEP


def prometheus_quantile(quantile: float, samples: list[float]) -> float:
    """Return the quantile by the definition in Prometheus's documentation, computed one sample at a time."""
    ordered = sorted(samples)
    at = quantile * (len(ordered) - 1)
    lower = max(0, int(at))
    upper = min(len(ordered) - 1, lower + 1)
    return ordered[lower] * (1 - (at - lower)) + ordered[upper] * (at - lower)


@given(st.lists(st.lists(st.one_of(st.just(NAN), st.floats(0, 1)), min_size=7, max_size=7), min_size=1, max_size=5))
def test_statistics_cover_only_the_present_samples(rows: list[list[float]]) -> None:
    found = statistics_of(np.array(rows))
    for node, row in enumerate(rows):
        samples = [value for value in row if not np.isnan(value)]
        if not samples:
            assert np.isnan(found[:, node]).all()
            continue
        assert found[AVG, node] == pytest.approx(statistics.fmean(samples), abs=1e-12)
        assert found[STD, node] == pytest.approx(statistics.pstdev(samples), abs=1e-9)
        assert found[P95, node] == pytest.approx(prometheus_quantile(0.95, samples), abs=1e-12)
        assert found[MAX, node] == max(samples)


def test_no_columns_have_no_statistics() -> None:
    assert np.isnan(statistics_of(np.empty((2, 0)))).all()


def test_each_window_is_computed_from_its_own_columns() -> None:
    values = np.concatenate([np.full(8, 9.0), np.full(20, 0.1), np.full(20, 0.2), np.full(20, 0.6)])[None]
    found = window_statistics(values, STEP)
    assert found[:, AVG, 0].tolist() == pytest.approx([0.3, 0.4, 0.6])
    assert found[:, MAX, 0].tolist() == [0.6, 0.6, 0.6]
    assert found[:, STD, 0].tolist() == pytest.approx([0.2160246899, 0.2, 0.0])


@pytest.mark.parametrize(
    ("scrape", "step", "expected"), [(15, 15, 1), (15.4, 15, 1), (30, 15, 2), (61, 15, 4), (15, 60, 1), (NAN, 15, 1)]
)
def test_a_sample_covers_the_steps_until_the_next_scrape(scrape: float, step: int, expected: int) -> None:
    assert columns_per_scrape(np.array([scrape]), step).tolist() == [expected]


EVERY = np.ones(60)


def only_each(columns: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.where(np.arange(60) % columns == 0, 1.0, NAN)


@pytest.mark.parametrize(
    ("values", "scrape", "step", "expected"),
    [
        (EVERY, 15, 15, (1.0, 1.0, 1.0)),
        (EVERY * NAN, 15, 15, (0.0, 0.0, 0.0)),
        (np.where(np.arange(60) < 12, NAN, 1.0), 15, 15, (0.8, 1.0, 1.0)),
        (np.where(np.arange(60) < 56, 1.0, NAN), 15, 15, (56 / 60, 0.9, 0.8)),
        # Finer steps than scrapes: a sample repeated at each step, or there at one step of each scrape interval.
        (EVERY, 60, 15, (1.0, 1.0, 1.0)),
        (only_each(4), 60, 15, (1.0, 1.0, 1.0)),
        (only_each(8), 60, 15, (32 / 60, 20 / 40, 12 / 20)),
        # Each second scrape is missing where scrapes are as far apart as steps.
        (only_each(2), 15, 15, (0.5, 0.5, 0.5)),
        # Coarser steps than scrapes: a sample per step is all there can be.
        (np.ones(30), 15, 30, (1.0, 1.0, 1.0)),
        (EVERY[:15], 60, 60, (1.0, 1.0, 1.0)),
        (EVERY[:10], 15, 60, (10 / 15, 1.0, 1.0)),
    ],
)
def test_coverage_is_the_share_of_expected_samples_that_are_present(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], scrape: float, step: int, expected: tuple[float, ...]
) -> None:
    found = window_coverage(values[None], np.array([float(scrape)]), step)
    assert found[:, 0].tolist() == pytest.approx(expected)


def test_a_window_shorter_than_a_step_has_no_coverage() -> None:
    assert window_coverage(np.ones((1, 4)), np.array([600.0]), 600)[:, 0].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("usable", "expected"),
    [
        ((True, True, True), [0, 1, 2]),
        ((False, True, True), [1, 1, 2]),
        ((False, False, True), [2, 2, 2]),
        ((True, False, True), [0, 2, 2]),
        ((True, True, False), [0, 1, 1]),
        ((True, False, False), [0, 0, 0]),
        ((False, True, False), [1, 1, 1]),
        ((False, False, False), [-1, -1, -1]),
    ],
)
def test_a_window_comes_from_the_next_shorter_one_and_then_from_longer_ones(
    usable: tuple[bool, ...], expected: list[int]
) -> None:
    found = windows_served(np.array(usable)[:, None])
    assert found[:, 0].tolist() == expected
    stats = np.broadcast_to(np.arange(3.0)[:, None, None], (3, 4, 1))
    served = served_statistics(stats, found)[:, :, 0]
    for window, source in enumerate(expected):
        assert np.array_equal(served[window], [NAN if source < 0 else float(source)] * 4, equal_nan=True)
