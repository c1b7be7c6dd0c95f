from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.samples import SampleGrid, SampleSet

if TYPE_CHECKING:
    from adapter.nodes.model.loads import LoadResource

END = 1_700_000_010


def grid(resource: LoadResource, names: tuple[str, ...], columns: int = 4, end: int = END) -> SampleGrid:
    """Return samples of nodes, of which each node's first is missing."""
    shape = len(names), columns
    values = np.random.default_rng(1).random(shape)
    values[:, :1] = np.nan
    return SampleGrid(
        resource=resource,
        step_seconds=15,
        end=end,
        nodes=names,
        values=values,
        newest=np.full(len(names), end - 3.25),
        scrape_seconds=np.full(len(names), 15.0),
        advancing=np.full(len(names), np.nan),
        reset_at=np.full(len(names), end - 600.0),
    )


def samples(*grids: SampleGrid) -> SampleSet:
    return SampleSet({each.resource: each for each in grids})
