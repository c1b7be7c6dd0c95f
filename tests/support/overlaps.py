"""Texts of a figure that overlap each other, or extend beyond the figure."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_SLACK: Final = 1.5
"""Pixels that boxes may share: letters end before their boxes do."""


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts whose boxes share pixels."""
    boxes = _boxes(figure)
    return [
        (one, other)
        for (one, first), (other, second) in itertools.combinations(boxes, 2)
        if min(first.x1, second.x1) - max(first.x0, second.x0) > _SLACK
        and min(first.y1, second.y1) - max(first.y0, second.y0) > _SLACK
    ]


def outside(figure: Figure) -> list[str]:
    """Return the texts that the edge of the picture cuts."""
    width, height = figure.bbox.width, figure.bbox.height
    return [
        text
        for text, box in _boxes(figure)
        if box.x0 < -_SLACK or box.y0 < -_SLACK or box.x1 > width + _SLACK or box.y1 > height + _SLACK
    ]


def _boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return each drawn text with its place in pixels."""
    canvas = FigureCanvasAgg(figure)
    figure.draw(renderer := canvas.get_renderer())  # type: ignore[no-untyped-call]
    hidden = {id(label) for axes in figure.axes for label in _unseen_ticks(axes)}
    texts: list[Text] = figure.findobj(Text)
    shown = [text for text in texts if text.get_text().strip() and text.get_visible() and id(text) not in hidden]
    # An annotation's own box has its arrow too.
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in shown]
    return [(text, box) for text, box in boxes if box.width > 0]


def _unseen_ticks(axes: Axes) -> list[Text]:
    """Return the labels of ticks beyond the axis, and those of axes that are switched off."""
    found: list[Text] = []
    for axis, (low, high) in ((axes.xaxis, sorted(axes.get_xlim())), (axes.yaxis, sorted(axes.get_ylim()))):
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not axes.axison or not low <= tick.get_loc() <= high:
                found += [tick.label1, tick.label2]
    return found
