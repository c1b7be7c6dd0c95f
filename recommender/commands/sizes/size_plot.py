"""The usage of one workload as a picture, with the current requests and the recommended ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.resources.workloads import CPU, MEMORY
from recommender.plots.labels import cut_axis, legend_beside, shorten_name
from recommender.plots.limits import cut_off_text, usual_top
from recommender.plots.literal_text import literal_text
from recommender.plots.times import time_axis
from recommender.running.usage import usage_queries
from recommender.running.usage.prometheus_vectors import matrix

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from recommender.commands.sizes.size_reading import Sizes
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.resources.size_record import ResourceSize, SizeRecord
    from recommender.running.usage.cluster_history import ClusterReader
    from recommender.running.usage.usage_queries import Resolution

MOST_PODS: Final = 200
"""The largest number of pods that are drawn, the last ones by name, since more lines cannot be distinguished."""
_USAGE: Final = "#8c8c8c"
_TARGET: Final = "#0b6fb8"
_REQUEST: Final = "#d7191c"
_TITLE_COLUMNS: Final = 110
_FAR_RATIO: Final = 10.0
"""A request that is larger than the usage and the recommendation by more than this factor would flatten both."""
_UNITS: Final = {CPU: ("cores", 1.0, 0.001), MEMORY: ("MiB", 2.0**-20, 2.0**-20)}
"""By resource: the unit, and the factors that convert samples and sizes to it."""


@literal_text()
def write_size_plot(reader: ClusterReader, sizes: Sizes, resolution: Resolution, path: Path) -> None:
    """Write the picture of all records of `sizes` with a size, in the format of the file's suffix.

    Raises PrometheusError, OSError, and ValueError for a format that cannot be written.
    """
    records = [record for record in sizes.records if record.cpu is not None]
    figure = Figure(figsize=(12, 1 + 4.5 * len(records)), dpi=110, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(2 * len(records), 1, squeeze=False)[:, 0]
    for place, record in enumerate(records):
        for panel, resource, size in (
            (panels[2 * place], CPU, record.cpu),
            (panels[2 * place + 1], MEMORY, record.memory),
        ):
            if size is not None:
                lines = _draw_usage(panel, reader, sizes, record, resolution, resource)
                _draw_size(panel, resource, size, lines)
                name = shorten_name(f"{record.workload} {record.container}", _TITLE_COLUMNS)
                panel.set_title(f"{name}: {resource}", loc="left", fontsize=10)
    canvas.print_figure(str(path))


def _draw_usage(
    panel: Axes, reader: ClusterReader, sizes: Sizes, record: SizeRecord, resolution: Resolution, resource: str
) -> list[tuple[FloatArray, FloatArray]]:
    """Draw a line for each pod; return the lines, each as days and as values in the unit of the panel."""
    lines = []
    pods = sizes.pods[record.workload][-MOST_PODS:]
    where = (
        usage_queries.namespace_matcher((record.workload.namespace,))
        + usage_queries.pods_matcher(pods)
        + usage_queries.container_matcher(record.container)
    )
    cpu = usage_queries.cpu_usage(where, resolution.rate_seconds)
    query = cpu if resource == CPU else usage_queries.memory_usage(where)
    steps = int(sizes.window.seconds // resolution.step_seconds)
    start = sizes.window.end - steps * resolution.step_seconds
    for series in matrix(reader.client, query, start, sizes.window.end, resolution.step_seconds).series:
        seconds = np.frombuffer(series.timestamps)
        moments = (seconds * 1000).astype("datetime64[ms]")
        values = np.frombuffer(series.values) * _UNITS[resource][1]
        panel.plot(moments, values, color=_USAGE, linewidth=0.6, alpha=0.7)
        lines.append((seconds / DAY_SECONDS, values))
    time_axis(panel, start)
    return lines


def _draw_size(panel: Axes, resource: str, size: ResourceSize, lines: list[tuple[FloatArray, FloatArray]]) -> None:
    """Draw the size, and limit the axis to usage and size; a request far above both appears only in the legend."""
    unit, _, factor = _UNITS[resource]
    panel.axhline(size.target * factor, color=_TARGET, label="recommended")
    panel.axhspan(size.lower * factor, size.upper * factor, color=_TARGET, alpha=0.12, label="lower to upper bound")
    usage = [value for _, values in lines for value in values.tolist()]
    least = max(usual_top(usage, 0.0), size.upper * factor, size.target * factor)
    if size.request is not None:
        request = size.request * factor
        if request <= _FAR_RATIO * least:
            least = max(least, request)
            panel.axhline(request, color=_REQUEST, linestyle="--", label="request now")
        else:
            panel.plot([], [], color=_REQUEST, linestyle="--", label=f"request now: {cut_off_text(request)} {unit}")
    cut_axis([panel], [lines], least=least)
    panel.set_ylabel(unit)
    legend_beside(panel)
