"""Labels that never overlap, and axes that one outlier does not flatten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_LEADER: Final = "#bbbbbb"


@dataclass(frozen=True, slots=True)
class PointLabel:
    """The name of a point, in the coordinates of the data."""

    text: str
    x: float
    y: float
    colour: str
    is_bold: bool = False


def label_beside(axes: Axes, labels: Sequence[PointLabel], *, size: float) -> None:
    """Write the labels in a column at the right of the axes, in the order of their points, with a line to each."""
    above = sorted(labels, key=lambda each: (each.y, -each.x))
    for place, each in enumerate(above):
        axes.annotate(
            each.text,
            (each.x, each.y),
            xytext=(1.03, (place + 0.5) / len(above)),
            textcoords="axes fraction",
            fontsize=size,
            fontweight="bold" if each.is_bold else "normal",
            color=each.colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": _LEADER, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )


def mark_cut_off(axes: Axes, x: NDArray[np.float64], values: NDArray[np.float64], top: float) -> None:
    """Say how high the largest value is, at the upper edge above it, if it is cut off there."""
    known = np.where(np.isfinite(values), values, -np.inf)
    place = int(np.argmax(known))
    if known[place] > top:
        left = place > len(values) / 2
        axes.annotate(
            f"▲ {known[place]:,.0f}",
            (float(x[place]), 0.99),
            xycoords=axes.get_xaxis_transform(),
            fontsize=8,
            ha="right" if left else "left",
            va="top",
        )
