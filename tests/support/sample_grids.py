"""Grids of samples for tests of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.samples import SampleGrid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from adapter.nodes.model.arrays import Floats

END = 1_700_000_100
STEP = 15
NAN = float("nan")


def column(nodes: int, value: ArrayLike) -> Floats:
    """Return an array with one fact of all nodes."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (nodes,)).copy()


def grid_of(
    values: ArrayLike,
    *,
    step: int = STEP,
    end: int = END,
    nodes: tuple[str, ...] | None = None,
    resource: LoadResource = LoadResource.CPU,
    newest: ArrayLike | None = None,
    scrape: ArrayLike | None = None,
    advancing: ArrayLike = NAN,
    reset_at: ArrayLike = NAN,
) -> SampleGrid:
    """Return a grid whose newest samples are at its end and whose scrapes are as far apart as its steps."""
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    count = len(rows)
    return SampleGrid(
        resource=resource,
        step_seconds=step,
        end=end,
        nodes=nodes if nodes is not None else tuple(f"node-{row:04d}" for row in range(count)),
        values=rows,
        newest=column(count, end if newest is None else newest),
        scrape_seconds=column(count, step if scrape is None else scrape),
        advancing=column(count, advancing),
        reset_at=column(count, reset_at),
    )
