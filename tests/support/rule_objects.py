"""MetricRule objects for tests."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.objects.rule_object import ObjectContent, RuleObject, read_rule_object

QUEUE: Final[dict[str, Any]] = {
    "api": "external",
    "rule": {"seriesQuery": "jobs_waiting", "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})"},
}
RATE: Final[dict[str, Any]] = {
    "api": "custom",
    "rule": {
        "seriesQuery": 'hits_total{pod!=""}',
        "resources": {"overrides": {"pod": {"resource": "pod"}}},
        "name": {"as": "hit_rate"},
        "metricsQuery": "sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[1m]))",
    },
}


def spec_with(spec: dict[str, Any], **rule: object) -> dict[str, Any]:
    """Return a spec with some keys of its rule changed; None removes a key."""
    changed = {**spec["rule"], **rule}
    return {**spec, "rule": {key: value for key, value in changed.items() if value is not None}}


def content_of(
    spec: object, place: str = "shop/web", created: str = "2026-01-01T00:00:00Z", generation: int = 1
) -> ObjectContent:
    namespace, name = place.split("/")
    return ObjectContent(namespace, name, f"uid-of-{place}", generation, created, spec)


def rule_object(
    spec: object, place: str = "shop/web", created: str = "2026-01-01T00:00:00Z", label: str = "namespace"
) -> RuleObject:
    return read_rule_object(content_of(spec, place, created), partial(find_resource, BUILT_IN), label)
