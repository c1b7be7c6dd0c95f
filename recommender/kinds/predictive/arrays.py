"""Arrays that forecasts and simulations exchange."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def limited(values: FloatArray, least: FloatArray | float, most: FloatArray | float) -> FloatArray:
    """Return the values within the limits, as `np.clip` does, several times as quickly for a few numbers."""
    return np.minimum(np.maximum(values, least), most)
