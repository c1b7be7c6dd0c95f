"""The load of nodes over a day: the mean utilisation of each slot of five minutes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.nodes.model.loads import LoadResource

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats

    SlotMeans: TypeAlias = NDArray[np.float32]

SLOT_SECONDS: Final = 300
SLOTS: Final = 86_400 // SLOT_SECONDS
DAY_RESOURCES: Final = (LoadResource.CPU, LoadResource.MEMORY)
"""Resources whose load is kept for a day: those that pods request on every node."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadDay:
    """The means of a day. Arrays are never written to after the value is made."""

    end: int = 0
    """Unix seconds at which the last slot ends, a multiple of `SLOT_SECONDS`."""
    nodes: tuple[str, ...] = ()
    """The sorted names of the nodes."""
    means: Mapping[LoadResource, SlotMeans] = field(default_factory=dict)
    """Ratios (0..1) of shape (nodes, SLOTS); NaN where a slot has too few samples. Column `i` is the mean of the five
    minutes until `end - (SLOTS - 1 - i) * SLOT_SECONDS`. They are in single precision: 5,000 nodes take 12 MB."""
    stats: Mapping[LoadResource, Floats] = field(default_factory=dict)
    """Statistics of the means over each window of `SLOT_WINDOWS_SECONDS`, of shape (windows, stats, nodes); NaN where a
    window has too few slots."""
