"""Plots the allocation of GPUs against arrivals: where policies begin to refuse pods, and how far each of them gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from recommender.plots.labels import legend_beside, shorten_name
from recommender.plots.literal_text import literal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_COLOURS: Final = {"gpu-fragmentation": "#0b6fb8", "fgd": "#e08214"}
_OTHERS: Final = ("#8c8c8c", "#7b5ea7", "#4d9a6a", "#b0a030", "#a05050", "#50a0a0", "#c080b0", "#606060")
_FROM_PERCENT: Final = 80


class PlotError(Exception):
    """The picture cannot be written; the message says why."""


@literal_text()
def write_plot(curves: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Write the mean and range over the shuffles for each policy as a picture. Raises PlotError."""
    figure = Figure(figsize=(10, 5.5), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    others = iter(_OTHERS * len(curves))
    for name, shuffles in sorted(curves.items(), key=lambda item: -np.mean(item[1], axis=0)[-1]):
        values = np.array(shuffles)
        percent = np.arange(values.shape[1])
        colour = _COLOURS.get(name) or next(others)
        end = values[:, -1].mean()
        beyond = "▼ " if end < _FROM_PERCENT else ""
        axes.plot(percent, values.mean(axis=0), color=colour, label=f"{beyond}{shorten_name(name)}: {end:.2f}%")
        axes.fill_between(percent, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    axes.plot(range(_FROM_PERCENT, 101), range(_FROM_PERCENT, 101), color="#222222", linestyle=":", linewidth=1)
    axes.set_xlim(_FROM_PERCENT, values.shape[1] - 1)
    axes.set_ylim(bottom=_FROM_PERCENT, top=100)
    axes.set_xlabel("GPUs that arriving pods have requested, percent of the cluster")
    axes.set_ylabel("GPUs allocated, percent")
    axes.set_title("GPUs allocated under each policy: mean and range of the shuffles; ▼ ends below", loc="left")
    axes.grid(alpha=0.25)
    legend_beside(axes)
    try:
        canvas.print_figure(path)
    except OSError as error:
        raise PlotError(f"{path}: the plot cannot be written: {error.strerror or error}: name another file") from error
    except ValueError as error:
        raise PlotError(f"{path}: the plot cannot be written: write a name that ends with .png") from error
