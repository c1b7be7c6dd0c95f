"""Elements that the dashboards share: panels, rows and links, made by the builders of Grafana's foundation SDK."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import stat as stat_builders
from grafana_foundation_sdk.builders import statetimeline, timeseries
from grafana_foundation_sdk.models import common, units
from grafana_foundation_sdk.models import dashboard as models

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grafana_foundation_sdk.builders.prometheus import Dataquery
    from grafana_foundation_sdk.cog.builder import Builder
    from grafana_foundation_sdk.cog.variants import Dataquery as AnyQuery

DATASOURCE: Final = models.DataSourceRef("prometheus", "${datasource}")
DOCS: Final = "https://github.com/tidewatch/tidewatch/blob/main/docs"
COLUMNS: Final = 24
_STAT_HEIGHT: Final = 4
_CHART_HEIGHT: Final = 9
_MOST_CHARTS_BESIDE: Final = 3


class _AnyPanel(Protocol):
    """The methods that the builders of all kinds of panels have in common; they have no common base class."""

    def title(self, title: str) -> Self: ...
    def description(self, description: str) -> Self: ...
    def unit(self, unit: str) -> Self: ...
    def datasource(self, datasource: models.DataSourceRef) -> Self: ...
    def links(self, links: list[Builder[models.DashboardLink]]) -> Self: ...
    def targets(self, targets: list[Builder[AnyQuery]]) -> Self: ...


_Panel = TypeVar("_Panel", bound=_AnyPanel)


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading: statistics beside each other, at most three charts in a line."""

    title: str
    panels: tuple[Builder[models.Panel], ...]
    is_collapsed: bool = False
    """Whether the row is collapsed at first, because it is read only when something is wrong."""


def panel(of: _Panel, title: str, description: str, *targets: Dataquery, alert: str = "") -> _Panel:
    """Return the panel with its title, one sentence about what it shows, its queries, and the runbook of its alert."""
    lettered: list[Builder[AnyQuery]] = [
        target.ref_id(chr(ord("A") + index)).datasource(DATASOURCE) for index, target in enumerate(targets)
    ]
    shown = of.title(title).description(description).datasource(DATASOURCE).targets(lettered)
    return shown.links([link("Runbook", f"{DOCS}/runbooks.md#{alert.lower()}")]) if alert else shown


def chart(
    title: str, description: str, *targets: Dataquery, unit: str = units.Short, alert: str = ""
) -> timeseries.Panel:
    """Return lines over time; the legend is a table with the largest current value first."""
    legend = (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
        .calcs(["lastNotNull", "max"])
        .sort_by("Last *")
        .sort_desc(sort_desc=True)
    )
    tooltip = (
        common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    )
    return (
        panel(timeseries.Panel(), title, description, *targets, alert=alert)
        .unit(unit)
        .min(0)
        .legend(legend)
        .tooltip(tooltip)
        .show_points(common.VisibilityMode.NEVER)
        .fill_opacity(8)
    )


def limit_line(lines: timeseries.Panel, name: str) -> timeseries.Panel:
    """Return the chart with one series drawn as a limit: a red, dashed line."""
    red = models.FieldColor(mode=models.FieldColorModeId.FIXED, fixed_color="red")
    dashes = common.LineStyle(fill="dash", dash=[8.0, 6.0])
    properties = [models.DynamicConfigValue("color", red), models.DynamicConfigValue("custom.lineStyle", dashes)]
    return lines.override_by_name(name, properties)


def counts(title: str, description: str, *targets: Dataquery, alert: str = "") -> timeseries.Panel:
    """Return a chart of whole numbers, such as counts of pods, whose lines have steps."""
    lines = chart(title, description, *targets, unit=units.NoUnit, alert=alert)
    return lines.decimals(0).line_interpolation(common.LineInterpolation.STEP_AFTER)


