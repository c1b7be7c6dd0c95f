"""The dashboard of `tidewatch-adapter nodes`."""

from __future__ import annotations

from typing import Any, Final

from helm.tidewatch.dashboards.panels import (
    SCRAPED,
    Panel,
    Query,
    Row,
    choice,
    gauge,
    increase,
    quantiles,
    rate,
    variable,
)
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of

_STATES: Final = "tidewatch_nodes"
_LOAD: Final = "tidewatch_node_utilization_ratio"
_CALLS: Final = "tidewatch_adapter_extender_requests_total"
_CHOSEN: Final = f'{SCRAPED},resource="$resource",window="$window"'
_OF_RESOURCE: Final = f'{SCRAPED},resource="$resource"'
_BUSIEST: Final = 10
_BAND_PERCENT: Final = 10


def dashboard() -> dict[str, Any]:
    """Return its model."""
    return dashboard_of(
        "tidewatch-nodes",
        "Tidewatch / Nodes",
        "The load of nodes, hot nodes, how far the numbers can be trusted, and the requests of the scheduler.",
        (
            variable("namespace", _STATES, "namespace"),
            variable("job", _STATES, "job"),
            choice("resource", ("cpu", "memory", "network", "disk", "gpu")),
            choice("window", ("15m", "10m", "5m")),
        ),
        (_load(), _hot(), _trust(), _extender(), _prometheus()),
    )


def _of_nodes(stat: str) -> str:
    """Return a statistic of each node; of several replicas, the largest value counts."""
    return f'max by (node) ({_LOAD}{{{_CHOSEN},stat="{stat}"}})'


def _band(lower_percent: int) -> Query:
    """Return how many nodes have an average within a band; the lowest one has idle nodes, the highest full ones."""
    upper_percent = lower_percent + _BAND_PERCENT
    above = f" > {lower_percent / 100:g}" if lower_percent else ""
    below = f" <= {upper_percent / 100:g}" if upper_percent < 100 else ""
    return Query(f"count({_of_nodes('avg')}{above}{below}) or vector(0)", f"{lower_percent} to {upper_percent} %")


def _load() -> Row:
    return Row(
        "Load",
        (
            Panel(
                "Mean and standard deviation",
                "Each node as a point: its average to the right, its standard deviation upwards. Both low is room for"
                " pods; a node whose sum comes near 1 runs into its capacity.",
                (Query(_of_nodes("avg"), "average"), Query(_of_nodes("std"), "standard deviation")),
                "percentunit",
                kind="xychart",
                joined_by="node",
            ),
            Panel(
                "Nodes by utilisation",
                "How many nodes have an average within each band of ten percent.",
                tuple(_band(lower) for lower in range(0, 100, _BAND_PERCENT)),
                kind="heatmap",
            ),
            Panel(
                "Busiest nodes",
                "The averages of the ten busiest nodes.",
                (Query(f"topk({_BUSIEST}, {_of_nodes('avg')})", "{{node}}"),),
                "percentunit",
            ),
        ),
    )


def _hot() -> Row:
    return Row(
        "Hot nodes",
        (
            Panel(
                "Hot nodes",
                "Nodes that have been above their limit for some refreshes, until they are below it for some.",
                (Query(f"max by (node) (tidewatch_node_hot{{{SCRAPED}}}) == 1", "{{node}}"),),
                kind="state-timeline",
                names={1: "hot"},
            ),
            Panel(
                "Nodes by state",
                "Nodes that are known, those whose samples are stale, those that are estimated, and instances without"
                " a node.",
                (gauge(_STATES, "state"),),
            ),
        ),
    )


def _trust() -> Row:
    return Row(
        "Trust",
        (
            Panel(
                "Verdicts",
                "Nodes by the verdict on their samples of the resource.",
                (gauge("tidewatch_node_verdicts", "verdict", matchers=_OF_RESOURCE),),
            ),
            Panel(
                "Forecasts",
                "Nodes whose next hour is predicted for the policy predicted-load-packing, and why it is not for the "
                "others.",
                (gauge("tidewatch_node_forecasts", "verdict"),),
            ),
            Panel(
                "Age of samples",
                "Age of the newest sample of a node: the median, and the oldest.",
                (
                    Query(f"quantile(0.5, {_ages()})", "median"),
                    Query(f"max({_ages()})", "oldest"),
                ),
                "s",
            ),
            Panel(
                "Basis of scores",
                "The basis of scores: metrics; none, so that all nodes get the same score; requests after five "
                "minutes.",
                (
                    Query(
                        f"max by (instance, basis) (tidewatch_adapter_extender_basis{{{SCRAPED}}}) == 1",
                        "{{instance}} {{basis}}",
                    ),
                ),
                kind="state-timeline",
                names={1: "in force"},
            ),
        ),
    )


def _ages() -> str:
    return f"max by (node) (tidewatch_node_sample_age_seconds{{{SCRAPED}}})"


def _extender() -> Row:
    return Row(
        "Extender",
        (
            Panel(
                "Calls of the scheduler",
                "Calls by verb and HTTP status. The scheduler goes on without scores where it is not 200.",
                (rate(_CALLS, "verb, code"),),
                "reqps",
            ),
            Panel(
                "Duration of calls",
                "How long the scheduler waits for an answer, by verb. It places one pod at a time.",
                quantiles("tidewatch_adapter_extender_request_duration_seconds", "verb"),
                "s",
            ),
        ),
    )


def _prometheus() -> Row:
    queries = f"rate(tidewatch_adapter_prometheus_queries_total{{{SCRAPED}}}[$__rate_interval])"
    # The adapter has a counter of the same name.
    of_nodes = f"and on (namespace, job, instance) {_STATES}{{{SCRAPED}}}"
    return Row(
        "Prometheus and the local file",
        (
            Panel(
                "Prometheus queries per minute",
                "Queries of each replica. At most 12, whatever the number of nodes.",
                (Query(f"60 * sum by (instance) ({queries} {of_nodes})", "{{instance}}"),),
            ),
            Panel(
                "Failed writes of the local file",
                "Failures to write the file from which a replica answers after a crash.",
                (increase("tidewatch_adapter_state_file_failures_total", "instance"),),
            ),
        ),
    )
