"""Several series of one node are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.windows.node_rows import SeriesRows, grid_of_series, mean_by_node
from tests.support.sample_grids import END, NAN, STEP, column

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def rows_of(
    values: list[list[float]],
    newest: ArrayLike = NAN,
    scrape: ArrayLike = STEP,
    advancing: ArrayLike = NAN,
    reset_at: ArrayLike = NAN,
) -> SeriesRows:
    count = len(values)
    return SeriesRows(
        np.asarray(values, dtype=np.float64),
        column(count, newest),
        column(count, scrape),
        column(count, advancing),
        column(count, reset_at),
    )


def test_a_restarted_exporter_is_averaged_by_samples_and_not_by_series() -> None:
    """The numbers are the article's: an old series at 0.2 with 47 samples, a new one at 0.8 with 12 (facts 7.6)."""
    values = np.full((2, 59), NAN)
    values[0, :47], values[1, 47:] = 0.2, 0.8
    found = mean_by_node(values, np.array([0, 0]), 1)
    assert np.isclose(found.mean(), (47 * 0.2 + 12 * 0.8) / 59)
    assert not np.isclose(found.mean(), 0.5)


def test_an_ha_pair_counts_once_at_each_step() -> None:
    values = np.array([[0.2, 0.4, NAN, NAN], [0.3, NAN, 0.6, NAN]])
    found = mean_by_node(values, np.array([0, 0]), 1)
    assert np.array_equal(found, [[0.25, 0.4, 0.6, NAN]], equal_nan=True)


def test_series_without_a_node_are_left_out_and_nodes_without_series_are_nan() -> None:
    values = np.array([[0.9, 0.9], [0.1, 0.2], [0.3, 0.4], [0.5, NAN]])
    found = mean_by_node(values, np.array([-1, 2, 0, 2]), 3)
    assert np.array_equal(found, [[0.3, 0.4], [NAN, NAN], [0.3, 0.2]], equal_nan=True)


def test_without_series_there_is_no_sample() -> None:
    assert np.isnan(mean_by_node(np.empty((0, 3)), np.empty(0, dtype=np.intp), 2)).all()


def test_a_series_that_has_ended_is_not_averaged_with_its_successor() -> None:
    """Prometheus repeats the last sample of a lost target for five minutes."""
    rows = rows_of(
        [[0.2, 0.2, 0.2, 0.2], [NAN, NAN, 0.8, 0.8]],
        newest=[END - 45, END],
        scrape=[15, 15],
        advancing=[END - 45, END],
        reset_at=[END - 60, NAN],
    )
    found = grid_of_series(rows, np.array([0, 0]), LoadResource.CPU, STEP, END, ("a", "b"))
    assert np.array_equal(found.values, [[0.2, 0.2, 0.8, 0.8], [NAN] * 4], equal_nan=True)
    assert np.array_equal(found.newest, [END, NAN], equal_nan=True)
    assert np.array_equal(found.advancing, [END, NAN], equal_nan=True)
    assert np.array_equal(found.reset_at, [END - 60, NAN], equal_nan=True)


def test_a_node_has_the_shortest_scrape_interval_of_its_series() -> None:
    rows = rows_of([[0.2], [0.4], [0.6]], newest=END, scrape=[30, 15, NAN])
    found = grid_of_series(rows, np.array([0, 0, 1]), LoadResource.CPU, STEP, END, ("a", "b"))
    assert np.array_equal(found.scrape_seconds, [15, NAN], equal_nan=True)


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.lists(st.sampled_from([NAN, 0.0, 0.25, 1.0]), min_size=4, max_size=4)))
)
def test_each_node_has_the_mean_of_its_own_series(series: list[tuple[int, list[float]]]) -> None:
    values = np.array([row for _, row in series]).reshape(-1, 4)
    found = mean_by_node(values, np.array([node for node, _ in series], dtype=np.intp), 4)
    for node in range(4):
        for step in range(4):
            present = [row[step] for at, row in series if at == node and not np.isnan(row[step])]
            expected = sum(present) / len(present) if present else NAN
            assert np.isclose(found[node, step], expected, equal_nan=True)
