"""Labels that never overlap, legends beside the lines, and axes that one outlier does not flatten."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.plots.limits import cut_off_text, usual_top

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_LEADER: Final = "#bbbbbb"
_LONGEST_NAME: Final = 40
_LONGEST_ENTRY: Final = 60
_ROOM_RATIO: Final = 1.08
"""The height of an axis as a multiple of its highest value, so that there is room above the lines."""
_MARK_SIZE: Final = 8
_TEXT_SIZE: Final = 8
_ROWS: Final = 30
"""Entries of a legend before it gets a further column."""


@dataclass(frozen=True, slots=True)
class PointLabel:
    """The name of a point, in the coordinates of the data."""

    text: str
    x: float
    y: float
    colour: str
    is_bold: bool = False


def label_beside(axes: Axes, labels: Sequence[PointLabel]) -> None:
    """Write the labels in a column at the right of the axes, in the order of their points, with a line to each."""
    above = sorted(labels, key=lambda each: (each.y, -each.x))
    for place, each in enumerate(above):
        axes.annotate(
            each.text,
            (each.x, each.y),
            xytext=(1.03, (place + 0.5) / len(above)),
            textcoords="axes fraction",
            fontsize=_TEXT_SIZE,
            fontweight="bold" if each.is_bold else "normal",
            color=each.colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": _LEADER, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )


def legend_beside(axes: Axes, entries: Mapping[str, Artist] | None = None, *, size: float = 8) -> None:
    """Write the legend at the right of the axes, where it covers nothing; `entries` replace the entries of the axes."""
    handles, names = axes.get_legend_handles_labels() if entries is None else (list(entries.values()), list(entries))
    if not handles:
        return
    axes.legend(
        handles,
        [shorten_name(name, _LONGEST_ENTRY) for name in names],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        fontsize=size,
        frameon=False,
        ncols=max(1, math.ceil(len(names) / _ROWS)),
    )


def shorten_name(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return a shortened name that leaves room for the lines: its beginning and end, which distinguish long names."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 1]}…{text[-end:]}"


def cut_axis(
    panels: Sequence[Axes],
    lines: Sequence[Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]],
    *,
    least: float = 0.0,
) -> None:
    """Give several panels the same value axis, limited to the usual range of all their lines, each (x, values).

    In each panel, the largest value is marked if it is beyond the end of the axis; `least` must be visible.
    """
    together = (value for those in lines for _, values in those for value in values.tolist())
    top = _ROOM_RATIO * (usual_top(together, least) or 1.0)
    for panel, those in zip(panels, lines, strict=True):
        panel.set_ylim(0, top)
        if those:
            mark_cut_off(panel, *max(those, key=lambda line: _largest(line[1])), top)


def _largest(values: NDArray[np.float64]) -> float:
    return float(np.max(values, initial=-np.inf, where=np.isfinite(values)))


def mark_cut_off(axes: Axes, x: NDArray[np.float64], values: NDArray[np.float64], top: float) -> None:
    """Write the largest value at the upper edge beside its line, if it is cut off there."""
    known = np.where(np.isfinite(values), values, -np.inf)
    if not len(known):
        return
    place = int(np.argmax(known))
    if known[place] > top:
        left = place > len(values) / 2
        axes.annotate(
            cut_off_text(float(known[place])),
            (float(x[place]), 0.99),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-4 if left else 4, 0),
            textcoords="offset points",
            fontsize=_MARK_SIZE,
            ha="right" if left else "left",
            va="top",
        )
