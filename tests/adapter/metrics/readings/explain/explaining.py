"""Rules and a question, for tests of explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN, find_resource

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource


RULES = """
rules:
- seriesQuery: 'depth{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}, service: {resource: service}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: '{__name__=~"^any_.*"}'
  resources: {overrides: {namespace: {resource: namespace}, service: {resource: service}}}
  name: {as: depth}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
externalRules:
- seriesQuery: 'depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum (<<.Series>>{<<.LabelMatchers>>})'
"""


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)
