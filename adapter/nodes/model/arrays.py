"""Arrays by node: the type that all folders share, and the rows of nodes by their names (pure)."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"


def rows_in(index: Mapping[str, int], nodes: Sequence[str]) -> NDArray[np.intp]:
    """Return the row of each of `nodes` by an index of names, -1 for one that is not there."""
    return np.fromiter(map(index.get, nodes, repeat(-1)), np.intp, len(nodes))


def rows_of(nodes: Sequence[str], among: Sequence[str]) -> NDArray[np.intp]:
    """Return the position of each of `nodes` in `among`, -1 for one that is not there."""
    return rows_in({name: row for row, name in enumerate(among)}, nodes)


def rearranged_rows(values: Floats, rows: NDArray[np.intp]) -> Floats:
    """Return `values` with the last axis rearranged to these rows; NaN where the row is -1."""
    if not values.shape[-1]:
        return np.full((*values.shape[:-1], len(rows)), np.nan)
    return np.where(rows >= 0, values[..., rows], np.nan)
