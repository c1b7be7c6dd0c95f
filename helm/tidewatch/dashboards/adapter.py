"""The dashboard of `tidewatch-adapter serve`."""

from __future__ import annotations

from typing import Any, Final

from helm.tidewatch.dashboards.panels import (
    SCRAPED,
    Panel,
    Query,
    Row,
    age,
    gauge,
    quantiles,
    rate,
    variable,
)
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of

_PREFIX: Final = "tidewatch_adapter"
_REQUESTS: Final = f"{_PREFIX}_requests_total"
_VALID_UNTIL: Final = f"{_PREFIX}_serving_certificate_not_after_timestamp_seconds"


def dashboard() -> dict[str, Any]:
    """Return its model."""
    return dashboard_of(
        "tidewatch-adapter",
        "Tidewatch / Adapter",
        "Requests to the metrics APIs, the age of answers, rules, and the sources behind them.",
        (variable("namespace", _REQUESTS, "namespace"), variable("job", _REQUESTS, "job")),
        (_requests(), _rules(), _prometheus(), _cluster()),
    )


def _requests() -> Row:
    return Row(
        "Requests",
        (
            Panel(
                "Requests by code",
                "Requests to the metrics APIs by HTTP status. HPAs keep their size on 5xx.",
                (rate(_REQUESTS, "code"),),
                "reqps",
            ),
            Panel(
                "Latency",
                "How long requests take, by API group.",
                quantiles(f"{_PREFIX}_request_duration_seconds", "group"),
                "s",
            ),
            Panel(
                "Age of answers",
                "How old the answers are that clients get: now minus the evaluation time of the query.",
                quantiles(f"{_PREFIX}_answer_age_seconds"),
                "s",
            ),
        ),
    )


def _rules() -> Row:
    return Row(
        "Rules",
        (
            Panel(
                "Rules by state",
                "Rules that are ok, refused, retained (in their last good version) or failing.",
                (gauge(f"{_PREFIX}_rules", "state"),),
            ),
            Panel(
                "Rule files",
                "Whether everything in the rule files is in force.",
                (gauge(f"{_PREFIX}_config_last_reload_successful", "instance", "min"),),
                kind="state-timeline",
                names={0: "refused", 1: "in force"},
            ),
            Panel(
                "Metrics in demand and values in memory",
                "What autoscalers request at present, and how many values answer it.",
                (
                    Query(f"max(tidewatch_adapter_demanded_metrics{{{SCRAPED}}})", "metrics"),
                    Query(f"max(tidewatch_adapter_values_held{{{SCRAPED}}})", "values"),
                ),
            ),
            Panel(
                "Dropped samples",
                "Samples that give no value, by reason.",
                (rate(f"{_PREFIX}_dropped_samples_total", "reason"),),
                "cps",
            ),
        ),
    )


def _prometheus() -> Row:
    return Row(
        "Load on Prometheus",
        (
            Panel(
                "Queries",
                "Queries to Prometheus by kind and result.",
                (rate(f"{_PREFIX}_prometheus_queries_total", "kind, result"),),
                "reqps",
            ),
            Panel(
                "Duration of queries",
                "How long Prometheus takes to answer.",
                quantiles(f"{_PREFIX}_prometheus_query_duration_seconds"),
                "s",
            ),
            Panel(
                "Plans",
                "How widely the metrics of rules are queried: wide, namespace or exact.",
                (Query(f"max by (plan) (sum by (instance, plan) ({_PREFIX}_rule_plan{{{SCRAPED}}}))", "{{plan}}"),),
            ),
            Panel(
                "Time since a rule was answered",
                "How long ago Prometheus last answered for the rule that has waited longest.",
                (Query(f"time() - min({_PREFIX}_rule_last_success_timestamp_seconds{{{SCRAPED}}})", "oldest"),),
                "s",
            ),
        ),
    )


def _cluster() -> Row:
    return Row(
        "Cluster and certificates",
        (
            Panel(
                "Silence of watches",
                "How long ago the API server last sent something about each kind of objects.",
                (age(f"{_PREFIX}_watch_last_heard_timestamp_seconds", "resource"),),
                "s",
            ),
            Panel(
                "Watches that are complete",
                "Whether all objects of a kind are known, on the replica that knows the least.",
                (gauge(f"{_PREFIX}_watch_synced", "resource", "min"),),
                kind="state-timeline",
                names={0: "incomplete", 1: "complete"},
            ),
            Panel(
                "Time left of the serving certificate",
                "How long the certificate is valid that the adapter keeps (certificates.mode: self).",
                (Query(f"min by (instance) ({_VALID_UNTIL}{{{SCRAPED}}}) - time()", "{{instance}}"),),
                "s",
            ),
            Panel(
                "Background tasks that are overdue",
                "Tasks that run past their deadline.",
                (gauge(f"{_PREFIX}_task_overdue", "task"),),
            ),
        ),
    )
