"""An example of a metric that a rule would provide, to try its query without a Prometheus."""

from __future__ import annotations

from adapter.foundation.objects.resources import ResolveResource, Resource, UnknownResourceError
from adapter.metrics.rulebook.model import Api, Metric, Rule
from adapter.metrics.rulebook.provided_metrics import static_metrics

SOME_SERIES = "some_series"


def example_of(rule: Rule, resolve: ResolveResource) -> Metric | None:
    """Return one metric of the rule, of pods if it can provide such metrics; None if it can provide none.

    If the rule does not name its series, the series is called `some_series`.
    """
    spelled_out = static_metrics(rule, resolve)
    if spelled_out:
        return min(spelled_out, key=distance_from_pods)
    if rule.api is Api.EXTERNAL:
        label = rule.resources.namespace_label() if rule.namespaced else None
        return Metric(rule, SOME_SERIES, SOME_SERIES, None, None, label)
    namespace_label = rule.resources.namespace_label()
    made = [
        Metric(rule, SOME_SERIES, SOME_SERIES, resource, label, namespace_label if resource.namespaced else None)
        for label, resource in _labels(rule, resolve)
        if namespace_label is not None or not resource.namespaced
    ]
    return min(made, key=distance_from_pods, default=None)


def _labels(rule: Rule, resolve: ResolveResource) -> list[tuple[str, Resource]]:
    labels = list(rule.resources.overrides)
    try:
        pods = resolve("", "pods")
    except UnknownResourceError:
        return labels
    label = rule.resources.label_of(pods)
    return [*labels, (label, pods)] if label else labels


def distance_from_pods(metric: Metric) -> int:
    """Return how unlikely it is that a question without a kind of object means this metric; 0 is the likeliest."""
    if metric.resource is None or metric.resource.qualified == "pods":
        return 0
    return 1 if metric.resource.namespaced else 2
