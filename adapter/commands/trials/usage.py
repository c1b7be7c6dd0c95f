"""Determines what each resource rule would serve from a real Prometheus, and whether Prometheus accepts its queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.commands.trials.served import trial
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import PrometheusError
from adapter.foundation.sources.prometheus.queries.budget import QUERY_SECONDS
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.query_rendering import RenderError, wide_query
from adapter.metrics.rulebook.report import ServedMetric, ServedMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.metrics.rulebook.model import Metric, ResourceRule


def usage_served_by(
    rules: Sequence[ResourceRule], client_of: Callable[[Backend | None], Prometheus]
) -> dict[str, ServedMetrics]:
    """Return, by the ID of each rule, what it serves for pods and nodes according to the query for all of them."""
    return {rule.id: _served_usage(rule, client_of(rule.metrics[0].rule.backend)) for rule in rules}


def _served_usage(rule: ResourceRule, client: Prometheus) -> ServedMetrics:
    shown: list[ServedMetric] = []
    findings: list[Finding] = []
    for metric in rule.metrics:
        refused = list(trial(metric.rule, metric, client))
        findings += refused
        if not refused:
            query = _wide(metric)
            number = _rows(client, query)
            shown.append(ServedMetric(metric.qualified, metric.namespaced, number, query))
            findings += [_nothing_finding(rule, metric)] if number == 0 else []
    return ServedMetrics(tuple(shown), tuple(findings))


def _wide(metric: Metric) -> str:
    try:
        return wide_query(metric, EVERYTHING)
    except RenderError as error:
        return f"none: {error}"


def _rows(client: Prometheus, query: str) -> int | None:
    """Return the current number of values; None if the query fails, since the number is only information."""
    try:
        answer = client.instant(f"count({query})", timeout_seconds=QUERY_SECONDS)
        samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    except PrometheusError:
        return None
    return int(sum(sample.value for sample in samples))


def _nothing_finding(rule: ResourceRule, metric: Metric) -> Finding:
    message = f"Prometheus has no sample for `{metric.query_key}` now, so {metric.qualified} has no value"
    fix = "compare its series, matchers and labels with what Prometheus has"
    return Finding(Severity.WARNING, Code.NO_SERIES.value, rule.file, rule.line, message, fix, rule=rule.id)
