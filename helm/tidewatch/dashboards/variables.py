"""The variables of the dashboards, whose values readers choose at the top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from helm.tidewatch.dashboards.panels import DATASOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE: Final = "http://localhost:8081"
"""The recommender's page behind `kubectl port-forward`. The chart puts `dashboards.pages.recommender` in its place."""
NODES_PAGE: Final = "http://localhost:2020"
"""`tidewatch-adapter nodes` behind `kubectl port-forward`. The chart puts `dashboards.pages.nodes` in its place."""


def choices(name: str, metric: str, label: str = "", matchers: str = "") -> builders.QueryVariable:
    """Return a variable with the values of a label; everything is selected at first."""
    every = models.VariableOption(text="All", value="$__all")
    return (
        one_of(name, metric, label, matchers)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".*")
        .current(every)
    )


def one_of(name: str, metric: str, label: str = "", matchers: str = "") -> builders.QueryVariable:
    """Return a variable with one value of a label; at first, the first value is selected."""
    series = f"{metric}{{{matchers}}}" if matchers else metric
    return (
        builders.QueryVariable(name)
        .label(name.capitalize())
        .datasource(DATASOURCE)
        .query(f"label_values({series}, {label or name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def fixed(name: str, values: Sequence[str]) -> builders.CustomVariable:
    """Return a variable with fixed values; the first one is selected at first."""
    options = [models.VariableOption(text=value, value=value, selected=value == values[0]) for value in values]
    variable = builders.CustomVariable(name).label(name.capitalize()).values(",".join(values))
    return variable.options(options).current(options[0])


def address(name: str, label: str, url: str) -> builders.TextBoxVariable:
    """Return a variable with the address of a page, to which panels link."""
    option = models.VariableOption(text=url, value=url, selected=True)
    return builders.TextBoxVariable(name).label(label).default_value(url).current(option).options([option])
