"""Draws the dashboards into docs/images, laid out as in Grafana, from programs that run for a minute.

python -m tests.helm.draw_dashboards [NAME …]
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure

from helm.tidewatch.dashboards.panels import COLUMNS
from helm.tidewatch.dashboards.texts import DASHBOARDS
from tests.helm.drawn_panels import COLORS, DRAWING, Mark, Series, draw_stat
from tests.helm.grafana import as_sent, model_of
from tests.helm.scraped import SCRAPED
from tests.support.checkout import CHECKOUT
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from tests.support.prometheus import ScrapedPrometheus

TITLES: Final = "Titles"
"""The key under which a picture names the panels that it shows, so that a test finds one that is out of date."""
SECONDS: Final = 75.0
_SKIPPED_SECONDS: Final = 14.0
"""The seconds at the start, left out since rates have too few samples."""
_WIDTH_INCHES: Final = 16.0
_UNIT_INCHES: Final = 0.33
"""Inches for Grafana's unit of height."""
_DOTS_PER_INCH: Final = 90
_MARGINS_INCHES: Final = {
    "timeseries": (0.62, 0.15, 0.34, 1.1),
    "state-timeline": (1.9, 0.15, 0.38, 0.3),
    "heatmap": (0.75, 0.15, 0.38, 0.3),
    "xychart": (0.7, 0.25, 0.38, 0.45),
}
"""The margins to the left, right, top and bottom of what a kind of panel draws."""


def main(names: Sequence[str]) -> None:
    """Draw these dashboards, or all if none is named."""
    for name in names or DASHBOARDS:
        with tempfile.TemporaryDirectory() as folder, SCRAPED[name](Path(folder)) as (prometheus, work):
            started = time.time()
            for number in rounds(0.2, SECONDS):
                work(number)
            draw(Answers(name, prometheus, started + _SKIPPED_SECONDS, time.time()))


class Answers:
    """The answers of Prometheus to the queries of one dashboard, for the time span of the picture."""

    def __init__(self, name: str, prometheus: ScrapedPrometheus, start: float, end: float) -> None:
        self.name = name
        self._url = prometheus.url
        self._start = start
        self._end = end

    def series(self, panel: dict[str, Any]) -> list[Series]:
        """Return the series of a panel's queries, named as in its legend."""
        return [
            Series(_legend(target["legendFormat"], one["metric"]), *zip(*self._points(one), strict=True))
            for target in panel["targets"]
            for one in self._query_result(target["expr"])
        ]

    def marks(self) -> list[Mark]:
        """Return the times that the annotations mark; of a mark that lasts, its first time."""
        marks = []
        for annotation in model_of(self.name)["annotations"]["list"]:
            for one in self._query_result(annotation["expr"]):
                times = [at for at, _ in self._points(one)]
                begins = [at for at, before in zip(times, [-9.0, *times], strict=False) if at - before > 1.5]
                marks += [Mark(at, COLORS[annotation["iconColor"]]) for at in begins]
        return marks

    def _points(self, one: dict[str, Any]) -> list[tuple[float, float]]:
        return [(float(at) - self._start, float(value)) for at, value in one["values"]]

    def _query_result(self, expr: str) -> list[dict[str, Any]]:
        query = {"query": as_sent(self.name, expr), "start": self._start, "end": self._end, "step": "1s"}
        with urllib.request.urlopen(f"{self._url}/api/v1/query_range?{urllib.parse.urlencode(query)}") as response:
            result: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return result


def titles_of(name: str) -> list[str]:
    """Return the titles of all panels and rows, in the order in which they are drawn."""
    return [panel["title"] for panel, _ in _panels_with_places(name)]


def draw(answers: Answers) -> None:
    """Write the picture of one dashboard, with its collapsed rows open."""
    placed = list(_panels_with_places(answers.name))
    height = max(top + panel["gridPos"]["h"] for panel, top in placed)
    figure = Figure(figsize=(_WIDTH_INCHES, height * _UNIT_INCHES), facecolor="#f4f5f5")
    marks = answers.marks()
    for panel, top in placed:
        box = _Box(figure, panel["gridPos"], top, height)
        if panel["type"] == "row":
            box.axis.set_axis_off()
            box.titled(f"⌄  {panel['title']}", "#24292e", 11)
        elif panel["type"] == "stat":
            is_filled = draw_stat(box.axis, panel, answers.series(panel))
            box.titled(panel["title"], "white" if is_filled else "#24292e")
        else:
            box.titled(panel["title"], "#24292e")
            DRAWING[panel["type"]](box.inside(_MARGINS_INCHES[panel["type"]]), panel, answers.series(panel), marks)
    path = CHECKOUT / "docs" / "images" / f"dashboard-{answers.name}.png"
    figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={TITLES: "\n".join(titles_of(answers.name))})


class _Box:
    """The place of a panel, and its frame."""

    def __init__(self, figure: Figure, grid: dict[str, int], top: int, height: int) -> None:
        self._figure = figure
        self._full = (_WIDTH_INCHES, height * _UNIT_INCHES)
        column, gap = _WIDTH_INCHES / COLUMNS, 0.05
        self._left, self._width = grid["x"] * column + gap, grid["w"] * column - 2 * gap
        self._bottom = (height - top - grid["h"]) * _UNIT_INCHES + gap
        self._height = grid["h"] * _UNIT_INCHES - 2 * gap
        self.axis = self.inside((0.0, 0.0, 0.0, 0.0))
        self.axis.set(xticks=[], yticks=[])
        for spine in self.axis.spines.values():
            spine.set_color("#d8d9da")

    def inside(self, margins: tuple[float, float, float, float]) -> Axes:
        """Return axes within the frame, with margins to the left, right, top and bottom in inches."""
        left, right, top, bottom = margins
        width, height = self._full
        return self._figure.add_axes(
            (
                (self._left + left) / width,
                (self._bottom + bottom) / height,
                (self._width - left - right) / width,
                (self._height - top - bottom) / height,
            )
        )

    def titled(self, text: str, color: str, size: int = 9) -> None:
        """Write the title into the frame."""
        x, y = 0.09 / self._width, 1 - 0.08 / self._height
        self.axis.text(x, y, text, transform=self.axis.transAxes, va="top", fontsize=size, weight="bold", color=color)


def _panels_with_places(name: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield rows and panels, each with its distance from the top when every row is open."""
    opened = 0
    for panel in model_of(name)["panels"]:
        yield panel, panel["gridPos"]["y"] + opened
        for inner in panel.get("panels", ()):
            yield inner, inner["gridPos"]["y"] + opened
        if panel.get("panels"):
            places = [inner["gridPos"]["y"] + inner["gridPos"]["h"] for inner in panel["panels"]]
            opened += max(places) - panel["gridPos"]["y"] - 1


def _legend(template: str, labels: dict[str, str]) -> str:
    """Return the name of a series as Grafana shows it."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), template)


if __name__ == "__main__":
    main(sys.argv[1:])
