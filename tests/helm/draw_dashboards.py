"""Draws the data of every panel into docs/images, from programs that run for a minute.

python -m tests.helm.draw_dashboards
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure

from helm.tidewatch.dashboards.texts import DASHBOARDS
from tests.helm.chart import ROOT
from tests.helm.scraped import SCRAPED, as_sent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tests.support.prometheus import ScrapedPrometheus

SECONDS: Final = 60.0
_COLUMNS: Final = 3
_SKIPPED_SECONDS: Final = 8.0
"""At the start, where rates have too few samples."""


def main() -> None:
    """Draw all dashboards."""
    for name in DASHBOARDS:
        with tempfile.TemporaryDirectory() as folder, SCRAPED[name](Path(folder)) as (prometheus, work):
            started, number = time.time(), 0
            while time.time() < started + SECONDS:
                number += 1
                work(number)
                time.sleep(0.2)
            draw(name, prometheus, started + _SKIPPED_SECONDS, time.time())


def draw(name: str, prometheus: ScrapedPrometheus, start: float, end: float) -> None:
    """Write the picture of one dashboard."""
    panels = [panel for panel in DASHBOARDS[name]()["panels"] if panel["type"] != "row"]
    rows = math.ceil(len(panels) / _COLUMNS)
    figure = Figure(figsize=(5 * _COLUMNS, 2.7 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS).flat)
    for panel, axis in zip(panels, axes, strict=False):
        for target in panel["targets"]:
            for series in values(prometheus, as_sent(target["expr"]), start, end):
                times, numbers = zip(*((float(t) - start, float(v)) for t, v in series["values"]), strict=True)
                axis.step(times, numbers, where="post", label=legend(target["legendFormat"], series["metric"]))
        decorate(axis, panel)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    figure.savefig(ROOT / "docs" / "images" / f"dashboard-{name}.png", dpi=70)


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
    """Add title, unit and names of series."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    axis.set_title(panel["title"], fontsize=10)
    axis.set_ylabel("" if unit == "short" else unit, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=6, loc="upper left")


if __name__ == "__main__":
    main()
