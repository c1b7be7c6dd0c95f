"""What dashboards are made of: panels with queries, variables, and rows that lay panels out. Grafana's schema 39."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SCHEMA_VERSION: Final = 39
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_XY_CHART_VERSION: Final = "11.1.0"
"""The version of Grafana whose options an `xychart` has. Without it, Grafana takes them for those of older versions."""
_COLUMNS: Final = 24
_HEIGHT: Final = 8
SCRAPED: Final = 'namespace=~"$namespace",job=~"$job"'
"""The matchers of every query. Both variables also match series without the label, whatever scrapes them."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and how its series are named."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel with a title, one sentence about what it shows, and its queries."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    """Of Grafana: `reqps`, `s`, `percentunit`, `short`."""
    kind: str = "timeseries"
    """`timeseries`, `state-timeline`; `heatmap`, each query a row of it, from the lowest up; `xychart`, of two queries
    the first to the right and the second upwards, a point for each value of `joined_by`."""
    names: Mapping[int, str] | None = None
    """What is shown instead of a number."""
    band: tuple[str, str] | None = None
    """Names of two series, between which the area is filled: the upper one, then the lower one."""
    joined_by: str = ""
    """The label by which an `xychart` joins its two queries."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels side by side, under a heading."""

    title: str
    panels: tuple[Panel, ...]


def dashboard(
    uid: str, title: str, description: str, variables: Sequence[dict[str, Any]], rows: Sequence[Row]
) -> dict[str, Any]:
    """Return the model of a dashboard, as Grafana imports it."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["tidewatch"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_datasource(), *variables]},
        "panels": _laid_out(rows),
    }


def variable(name: str, metric: str, label: str) -> dict[str, Any]:
    """Return a variable with the values of a label; everything is selected at first."""
    return {
        "name": name,
        "label": label.capitalize(),
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": f"label_values({metric}, {label})", "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def choice(name: str, values: Sequence[str]) -> dict[str, Any]:
    """Return a variable with fixed values; the first one is selected at first."""
    options = [{"text": value, "value": value, "selected": value == values[0]} for value in values]
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "custom",
        "query": ",".join(values),
        "options": options,
        "current": options[0],
        "multi": False,
        "includeAll": False,
    }


def quantiles(histogram: str, by: str = "", matchers: str = SCRAPED) -> tuple[Query, ...]:
    """Return the median and the 99th percentile of a histogram, by a label if one is given."""
    labels = f"le, {by}" if by else "le"
    suffix = f" {{{{{by}}}}}" if by else ""
    buckets = f"sum by ({labels}) (rate({histogram}_bucket{{{matchers}}}[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({share}, {buckets})", f"p{round(share * 100)}{suffix}") for share in (0.5, 0.99)
    )


def rate(counter: str, by: str, matchers: str = SCRAPED) -> Query:
    """Return how often a counter goes up each second, by a label."""
    return Query(f"sum by ({by}) (rate({counter}{{{matchers}}}[$__rate_interval]))", _legend(by))


def increase(counter: str, by: str, matchers: str = SCRAPED) -> Query:
    """Return by how much a counter went up between two points of the chart, by a label."""
    return Query(f"sum by ({by}) (increase({counter}{{{matchers}}}[$__rate_interval]))", _legend(by))


def gauge(metric: str, by: str, function: str = "max", matchers: str = SCRAPED) -> Query:
    """Return a gauge, of several replicas the largest or smallest, by labels."""
    return Query(f"{function} by ({by}) ({metric}{{{matchers}}})", _legend(by))


def age(metric: str, by: str, matchers: str = SCRAPED) -> Query:
    """Return how long ago a time was, in seconds; of several replicas the latest time counts."""
    return Query(f"time() - max by ({by}) ({metric}{{{matchers}}})", _legend(by))


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _laid_out(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows and panels with their places; panels of a row share its width."""
    placed: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        position = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        placed.append({"id": len(placed) + 1, "type": "row", "title": row.title, "gridPos": position, "panels": []})
        width = _COLUMNS // len(row.panels)
        for index, panel in enumerate(row.panels):
            position = {"x": index * width, "y": top + 1, "w": width, "h": _HEIGHT}
            placed.append({"id": len(placed) + 1, "gridPos": position, **_model(panel)})
        top += 1 + _HEIGHT
    return placed


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    if panel.band is None:
        return []
    upper, lower = panel.band
    properties = [{"id": "custom.fillBelowTo", "value": lower}, {"id": "custom.fillOpacity", "value": 20}]
    return [{"matcher": {"id": "byName", "options": upper}, "properties": properties}]


def _model(panel: Panel) -> dict[str, Any]:
    mappings = []
    if panel.names:
        options = {
            str(value): {"text": text, "index": index} for index, (value, text) in enumerate(panel.names.items())
        }
        mappings = [{"type": "value", "options": options}]
    is_table = panel.kind == "xychart"
    model: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "mappings": mappings},
            "overrides": _overrides(panel),
        },
        "options": _options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
            }
            | ({"format": "table", "instant": True} if is_table else {})
            for index, query in enumerate(panel.queries)
        ],
    }
    if is_table:
        model["fieldConfig"]["defaults"]["custom"] = {"show": "points"}
        model |= {"transformations": _joined(panel), "pluginVersion": _XY_CHART_VERSION}
    return model


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        return {"legend": {"displayMode": "list", "placement": "bottom"}}
    if panel.kind == "heatmap":
        color = {"mode": "scheme", "scheme": "Oranges", "steps": 64}
        # The queries are the rows already, with the number of each in its cell.
        return {"calculate": False, "color": color, "yAxis": {"unit": "short"}, "cellValues": {"unit": panel.unit}}
    if panel.kind == "xychart":
        x, y = ({"matcher": {"id": "byName", "options": query.legend}} for query in panel.queries)
        series = {"frame": {"matcher": {"id": "byIndex", "options": 0}}, "x": x, "y": y}
        return {"mapping": "manual", "series": [series], "legend": {"showLegend": False}}
    return {}


def _joined(panel: Panel) -> list[dict[str, Any]]:
    """Return what makes one table of two: a row for each value of the label, its columns named after the queries."""
    names = {f"Value #{chr(ord('A') + index)}": query.legend for index, query in enumerate(panel.queries)}
    hidden = {f"Time {index + 1}": True for index in range(len(panel.queries))}
    return [
        {"id": "joinByField", "options": {"byField": panel.joined_by, "mode": "inner"}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}},
    ]
