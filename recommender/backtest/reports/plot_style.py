"""Determines how plots of a backtest look: the colours of policies, and axes without clutter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AUTO_COLOUR: Final = "#0b6fb8"
RIVAL_COLOUR: Final = "#e08214"
OTHER_COLOURS: Final = ("#8c8c8c", "#7b5ea7", "#4d9a6a", "#b0a030", "#a05050", "#50a0a0", "#c080b0", "#606060")


def tidy(axes: Axes, *, dated: bool = False) -> None:
    """Draw only a faint grid and two edges; `dated` axes count days and are labelled with times."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if dated:
        axes.xaxis_date()
        locator = AutoDateLocator(minticks=4, maxticks=10)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
