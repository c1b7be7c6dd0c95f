"""The dashboard of `tidewatch-adapter nodes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import units

from helm.tidewatch.dashboards.annotations import reloads
from helm.tidewatch.dashboards.node_loads import loads, of_node
from helm.tidewatch.dashboards.panels import Row, chart, counts, link, stat, states
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of
from helm.tidewatch.dashboards.queries import SCRAPED, count, gauge, increase, quantile, quantiles, query, rate
from helm.tidewatch.dashboards.variables import NODES_PAGE, address, choices, fixed

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.prometheus import Dataquery

_STATES: Final = "tidewatch_nodes"
_CALLS: Final = "tidewatch_adapter_extender_requests_total"
_CALL_SECONDS: Final = "tidewatch_adapter_extender_request_duration_seconds"
_BASIS: Final = "tidewatch_adapter_extender_basis"
_HOT: Final = f"tidewatch_node_hot{{{SCRAPED}}} == 1"
_OF_RESOURCE: Final = f'{SCRAPED},resource="$resource"'
_BASIS_NAMES: Final = {0: ("metrics", "green"), 1: ("none", "orange"), 2: ("requests", "red")}


def dashboard() -> models.Dashboard:
    """Return the dashboard's model."""
    return dashboard_of(
        Dashboard("Tidewatch / Nodes")
        .uid("tidewatch-nodes")
        .description(
            "The load of nodes, hot nodes, how far the numbers can be trusted, and the requests of the scheduler."
        )
        .link(link("Scores", "${page:raw}/scores"))
        .link(link("Hot nodes", "${page:raw}/hotspots")),
        (
            choices("namespace", _STATES),
            choices("job", _STATES),
            fixed("resource", ("cpu", "memory", "network", "disk", "gpu")),
            fixed("window", ("15m", "10m", "5m")),
            address("page", "Address of the nodes server", NODES_PAGE),
        ),
        (reloads("adapter", SCRAPED),),
        (_now(), loads(), _hot(), _trust(), _extender(), _prometheus()),
    )


def _now() -> Row:
    calls = f"sum(rate({_CALLS}{{{SCRAPED}}}[5m]))"
    failed = f'sum(rate({_CALLS}{{{SCRAPED},code!="200"}}[5m])) or vector(0)'
    return Row(
        "Now",
        (
            stat("Nodes", "Nodes that are known, stale ones among them.", _nodes("known")),
            stat(
                "Hot nodes", "Nodes that `/hotspots` names.", count(_HOT, f"{_STATES}{{{SCRAPED}}}"), (1, "orange")
            ).data_links([link("Hot nodes", "${page:raw}/hotspots")]),
            stat(
                "Nodes without fresh samples",
                "Nodes whose CPU samples are stale or missing. They have no score of their own.",
                _nodes("stale"),
                (1, "orange"),
                alert="TidewatchNodeLoadsMissing",
            ),
            stat(
                "Unmapped instances",
                "Instances of series without a node. The server names the repair of each.",
                _nodes("unmapped"),
                (1, "red"),
                alert="TidewatchNodesUnmapped",
            ).data_links([link("Unmapped series", "${page:raw}/nodes/unmapped")]),
            stat(
                "Basis of scores",
                "What scores rest on, at the replica where it is worst: metrics; nothing, so that all nodes are equal; "
                "or requests alone.",
                query(f"max({_basis()})"),
                names=_BASIS_NAMES,
                alert="TidewatchScoresWithoutMetrics",
            ),
            stat(
                "Failed calls",
                "The part of the scheduler's calls of the last five minutes that were not answered with 200.",
                query(f"({failed}) / ({calls} > 0)"),
                (0.001, "orange"),
                (0.05, "red"),
                unit=units.PercentUnit,
                alert="TidewatchExtenderErrors",
            ).no_value("no calls"),
            stat(
                "Slowest calls",
                "How long one in a hundred of the scheduler's calls took in the last five minutes.",
                query(f"max({quantile(0.99, _CALL_SECONDS, 'verb', window='5m')})"),
                (0.05, "orange"),
                (0.1, "red"),
                unit=units.Seconds,
                alert="TidewatchExtenderSlow",
            ).no_value("no calls"),
        ),
    )


