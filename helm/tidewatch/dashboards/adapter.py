"""The dashboard of `tidewatch-adapter serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import units

from helm.tidewatch.dashboards.annotations import reloads
from helm.tidewatch.dashboards.panels import Row, chart, counts, stat, states
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of
from helm.tidewatch.dashboards.queries import SCRAPED, gauge, quantile, quantiles, query, rate
from helm.tidewatch.dashboards.variables import choices

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard as models

_PREFIX: Final = "tidewatch_adapter"
_REQUESTS: Final = f"{_PREFIX}_requests_total"
_OF_APIS: Final = f'{SCRAPED},group!="other"'
"""The matchers of requests to the metrics APIs. All others, most of which are probes of kubelets, are of no group."""
_VALID_UNTIL: Final = f"{_PREFIX}_serving_certificate_not_after_timestamp_seconds"
_HEARD: Final = f"{_PREFIX}_watch_last_heard_timestamp_seconds{{{SCRAPED}}}"
_RUNNING: Final = f"count(tidewatch_build_info{{{SCRAPED}}})"
_IN_FORCE: Final = (
    f"{_PREFIX}_config_last_reload_successful{{{SCRAPED}}}"
    f" and on (namespace, job, instance) {_PREFIX}_demanded_metrics{{{SCRAPED}}}"
)
"""Whether the rule files are in force; `tidewatch-adapter nodes` has a metric of the same name."""
_RULE_FILES: Final = {0: ("refused", "red"), 1: ("in force", "green")}


def dashboard() -> models.Dashboard:
    """Return the dashboard's model."""
    return dashboard_of(
        Dashboard("Tidewatch / Adapter")
        .uid("tidewatch-adapter")
        .description("Requests to the metrics APIs, the age of answers, rules, and the sources behind them."),
        (choices("namespace", _REQUESTS), choices("job", _REQUESTS)),
        (reloads("adapter", SCRAPED),),
        (_now(), _requests(), _rules(), _prometheus(), _cluster()),
    )


def _now() -> Row:
    # API servers check the APIServices more often than a few HPAs ask, so only answers with values count beside errors.
    answers = f"sum(rate({_PREFIX}_answer_age_seconds_count{{{SCRAPED}}}[5m]))"
    errors = f'(sum(rate({_REQUESTS}{{{_OF_APIS},code=~"5.."}}[5m])) or vector(0))'
    failing = f'{_PREFIX}_rules{{{SCRAPED},state!="ok"}}'
    return Row(
        "Now",
        (
            stat(
                "Errors",
                "The part of requests for values in the last five minutes that got a 5xx. HPAs keep their size on 5xx.",
                query(f"{errors} / (({errors} + {answers}) > 0)"),
                (0.001, "orange"),
                (0.05, "red"),
                unit=units.PercentUnit,
                alert="TidewatchAdapterErrors",
            ).no_value("no requests"),
            stat(
                "Rules that do not work",
                "Rules that are refused, retained in their last good version, or failing.",
                query(f"sum(max by (state) ({failing}))"),
                (1, "red"),
                alert="TidewatchRuleFailing",
            ),
            stat(
                "Configuration",
                "Whether everything in the rule files is in force on all replicas.",
                query(f"min({_IN_FORCE})"),
                names=_RULE_FILES,
                alert="TidewatchReloadRefused",
            ),
            stat(
                "Oldest answers",
                "The age of answers that one in a hundred exceeded in the last five minutes.",
                query(quantile(0.99, f"{_PREFIX}_answer_age_seconds", window="5m")),
                (50, "orange"),
                (55, "red"),
                unit=units.Seconds,
                alert="TidewatchAnswersOld",
            ).no_value("no requests"),
            stat(
                "Silent watches",
                "How long ago the API server last sent something about the kind of objects that is silent for longest, "
                "to the replica that hears least.",
                query(f"time() - min({_HEARD})"),
                (300, "red"),
                unit=units.Seconds,
                alert="TidewatchWatchSilent",
            ),
            stat(
                "Killed workers",
                "Workers that a signal ended in the last hour. Each was replaced.",
                query(f"sum(increase({_PREFIX}_worker_exits_total{{{SCRAPED}}}[1h])) or 0 * {_RUNNING}"),
                (0.5, "red"),
                alert="TidewatchWorkerKilled",
            ).decimals(0),
        ),
    )


