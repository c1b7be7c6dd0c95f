"""Tries the rules that `init` is about to write: each is passed to `check`, and its query is sent once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.commands.init.rules_text import rules_text
from adapter.commands.init.tried_rule import TriedRule
from adapter.commands.trials.served import served_by
from adapter.foundation.documents.load import load_documents
from adapter.foundation.exporters.held_series import ASKING_AGAIN, samples_of
from adapter.foundation.exporters.known_metrics import RATE_WINDOW, MetricSubject, SeriesType
from adapter.foundation.exporters.recognition import RecognisedMetric, UnusedMetric, names_object
from adapter.foundation.objects.names import ObjectName
from adapter.foundation.objects.resources import BUILT_IN, ResolveResource, find_resource
from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusUnreachableError,
)
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query, wide_query
from adapter.metrics.rulebook.report import rulebook_report
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.sources.prometheus.answers.decoding import Sample
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.metrics.rulebook.model import Metric, Rule

_MAX_AGE_SECONDS: Final = 300.0
"""Prometheus's look-back: a series whose newest sample is older has no value."""
_LARGEST_VALUE: Final = 9.2e15
"""Larger values are not served, since autoscalers compute with thousandths in 64 bits."""
# The answer to the query says why there is no value.
_NOT_NOTED: Final = frozenset({Code.NO_SERIES.value})


def try_rules(client: Prometheus, found: Sequence[RecognisedMetric]) -> tuple[list[TriedRule], list[UnusedMetric]]:
    """Return the rules that work, with their values, and the metrics whose rules `check` refuses.

    Raises PrometheusError if Prometheus is unreachable or refuses the credentials.
    """
    resolve = partial(find_resource, BUILT_IN)
    # This is the order of the rules in the text.
    ordered = sorted(found, key=lambda metric: metric.known.subject is MetricSubject.EXTERNAL)
    document = load_documents(rules_text((), [TriedRule(metric, {}) for metric in ordered], ()), "rules.yaml")
    rulebook = parse_rulebook((document,), resolve)
    served = served_by(
        rulebook.rules,
        lambda _: client,
        resolve,
        max_age_seconds=_MAX_AGE_SECONDS,
        most_queries=0,
    )
    report = rulebook_report((document,), rulebook, resolve, served)
    rules = {rule.id: rule for rule in rulebook.rules}
    tried: list[TriedRule] = []
    refused: list[UnusedMetric] = []
    for checked, metric in zip(report.rules, ordered, strict=True):
        wrong = [finding for finding in checked.findings if finding.severity is Severity.ERROR]
        if wrong:
            refused.append(UnusedMetric(metric.known, wrong[0].message, wrong[0].fix))
            continue
        answer = _asked_once(client, metric, rules[checked.id], resolve)
        if isinstance(answer, UnusedMetric):
            refused.append(answer)
        else:
            tried.append(with_notes(answer, checked.findings))
    return tried, refused


def with_notes(rule: TriedRule, findings: Sequence[Finding]) -> TriedRule:
    """Return the rule with the findings of `check` and, if it is a counter without a value, with the reason."""
    doubts = [f"{finding.message}: {finding.fix}" for finding in findings if finding.code not in _NOT_NOTED]
    has_value = bool(rule.values) or rule.value is not None
    if not has_value and rule.metric.known.type is SeriesType.COUNTER:
        doubts.append(f"A rate has a value once there are two samples within {RATE_WINDOW}: try again in a while.")
    return TriedRule(rule.metric, rule.values, rule.value, tuple(doubts))


def _asked_once(
    client: Prometheus, metric: RecognisedMetric, rule: Rule, resolve: ResolveResource
) -> TriedRule | UnusedMetric:
    subject = metric.known.subject
    (served,) = (
        each
        for each in static_metrics(rule, resolve)
        if subject is MetricSubject.EXTERNAL or (each.resource is not None and each.resource.qualified == subject)
    )
    try:
        samples = samples_of(client, _query(metric, served))
    except (PrometheusUnreachableError, AuthenticationRefusedError):
        raise
    except (PrometheusError, RenderError) as error:
        return UnusedMetric(metric.known, f"its query has no answer: {error}", ASKING_AGAIN)
    if subject is MetricSubject.EXTERNAL:
        values = [sample.value for sample in samples if abs(sample.value) <= _LARGEST_VALUE]
        return TriedRule(metric, {}, sum(values) if values else None)
    return TriedRule(metric, values_of(metric, samples))


def _query(metric: RecognisedMetric, served: Metric) -> str:
    """Return the query: for an external metric as an HPA selects it, otherwise for all objects. Raises RenderError."""
    if metric.known.subject is MetricSubject.EXTERNAL:
        return exact_query(served, Asked(None, (), _selector(metric.selector)))
    return wide_query(served, EVERYTHING)


def _selector(labels: Mapping[str, str]) -> Selector:
    return Selector(tuple(Requirement(label, Operator.EQUALS, (value,)) for label, value in labels.items()))


def values_of(metric: RecognisedMetric, samples: Sequence[Sample]) -> dict[ObjectName, float]:
    """Return the values that can be served by object, without samples whose labels cannot be the name of an object."""
    namespace, name = metric.namespace_label or "", metric.object_label or ""
    return {
        ObjectName(sample.labels.get(namespace, ""), sample.labels.get(name, "")): sample.value
        for sample in samples
        if abs(sample.value) <= _LARGEST_VALUE and names_object(sample.labels, namespace, name)
    }