def _nodes(state: str) -> Dataquery:
    return query(f'max({_STATES}{{{SCRAPED},state="{state}"}})')


def _basis() -> str:
    """Return the PromQL for the basis of each replica, as one of the numbers in `_BASIS_NAMES`."""
    named = (f'{number} * ({_BASIS}{{{SCRAPED},basis="{name}"}} == 1)' for number, (name, _) in _BASIS_NAMES.items())
    return f"max by (instance) ({' or '.join(named)})"


def _hot() -> Row:
    return Row(
        "Hot nodes",
        (
            states(
                "Hot since",
                "Nodes that have been above their limit for some refreshes, until they are below it for some.",
                query(f"max by (node) ({_HOT})", "{{node}}"),
                {1: ("hot", "orange")},
            ).data_links([of_node()]),
            counts(
                "Nodes by state",
                "Nodes that are known, those whose samples are stale, those that are estimated, and instances without"
                " a node.",
                gauge(_STATES, "state"),
                alert="TidewatchNodesUnmapped",
            ),
        ),
    )


def _trust() -> Row:
    ages = f"max by (node) (tidewatch_node_sample_age_seconds{{{SCRAPED}}})"
    return Row(
        "Trust",
        (
            states(
                "Basis of scores by replica",
                "The basis of scores: metrics; none, so that all nodes get the same score; requests after five "
                "minutes.",
                query(_basis(), "{{instance}}"),
                _BASIS_NAMES,
                alert="TidewatchScoresWithoutMetrics",
            ),
            counts(
                "Verdicts",
                "Nodes by the verdict on their samples of the resource.",
                gauge("tidewatch_node_verdicts", "verdict", matchers=_OF_RESOURCE),
                alert="TidewatchNodeLoadsMissing",
            ),
            chart(
                "Age of samples",
                "Age of the newest sample of a node: the median, and the oldest.",
                query(f"quantile(0.5, {ages})", "median"),
                query(f"max({ages})", "oldest"),
                unit=units.Seconds,
            ),
        ),
    )


def _extender() -> Row:
    return Row(
        "Scheduler",
        (
            chart(
                "Calls of the scheduler",
                "Calls by verb and HTTP status. The scheduler goes on without scores where it is not 200.",
                rate(_CALLS, "verb, code"),
                unit=units.RequestsPerSecond,
                alert="TidewatchExtenderErrors",
            ),
            chart(
                "Duration of calls",
                "How long the scheduler waits for an answer, by verb. It places one pod at a time.",
                *quantiles(_CALL_SECONDS, "verb"),
                unit=units.Seconds,
                alert="TidewatchExtenderSlow",
            ),
        ),
    )


def _prometheus() -> Row:
    queries = f"rate(tidewatch_adapter_prometheus_queries_total{{{SCRAPED}}}[$__rate_interval])"
    # The adapter has a counter of the same name.
    of_nodes = f"and on (namespace, job, instance) {_STATES}{{{SCRAPED}}}"
    return Row(
        "Forecasts, Prometheus and the state file",
        (
            counts(
                "Forecasts",
                "Nodes whose next hour is predicted for the policy predicted-load-packing, and why it is not for the "
                "others.",
                gauge("tidewatch_node_forecasts", "verdict"),
            ),
            chart(
                "Prometheus queries per minute",
                "Queries of each replica. At most 13, whatever the number of nodes: 12 for data, and one for the time.",
                query(f"60 * sum by (instance) ({queries} {of_nodes})", "{{instance}}"),
                unit=units.CountsPerMinute,
            ),
            counts(
                "Failed writes of the state file",
                "Failures to write the file from which a replica answers after a crash.",
                increase("tidewatch_adapter_state_file_failures_total", "instance"),
                alert="TidewatchStateFileFails",
            ),
        ),
        is_collapsed=True,
    )
