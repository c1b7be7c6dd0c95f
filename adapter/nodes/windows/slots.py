"""Adapts kept means of time slots to the current time and list of nodes (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from adapter.nodes.model.arrays import rows_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

Number = TypeVar("Number", np.float16, np.float32)


@dataclass(frozen=True, slots=True)
class SlotAxes:
    """The meaning of rows and columns: sorted names, and slots up to `end` in Unix seconds."""

    nodes: tuple[str, ...]
    end: int
    slot_seconds: int


def shift_means(
    values: NDArray[Number], before: SlotAxes, after: SlotAxes, moved: Collection[str] = ()
) -> NDArray[Number]:
    """Return the means for the nodes and end of `after`; NaN for unknown means, and for nodes that have `moved`."""
    if after.nodes != before.nodes:
        rows = rows_of(after.nodes, before.nodes)
        nothing = np.full((len(rows), values.shape[1]), np.nan, dtype=values.dtype)
        values = np.where((rows >= 0)[:, None], values[rows], nothing) if len(values) else nothing
    by, slots = (after.end - before.end) // after.slot_seconds, values.shape[1]
    if by:
        later = np.full_like(values, np.nan)
        if 0 < by < slots:
            later[:, : slots - by] = values[:, by:]
        elif -slots < by < 0:
            later[:, -by:] = values[:, : slots + by]
        values = later
    if moved:
        values = values.copy()
        values[np.isin(after.nodes, list(moved))] = np.nan
    return values
