"""Determines what each rule would serve from a real Prometheus, and whether Prometheus accepts its query."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.foundation.sources.prometheus.backends.backend import Backend, with_backend_name
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    NotAVectorError,
    PrometheusError,
    QueryRefusedError,
)
from adapter.foundation.sources.prometheus.queries.budget import QUERY_SECONDS
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.catalogue.series_look_ups import LookUpKey, look_up_key, what_is_missing
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.lint.label_values import possible_labels, uses_values
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.plans.sample_age import times_of
from adapter.metrics.rulebook.provided_metrics import SeriesShapes, metrics_by_name, static_metrics
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.report import ServedMetric, ServedMetrics
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.metrics.rulebook.model import Metric, PlanKind, Rule

_NOBODY = ("some-namespace", ("some-object",))
_REQUESTED = ("5", "5m")
"""Values of a request, one of which is usually allowed where a template puts one outside quotes."""
_SERIES = "Series"
"""The field of a template without which a query is the same for all series."""
_OF_NOTHING = Selector((Requirement("some_label", Operator.EQUALS, ("some-value",)),))
"""A selector that no series is likely to match."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The series that Prometheus returned for one series query."""

    shapes: SeriesShapes
    missing: str | None
    """Why there may be more series; None if the answer is complete."""
    counts: Mapping[str, int] | None
    """The current number of series by metric name; None if they could not be counted."""


def served_by(
    rules: Sequence[Rule],
    client_of: Callable[[Backend | None], Prometheus],
    resolve: ResolveResource,
    *,
    max_age_seconds: float,
    most_queries: int | None = None,
) -> dict[str, ServedMetrics]:
    """Return, by the ID of each rule, what it serves from the series of the last `max_age_seconds`.

    Rules with the same look-up share one request. `client_of` returns the client of a backend; None means the
    Prometheus that the flags name. Only the first `most_queries` metrics of a rule have their query, or all if it is
    None: a rule may serve ten thousand metrics.
    """
    known: dict[LookUpKey, _Seen | PrometheusError] = {}
    found: dict[str, ServedMetrics] = {}
    for rule in rules:
        key, client = look_up_key(rule), client_of(rule.backend)
        if key not in known:
            known[key] = _look_up_series(client, key.series_query, time.time() - max_age_seconds)
        seen = known[key]
        if isinstance(seen, PrometheusError):
            found[rule.id] = ServedMetrics(findings=(_failure_finding(rule, seen),))
        else:
            metrics = [metric for part in metrics_by_name(rule, seen.shapes, resolve) for metric in part]
            found[rule.id] = _served_of_rule(rule, metrics, static_metrics(rule, resolve), seen, client, most_queries)
    return found


def _look_up_series(client: Prometheus, query: str, start: float) -> _Seen | PrometheusError:
    shapes = SeriesShapes()
    try:
        answer = client.series(query, start=start, timeout_seconds=QUERY_SECONDS)
        for series in answer.batches(UNPACED):
            shapes.add(series)
    except PrometheusError as error:
        return error
    return _Seen(shapes, what_is_missing(shapes, answer.warnings), _counts(client, query))


def _counts(client: Prometheus, query: str) -> Mapping[str, int] | None:
    """Return the current number of series by metric name; None if the query fails, since it is only information."""
    try:
        answer = client.instant(f"count by (__name__) ({query})", timeout_seconds=QUERY_SECONDS)
        samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    except PrometheusError:
        return None
    return {each.labels.get("__name__", ""): int(each.value) for each in samples if math.isfinite(each.value)}


def _served_of_rule(
    rule: Rule,
    metrics: list[Metric],
    spelled_out: list[Metric],
    seen: _Seen,
    client: Prometheus,
    most_queries: int | None,
) -> ServedMetrics:
    """Return what the rule serves: metrics of the series in Prometheus, and metrics that the rule names literally."""
    # Of several series with the same name in the API, the last one is served.
    found = {_id(metric): metric for metric in metrics}
    listed = [*found.values(), *(metric for metric in spelled_out if _id(metric) not in found)]
    findings = [] if seen.missing is None else [_partial_series_finding(rule, seen.missing)]
    findings += _hidden_series_findings(rule, metrics, found)
    if not metrics and not findings:
        message = "Prometheus has no series from which this rule could make a metric"
        fix = "compare `seriesQuery`, the filters and the labels with what Prometheus has"
        findings = [_finding(rule, Severity.WARNING, Code.NO_SERIES, message, fix)]
    plans = _PlansByLabels()
    shown = tuple(
        ServedMetric(
            metric.qualified,
            metric.namespaced,
            _count(seen, metric) if _id(metric) in found else 0,
            *(_queries(metric, plans.of(metric)) if most_queries is None or place < most_queries else (None, None)),
        )
        for place, metric in enumerate(sorted(listed, key=lambda metric: metric.qualified))
    )
    for metric in listed[:1]:
        findings += trial(rule, metric, client)
    return ServedMetrics(shown, tuple(findings))


def _hidden_series_findings(
    rule: Rule, metrics: Sequence[Metric], served: Mapping[tuple[str, bool], Metric]
) -> Iterator[Finding]:
    """Yield a finding if series are not served because others of the rule have the same name in the API."""
    hidden = next((metric for metric in metrics if served[_id(metric)].series != metric.series), None)
    if hidden is not None and _SERIES in rule.metrics_query.fields:
        name, other = hidden.qualified, served[_id(hidden)].series
        message = f"{hidden.series} and {other} are both called {name}, so only one of them is served"
        fix = "keep the difference in `name.as`, as in ${1}, or select only one of them"
        yield _finding(rule, Severity.WARNING, Code.NAME_COLLISION, message, fix)


def _count(seen: _Seen, metric: Metric) -> int | None:
    return None if seen.counts is None else seen.counts.get(metric.series, 0)


