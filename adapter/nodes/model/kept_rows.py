"""Keeps what is expensive to compute of each node and does not depend on the pod that is to be placed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats


class KeptRows:
    """Arrays with a column for each node; each column is computed when it is first asked for.

    For any number of threads. It belongs to values that never change, so nothing in it ever becomes wrong.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[NDArray[np.bool_], Floats]] = {}

    def of(
        self, name: Hashable, height: int, rows: NDArray[np.intp], compute: Callable[[NDArray[np.intp]], Floats]
    ) -> Floats:
        """Return an array of shape (height, rows); `compute` makes such arrays for rows that are lacking.

        `name` stands for the function with all that it depends on beside the rows. Rows are not negative.
        """
        if not len(rows):
            return np.empty((height, 0))
        with self._lock:
            is_known, values = self._with_room(name, height, int(rows.max()) + 1)
            lacking = np.unique(rows[~is_known[rows]])
            if len(lacking):
                values[:, lacking] = compute(lacking)
                is_known[lacking] = True
            found: Floats = values[:, rows]
            return found

    def _with_room(self, name: Hashable, height: int, size: int) -> tuple[NDArray[np.bool_], Floats]:
        kept = self._kept.get(name)
        if kept is None or len(kept[0]) < size:
            is_known, values = np.zeros(size, dtype=np.bool_), np.full((height, size), np.nan)
            if kept is not None:
                is_known[: len(kept[0])], values[:, : len(kept[0])] = kept
            kept = self._kept[name] = is_known, values
        return kept
