"""The refused rule that is named to a caller that requests a missing metric."""

from __future__ import annotations

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.metrics.rulebook.near_misses import Closeness
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.reload.refused_misses import refusal, refused_for, refused_of_names

RULES = """
rules:
- seriesQuery: 'http_requests_total{pod!=""}'
  name: {matches: "^(.*)_total$", as: "${1}_per_second"}
  resources: {overrides: {pod: {resource: pod}}}
  metricsQery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: 'depth{namespace!="",pod!=""'
  resources: {overrides: {pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: '{__name__=~"^disk_.*"}'
  name: {matches: "([", as: "$1"}
  resources: {overrides: {pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: '{pod!=""}'
  name: {as: literally_so}
  resources: {overrides: {pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>) by (<<.GroupBy>>'
- just: text
- seriesQuery: 3
  name: [a]
resourceRules:
  cpu: {containerQuery: 'cpu_seconds{'}
"""


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


@pytest.mark.parametrize(
    ("name", "closeness", "rule"),
    [
        ("http_requests_per_second", Closeness.EXACT, "rules[0]"),
        ("depth", Closeness.EXACT, "rules[1]"),
        ("disk_reads", Closeness.PATTERN, "rules[2]"),
        ("literally_so", Closeness.EXACT, "rules[3]"),
    ],
)
def test_the_refused_rule_that_would_provide_a_metric_is_found(name: str, closeness: Closeness, rule: str) -> None:
    refused = parse_rulebook([load_documents(RULES, "rules.yaml")], resolve).refused
    found = refused_for([refusal(one) for one in refused_of_names(refused)], name)

    assert found is not None
    assert (found[0], found[1].id) == (closeness, rule)


@pytest.mark.parametrize("name", ["http_requests_total", "other", "", "namespace_of", "cpu_seconds", "x" * 10_000])
def test_an_unrelated_refused_rule_is_not_named(name: str) -> None:
    refused = parse_rulebook([load_documents(RULES, "rules.yaml")], resolve).refused

    assert refused_for([refusal(one) for one in refused_of_names(refused)], name) is None