def _id(metric: Metric) -> tuple[str, bool]:
    return metric.qualified, metric.namespaced


class _PlansByLabels:
    """The plans of a rule's metrics: those with the same labels share one, since a proof takes a millisecond."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, ...], PlanKind] = {}

    def of(self, metric: Metric) -> PlanKind:
        labels = (metric.object_label, metric.namespace_label, metric.narrowing_label)
        if labels not in self._known:
            self._known[labels] = plan_of(metric).kind
        return self._known[labels]


def _queries(metric: Metric, kind: PlanKind) -> tuple[str, str | None]:
    """Return the query that the plan of a metric sends, and that for the times of its samples if there is one."""
    times = times_of(metric)
    return _query(metric, kind), None if times is None else _query(times, kind)


def _query(metric: Metric, kind: PlanKind) -> str:
    try:
        return planned_query(metric, asked_of_nobody(metric), kind).text
    except RenderError as error:
        return f"none: {error}"


def trial(rule: Rule, metric: Metric, client: Prometheus) -> Iterator[Finding]:
    """Send the query of a metric for an object that does not exist, and yield a finding if the query fails.

    Such a query costs Prometheus almost nothing.
    """
    try:
        _try(metric, EVERYTHING, client)
    except RenderError as error:
        message = f"no query can be rendered for {metric.qualified}: {error}"
        yield _finding(rule, Severity.ERROR, Code.QUERY_REFUSED, message, f"correct `{metric.query_key}`")
    except (QueryRefusedError, NotAVectorError) as error:
        problem = "refuses the query of" if isinstance(error, QueryRefusedError) else "has no values for"
        if _works_with_a_selector(metric, client):
            message = f"Prometheus {problem} {metric.qualified} without a selector: {error}"
            better = "write a default, as in <<or .LabelValuesByName.q `0.9`>>"
            if not uses_values(metric):
                better = "write <<.LabelMatchers>> behind the other matchers"
            fix = f"always request it with a selector, or {better}"
            yield _finding(rule, Severity.WARNING, Code.QUERY_REFUSED, message, fix)
            return
        message = f"Prometheus {problem} {metric.qualified}: {error}"
        yield _finding(rule, Severity.ERROR, Code.QUERY_REFUSED, message, f"correct `{metric.query_key}`")
    except PrometheusError as error:
        yield _failure_finding(rule, error)


def _works_with_a_selector(metric: Metric, client: Prometheus) -> bool:
    """Return whether Prometheus accepts the query of a request that selects a value for each label of the template."""
    for selector in _useful_selectors(metric):
        with suppress(RenderError, PrometheusError):
            _try(metric, selector, client)
            return True
    return False


def _useful_selectors(metric: Metric) -> Iterator[Selector]:
    """Yield selectors that may make a valid query of one that is not valid without a selector."""
    if uses_values(metric):
        labels = tuple(possible_labels(metric))
        for value in _REQUESTED:
            yield Selector(tuple(Requirement(label, Operator.EQUALS, (value,)) for label in labels))
    elif metric.needs_selector and not is_readable(exact_query(metric, asked_of_nobody(metric))):
        # Without a selector, its matchers begin with a comma. If a query can be read and its evaluation fails, it may
        # fail with every selector that matches a series.
        yield _OF_NOTHING


def is_readable(query: str) -> bool:
    """Return whether this program can parse the query."""
    try:
        parse_query(query)
    except UnreadableQueryError:
        return False
    return True


def _try(metric: Metric, selector: Selector, client: Prometheus) -> None:
    """Send the queries of a metric for an object that does not exist. Raises RenderError and PrometheusError."""
    for each in filter(None, (metric, times_of(metric))):
        asked = replace(asked_of_nobody(each), selector=selector)
        client.instant(exact_query(each, asked), timeout_seconds=QUERY_SECONDS)


def asked_with_a_selector(metric: Metric) -> Asked:
    """Return a request with a selector about an object that does not exist."""
    return replace(asked_of_nobody(metric), selector=_OF_NOTHING)


def asked_of_nobody(metric: Metric) -> Asked:
    """Return a request about an object that does not exist."""
    namespace, names = _NOBODY
    return Asked(namespace if metric.namespaced else None, names if metric.resource else (), EVERYTHING)


def _partial_series_finding(rule: Rule, missing: str) -> Finding:
    message = (
        f"Prometheus returned only a part of the rule's series, so the rule may serve more than is shown: {missing}"
    )
    fix = "select fewer series with `seriesQuery`, or find out why Prometheus returns only a part"
    return _finding(rule, Severity.WARNING, Code.NOT_ASKED, message, fix)


def _failure_finding(rule: Rule, error: PrometheusError) -> Finding:
    if isinstance(error, QueryRefusedError):
        message = f"Prometheus refuses `seriesQuery`: {error}"
        return _finding(rule, Severity.ERROR, Code.QUERY_REFUSED, message, "correct it")
    message = with_backend_name(rule.backend, f"the query failed: {error.cause}")
    if error.repair:
        fix = error.repair
    elif rule.backend is not None:
        fix = "check its entry in `prometheus`, and whether it runs and accepts the credentials"
    elif isinstance(error, AuthenticationRefusedError):
        fix = "set --prometheus-token-file, or --prometheus-username and --prometheus-password-file"
    else:
        fix = "check --prometheus-url, whether Prometheus runs, and --prometheus-ca-file if it speaks TLS"
    return _finding(rule, Severity.ERROR, Code.NOT_ASKED, message, fix)


def _finding(rule: Rule, severity: Severity, code: Code, message: str, fix: str) -> Finding:
    return Finding(severity, code.value, rule.file, rule.line, message.replace("\n", " "), fix, rule=rule.id)
