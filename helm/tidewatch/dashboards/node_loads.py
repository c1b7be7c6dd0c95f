"""A row of the dashboard of nodes: how their loads are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders import heatmap as heatmaps
from grafana_foundation_sdk.builders import xychart as xycharts
from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap, units, xychart
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from helm.tidewatch.dashboards.panels import Row, chart, link, panel
from helm.tidewatch.dashboards.queries import SCRAPED, count, query

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import DashboardLink
    from grafana_foundation_sdk.builders.prometheus import Dataquery

_LOAD: Final = "tidewatch_node_utilization_ratio"
_CHOSEN: Final = f'{SCRAPED},resource="$resource",window="$window"'
_BUSIEST: Final = 10
_BAND_PERCENT: Final = 10
_XY_CHART_VERSION: Final = "11.1.0"
"""The version of Grafana that defines the options of an `xychart`; without it, Grafana reads them as those of older
versions."""


def _of_nodes(stat: str) -> str:
    """Return a statistic of each node; of several replicas, the largest value counts."""
    return f'max by (node) ({_LOAD}{{{_CHOSEN},stat="{stat}"}})'


def _band(lower_percent: int) -> Dataquery:
    """Return how many nodes have an average within a band; the lowest band has idle nodes, the highest full ones."""
    upper_percent = lower_percent + _BAND_PERCENT
    above = f" > {lower_percent / 100:g}" if lower_percent else ""
    below = f" <= {upper_percent / 100:g}" if upper_percent < 100 else ""
    return count(f"{_of_nodes('avg')}{above}{below}", _of_nodes("avg"), f"{lower_percent} to {upper_percent}%")


def loads() -> Row:
    """Return the row of the nodes' loads."""
    return Row(
        "Load",
        (
            _scatter(),
            panel(
                heatmaps.Panel(),
                "Nodes by utilisation",
                "How many nodes have an average within each band of ten percent.",
                *map(_band, range(0, 100, _BAND_PERCENT)),
            )
            .unit(units.NoUnit)
            # Each query is already a row, with its number in the cell.
            .calculate(calculate=False)
            .color(heatmaps.HeatmapColorOptions().mode(heatmap.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
            .cell_values(heatmaps.CellValues().unit(units.NoUnit).decimals(0))
            .y_axis(heatmaps.YAxisConfig().unit(units.Short)),
            chart(
                "Busiest nodes",
                "The averages of the ten busiest nodes.",
                query(f"topk({_BUSIEST}, {_of_nodes('avg')})", "{{node}}"),
                unit=units.PercentUnit,
            ).data_links([of_node()]),
        ),
    )


def of_node() -> DashboardLink:
    """Return the link from a series to the windows of its node."""
    return link("Windows of the node", "${page:raw}/watcher/${__field.labels.node:percentencode}")


def _scatter() -> xycharts.Panel:
    """Return a point for each node; its two queries become one table with a row for each node."""
    x, y = "average", "standard deviation"
    queries = [
        query(_of_nodes(name), legend).format(PromQueryFormat.TABLE).instant()
        for name, legend in (("avg", x), ("std", y))
    ]
    frame = xycharts.XychartXYSeriesConfigFrame().matcher(xycharts.MatcherConfig().id("byIndex").options(0))
    series = (
        xycharts.XYSeriesConfig()
        .frame(frame)
        .x(xycharts.XychartXYSeriesConfigX().matcher(_by_name(x)))
        .y(xycharts.XychartXYSeriesConfigY().matcher(_by_name(y)))
    )
    join = models.DataTransformerConfig("joinByField", options={"byField": "node", "mode": "inner"})
    organize = models.DataTransformerConfig(
        "organize",
        options={
            "excludeByName": {"Time 1": True, "Time 2": True},
            "renameByName": {"Value #A": x, "Value #B": y},
        },
    )
    shown = (
        panel(
            xycharts.Panel(),
            "Mean and standard deviation",
            "Each node as a point: its average to the right, its standard deviation upwards. Both low is room for"
            " pods; a node whose sum comes near 1 runs into its capacity.",
            *queries,
        )
        .unit(units.PercentUnit)
        .min(0)
        .transformations([join, organize])
        .mapping(xychart.SeriesMapping.MANUAL)
        .show(xychart.XYShowMode.POINTS)
        .legend(VizLegendOptions().show_legend(show_legend=False).calcs([]))
        .series([series])
    )
    # The builder of this kind of panel has no method for it, so its value is changed.
    shown.build().plugin_version = _XY_CHART_VERSION
    return shown


def _by_name(name: str) -> xycharts.MatcherConfig:
    return xycharts.MatcherConfig().id("byName").options(name)
