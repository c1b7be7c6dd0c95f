"""Marks on all charts of a dashboard: scale calls, and configurations that were read again."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from helm.tidewatch.dashboards.panels import DATASOURCE


class PrometheusAnnotation(models.AnnotationQuery):
    """The SDK's annotation, with the title that Grafana's Prometheus data source reads beside the query."""

    title_format: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the fields of the SDK and the title."""
        return super().to_json() | {"titleFormat": self.title_format}


class _Annotation(builders.AnnotationQuery):
    def __init__(self, title_format: str) -> None:
        super().__init__()
        self._internal = PrometheusAnnotation()
        self._internal.title_format = title_format


def annotation(name: str, title: str, expr: str, color: str) -> _Annotation:
    """Return marks on all charts at the times when the query is above 0."""
    query = _Annotation(title).name(name).datasource(DATASOURCE).enable(enable=True)
    return query.icon_color(color).expr(expr)


def reloads(program: str, matchers: str) -> _Annotation:
    """Return the times at which a program read its configuration again, whether it was accepted or not."""
    counter = f"tidewatch_{program}_config_reloads_total{{{matchers}}}"
    expr = f"sum by (instance, result) (increase({counter}[$__rate_interval])) > 0"
    return annotation("Reloads", "Configuration read again by {{instance}}: {{result}}", expr, "purple")


def scale_calls(matchers: str) -> tuple[_Annotation, ...]:
    """Return the times at which a size was written, and those at which that failed."""
    marks = ("Scale calls", "ok", "blue"), ("Failed scale calls", "error", "red")
    return tuple(
        annotation(
            name,
            f"{name}: {{{{recommendation}}}}",
            f"sum by (recommendation) (increase(tidewatch_scale_calls_total{{{matchers},"
            f'result="{result}"}}[$__rate_interval])) > 0',
            color,
        )
        for name, result, color in marks
    )
