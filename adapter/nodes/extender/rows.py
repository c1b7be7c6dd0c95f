"""From the names of a request to rows of the columns (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from adapter.nodes.model.columns import NodeColumns


def rows_of(columns: NodeColumns, names: Sequence[str]) -> NDArray[np.intp]:
    """Return where each name is in the columns; -1 for an unknown one."""
    index = columns.index
    return np.fromiter((index.get(name, -1) for name in names), np.intp, len(names))