def _requests() -> Row:
    return Row(
        "Requests",
        (
            chart(
                "Requests by code",
                "Requests to the metrics APIs by HTTP status. HPAs keep their size on 5xx.",
                rate(_REQUESTS, "code", _OF_APIS),
                unit=units.RequestsPerSecond,
                alert="TidewatchAdapterErrors",
            ),
            chart(
                "Latency",
                "How long requests take, by API group.",
                *quantiles(f"{_PREFIX}_request_duration_seconds", "group"),
                unit=units.Seconds,
            ),
            chart(
                "Age of answers",
                "How old the answers are that clients get: now minus the evaluation time of the query.",
                *quantiles(f"{_PREFIX}_answer_age_seconds"),
                unit=units.Seconds,
                alert="TidewatchAnswersOld",
            ),
        ),
    )


def _rules() -> Row:
    return Row(
        "Rules",
        (
            states(
                "Rule files",
                "Whether everything in the rule files is in force, by replica.",
                query(f"min by (instance) ({_IN_FORCE})", "{{instance}}"),
                _RULE_FILES,
                alert="TidewatchReloadRefused",
            ),
            counts(
                "Rules by state",
                "Rules that are ok, refused, retained (in their last good version) or failing.",
                gauge(f"{_PREFIX}_rules", "state"),
                alert="TidewatchRuleFailing",
            ),
            chart(
                "Dropped samples",
                "Samples that give no value, by reason.",
                rate(f"{_PREFIX}_dropped_samples_total", "reason"),
                unit=units.CountsPerSecond,
            ),
        ),
    )


def _prometheus() -> Row:
    return Row(
        "Load on Prometheus",
        (
            chart(
                "Queries",
                "Queries to Prometheus by kind and result.",
                rate(f"{_PREFIX}_prometheus_queries_total", "kind, result"),
                unit=units.RequestsPerSecond,
            ),
            chart(
                "Duration of queries",
                "How long Prometheus takes to answer.",
                *quantiles(f"{_PREFIX}_prometheus_query_duration_seconds"),
                unit=units.Seconds,
            ),
            chart(
                "Time since a rule was answered",
                "How long ago Prometheus last answered for the rule that has waited longest.",
                query(f"time() - min({_PREFIX}_rule_last_success_timestamp_seconds{{{SCRAPED}}})", "oldest"),
                unit=units.Seconds,
            ),
            counts(
                "Plans",
                "How widely the metrics of rules are queried: wide, namespace or exact.",
                query(f"max by (plan) (sum by (instance, plan) ({_PREFIX}_rule_plan{{{SCRAPED}}}))", "{{plan}}"),
            ),
            counts(
                "Metrics in demand and values in memory",
                "What autoscalers request at present, and how many values answer it.",
                query(f"max({_PREFIX}_demanded_metrics{{{SCRAPED}}})", "metrics"),
                query(f"max({_PREFIX}_values_held{{{SCRAPED}}})", "values"),
            ),
        ),
        is_collapsed=True,
    )


def _cluster() -> Row:
    return Row(
        "Cluster and certificates",
        (
            chart(
                "Silence of watches",
                "How long ago the API server last sent something about each kind of objects, to the replica that hears "
                "least.",
                query(f"time() - min by (resource) ({_HEARD})", "{{resource}}"),
                unit=units.Seconds,
                alert="TidewatchWatchSilent",
            ),
            states(
                "Watches that are complete",
                "Whether all objects of a kind are known, on the replica that knows the least.",
                gauge(f"{_PREFIX}_watch_synced", "resource", "min"),
                {0: ("incomplete", "red"), 1: ("complete", "green")},
            ),
            chart(
                "Time left of the serving certificate",
                "How long the certificate is still valid, by replica. Whoever made it has to renew it before its end.",
                query(f"min by (instance) ({_VALID_UNTIL}{{{SCRAPED}}}) - time()", "{{instance}}"),
                unit=units.Seconds,
                alert="TidewatchCertificateNearItsEnd",
            ),
            states(
                "Background tasks that are overdue",
                "Tasks that run past their deadline.",
                gauge(f"{_PREFIX}_task_overdue", "task"),
                {0: ("on time", "green"), 1: ("overdue", "red")},
            ),
        ),
        is_collapsed=True,
    )
