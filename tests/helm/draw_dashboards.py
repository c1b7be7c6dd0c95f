"""Draws the data of every panel into docs/images, from programs that run for a minute.

python -m tests.helm.draw_dashboards [NAME …]
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure

from helm.tidewatch.dashboards.texts import DASHBOARDS
from tests.helm.scraped import SCRAPED, as_sent
from tests.support.checkout import CHECKOUT
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tests.support.prometheus import ScrapedPrometheus

SECONDS: Final = 60.0
_COLUMNS: Final = 3
_SKIPPED_SECONDS: Final = 8.0
"""At the start, where rates have too few samples."""


def main(names: Sequence[str]) -> None:
    """Draw these dashboards, or all if none is named."""
    for name in names or DASHBOARDS:
        with tempfile.TemporaryDirectory() as folder, SCRAPED[name](Path(folder)) as (prometheus, work):
            started = time.time()
            for number in rounds(0.2, SECONDS):
                work(number)
            draw(name, prometheus, started + _SKIPPED_SECONDS, time.time())


def draw(name: str, prometheus: ScrapedPrometheus, start: float, end: float) -> None:
    """Write the picture of one dashboard."""
    panels = [panel for panel in DASHBOARDS[name]()["panels"] if panel["type"] != "row"]
    rows = math.ceil(len(panels) / _COLUMNS)
    figure = Figure(figsize=(5 * _COLUMNS, 2.7 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS).flat)
    for panel, axis in zip(panels, axes, strict=False):
        DRAWING.get(panel["type"], draw_lines)(axis, panel, prometheus, start, end)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    figure.savefig(CHECKOUT / "docs" / "images" / f"dashboard-{name}.png", dpi=70)


def draw_lines(axis: Axes, panel: dict[str, Any], prometheus: ScrapedPrometheus, start: float, end: float) -> None:
    """Draw a line for each series."""
    for target in panel["targets"]:
        for series in values(prometheus, as_sent(target["expr"]), start, end):
            times, numbers = zip(*((float(t) - start, float(v)) for t, v in series["values"]), strict=True)
            axis.step(times, numbers, where="post", label=legend(target["legendFormat"], series["metric"]))
    decorate(axis, panel)
    axis.legend(fontsize=6, loc="upper left")


def draw_points(axis: Axes, panel: dict[str, Any], prometheus: ScrapedPrometheus, _start: float, _end: float) -> None:
    """Draw a point for each value of the label that joins the two queries."""
    label = panel["transformations"][0]["options"]["byField"]
    x, y = (
        {row["metric"][label]: float(row["value"][1]) for row in prometheus.query(as_sent(target["expr"]))}
        for target in panel["targets"]
    )
    axis.scatter([x[name] for name in sorted(x)], [y[name] for name in sorted(x)], s=12)
    decorate(axis, panel)
    axis.set_xlim(0, 1)
    axis.set_xlabel(panel["targets"][0]["legendFormat"], fontsize=8)
    axis.set_ylabel(panel["targets"][1]["legendFormat"], fontsize=8)


def draw_cells(axis: Axes, panel: dict[str, Any], prometheus: ScrapedPrometheus, start: float, end: float) -> None:
    """Draw a row for each query."""
    rows = [values(prometheus, as_sent(target["expr"]), start, end)[0]["values"] for target in panel["targets"]]
    width = min(map(len, rows))
    cells = [[float(value) for _, value in row[-width:]] for row in rows]
    decorate(axis, panel)
    axis.imshow(cells, origin="lower", aspect="auto", cmap="Oranges", interpolation="nearest")
    axis.set_ylim(-0.5, len(rows) - 0.5)
    axis.set_yticks(range(len(rows)), [target["legendFormat"] for target in panel["targets"]])


DRAWING: Final = {"xychart": draw_points, "heatmap": draw_cells}
"""By kind of panel; all others are lines."""


def values(prometheus: ScrapedPrometheus, expr: str, start: float, end: float) -> list[dict[str, Any]]:
    """Return the series of a range query."""
    parameters = urllib.parse.urlencode({"query": expr, "start": start, "end": end, "step": "1s"})
    with urllib.request.urlopen(f"{prometheus.url}/api/v1/query_range?{parameters}", timeout=10) as response:
        result: list[dict[str, Any]] = json.load(response)["data"]["result"]
    return result


def legend(template: str, labels: dict[str, str]) -> str:
    """Return the name of a series as Grafana shows it."""
    for name, value in labels.items():
        template = template.replace(f"{{{{{name}}}}}", value)
    return template


def decorate(axis: Axes, panel: dict[str, Any]) -> None:
    """Add title and unit."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    axis.set_title(panel["title"], fontsize=10)
    axis.set_ylabel("" if unit == "short" else unit, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.set_ylim(bottom=0)


if __name__ == "__main__":
    main(sys.argv[1:])
