"""Finds the array rows of nodes by their names (pure)."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


def rows_in(index: Mapping[str, int], names: Sequence[str]) -> NDArray[np.intp]:
    """Return the row of each name; -1 for an unknown one."""
    return np.fromiter(map(index.get, names, repeat(-1)), np.intp, len(names))
