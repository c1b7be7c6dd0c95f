"""Rows of nodes that have not changed are computed once, and give the same scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.model.columns import KeptRows
from adapter.nodes.model.scheduling_settings import LowRiskOverCommitmentArgs
from adapter.nodes.scores.loads import low_risk_overcommitment as lroc
from tests.adapter.nodes.scores.builder import CPU, MEMORY, Node, columns, pod

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

SIZE = {"cpu": 4000, "memory": 4096}
row_requests = st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=8)


class Squares:
    """Computes squares and cubes, and records the inputs."""

    def __init__(self) -> None:
        self.computed: list[int] = []

    def __call__(self, rows: NDArray[np.intp]) -> Floats:
        self.computed += rows.tolist()
        return np.stack([rows**2, rows**3]).astype(np.float64)


@given(row_requests)
def test_each_row_is_computed_once_and_always_has_its_own_value(requests: list[list[int]]) -> None:
    kept, squares = KeptRows(), Squares()
    for rows in requests:
        found = kept.of("powers", 2, np.array(rows, dtype=np.intp), squares)
        assert found.tolist() == [[row**2 for row in rows], [row**3 for row in rows]]
    assert sorted(squares.computed) == sorted({row for rows in requests for row in rows})


def test_names_are_kept_apart() -> None:
    kept, rows = KeptRows(), np.array([1, 2])
    assert kept.of("a", 2, rows, Squares()).tolist() == [[1, 4], [1, 8]]
    assert kept.of("b", 1, rows, lambda lacking: -lacking[None, :].astype(np.float64)).tolist() == [[-1, -2]]


def test_changes_to_returned_arrays_do_not_affect_the_kept_rows() -> None:
    kept, rows = KeptRows(), np.array([3])
    kept.of("a", 2, rows, Squares())[:] = 0
    assert kept.of("a", 2, rows, Squares()).tolist() == [[9], [27]]


def test_each_row_is_computed_once_by_parallel_threads() -> None:
    kept, squares, rows = KeptRows(), Squares(), np.arange(50)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept.of("a", 2, rows, squares).tolist(), range(8)))
    assert all(one == found[0] for one in found)
    assert sorted(squares.computed) == rows.tolist()


def test_cached_columns_give_later_requests_the_same_scores_as_new_ones() -> None:
    """The cached risk of the load must not contain anything of an earlier request's pod or order."""
    nodes = [
        Node(f"n{number}", SIZE, requested=asks, limits=asks, mean={CPU: 0.1 * number, MEMORY: 0.5}, std={CPU: 0.1})
        for number in range(1, 9)
        for asks in ({"cpu": 100 * number, "memory": 50 * number},)
    ]
    table = columns(*nodes)
    requests = [
        (pod({"cpu": 100}), [0, 3, 5]),
        (pod({"cpu": 900, "memory": 10}), [5, 4, 3, 0]),
        (pod({"memory": 7}), [7]),
    ]
    for smoothing in (5, 1):
        args = LowRiskOverCommitmentArgs(smoothing_window_size=smoothing)
        for pending, rows in requests:
            found = lroc.score(pending, table, np.array(rows), args).values
            assert found.tolist() == lroc.score(pending, columns(*nodes), np.array(rows), args).values.tolist()