def stat(
    title: str,
    description: str,
    target: Dataquery,
    *limits: tuple[float, str],
    below: str = "",
    names: Mapping[int, tuple[str, str]] | None = None,
    unit: str = units.NoUnit,
    alert: str = "",
) -> stat_builders.Panel:
    """Return the current number, or its name: green by default, and from each limit on in the limit's colour.

    The query is instant: a series that has ended shows nothing, and not its last value.
    """
    is_judged = bool(limits or names)
    return (
        panel(stat_builders.Panel(), title, description, target.instant(), alert=alert)
        .unit(unit)
        .mappings([mapping(names)] if names else [])
        .thresholds(_thresholds(below or ("green" if is_judged else "text"), limits))
        .color_scheme(builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .color_mode(common.BigValueColorMode.BACKGROUND_SOLID if is_judged else common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
    )


def states(
    title: str, description: str, target: Dataquery, names: Mapping[int, tuple[str, str]], alert: str = ""
) -> statetimeline.Panel:
    """Return a line of states for each series, each state with its name and colour."""
    return (
        panel(statetimeline.Panel(), title, description, target, alert=alert)
        .unit(units.NoUnit)
        .mappings([mapping(names)])
        .color_scheme(builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .legend(common_builders.VizLegendOptions().show_legend(show_legend=False).calcs([]))
        .row_height(0.8)
        .fill_opacity(80)
        .per_page(20)
    )


def mapping(names: Mapping[int, tuple[str, str]]) -> models.ValueMap:
    """Return the names and colours that are shown instead of numbers."""
    return models.ValueMap(
        {
            str(value): models.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in enumerate(names.items())
        }
    )


def dashboard(
    builder: builders.Dashboard,
    variables: Sequence[Builder[models.VariableModel]],
    annotations: Sequence[Builder[models.AnnotationQuery]],
    rows: Sequence[Row],
) -> models.Dashboard:
    """Return the dashboard with the elements that all dashboards have, and its rows laid out."""
    others = builders.DashboardLink("Tidewatch").type(models.DashboardLinkType.DASHBOARDS).tags(["tidewatch"])
    builder = (
        builder.tags(["tidewatch"])
        .editable()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-3h", "now")
        .variables([builders.DatasourceVariable("datasource").label("Data source").type("prometheus"), *variables])
        .annotations(list(annotations))
        .link(others.as_dropdown(as_dropdown=True).keep_time(keep_time=True))
        .link(link("What each panel tells", f"{DOCS}/dashboards.md"))
        .link(link("Runbooks", f"{DOCS}/runbooks.md"))
    )
    top, number = 0, 1
    for row in rows:
        heading = builders.Row(row.title).id(number).grid_pos(models.GridPos(x=0, y=top, w=COLUMNS, h=1))
        positions = _positions([one.build() for one in row.panels], top + 1)
        for offset, (one, position) in enumerate(zip(row.panels, positions, strict=True), start=1):
            built = one.build()
            built.id_val, built.grid_pos = number + offset, position
        builder = _with_row(builder, heading, row)
        top = top + 1 if row.is_collapsed else positions[-1].y + positions[-1].h
        number += 1 + len(row.panels)
    return builder.build()


def link(title: str, url: str) -> builders.DashboardLink:
    """Return a link that opens in another tab."""
    return builders.DashboardLink(title).type(models.DashboardLinkType.LINK).url(url).target_blank(target_blank=True)


def entry_of(recommendation: str = "${__field.labels.recommendation:percentencode}") -> builders.DashboardLink:
    """Return the link to a recommendation on the recommender's page; by default, that of the clicked series."""
    return link("Entry on the page", f"${{page:raw}}/?show={recommendation}")


def _thresholds(below: str, limits: Sequence[tuple[float, str]]) -> builders.ThresholdsConfig:
    steps = [models.Threshold(None, below), *(models.Threshold(*limit) for limit in limits)]
    return builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _with_row(builder: builders.Dashboard, heading: builders.Row, row: Row) -> builders.Dashboard:
    """Return the dashboard with a row; the row's panels are inside it if it is collapsed, and follow it otherwise."""
    if row.is_collapsed:
        for one in row.panels:
            heading = heading.with_panel(one)
        return builder.with_row(heading.collapsed(collapsed=True))
    builder = builder.with_row(heading)
    for one in row.panels:
        builder = builder.with_panel(one)
    return builder


def _positions(panels: Sequence[models.Panel], top: int) -> list[models.GridPos]:
    """Return the places of the panels of a row."""
    is_of_stats = all(one.type_val == "stat" for one in panels)
    lines = 1 if is_of_stats else math.ceil(len(panels) / _MOST_CHARTS_BESIDE)
    height, beside = _STAT_HEIGHT if is_of_stats else _CHART_HEIGHT, math.ceil(len(panels) / lines)
    places = []
    for index in range(len(panels)):
        line, column = divmod(index, beside)
        in_line = min(beside, len(panels) - line * beside)
        left, right = (COLUMNS * edge // in_line for edge in (column, column + 1))
        places.append(models.GridPos(x=left, y=top + line * height, w=right - left, h=height))
    return places
