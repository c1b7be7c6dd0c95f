"""The scrape interval, derived from the times of samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.queries.scrape_intervals import from_counts, from_times, longest_interval, row_medians


@pytest.mark.parametrize(
    ("count", "seconds"),
    [(40, 15), (41, 15), (38, 15), (20, 30), (19, 30), (10, 60), (9, 60), (120, 5), (600, 1), (1, 300), (0, math.nan)],
)
def test_the_number_of_scrapes_gives_the_usual_interval(count: float, seconds: float) -> None:
    assert from_counts(np.array([float(count)])) == pytest.approx([seconds], nan_ok=True)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([3, 18, 33, 48], 15),
        ([3, 3, 33, 33, 63, 63], 30),
        ([3, 3, 3, 3, 63, 63, 63, 63], 60),
        ([3, 18, 18, 48, 63, 78], 15),
        ([math.nan, 25, 50, 75], 25),
        ([3, 3, 3], math.nan),
        ([math.nan, math.nan], math.nan),
        ([3], math.nan),
        ([], math.nan),
    ],
)
def test_the_times_of_the_newest_samples_give_the_exact_interval(times: list[float], seconds: float) -> None:
    assert from_times(np.array([times], dtype=np.float64)) == pytest.approx([seconds], nan_ok=True)


def test_the_longest_interval_counts_so_that_rates_have_two_scrapes_of_every_node() -> None:
    assert longest_interval(np.array([15.0, 60.0, math.nan])) == 60
    assert math.isnan(longest_interval(np.array([math.nan])))
    assert math.isnan(longest_interval(np.array([])))


@settings(max_examples=50)
@given(rows=st.lists(st.lists(st.floats(0, 100) | st.just(math.nan), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_median_of_a_row_is_one_of_its_numbers(rows: list[list[float]]) -> None:
    for row, median in zip(rows, row_medians(np.array(rows)), strict=True):
        known = [value for value in row if not math.isnan(value)]
        assert median in known if known else math.isnan(median)
