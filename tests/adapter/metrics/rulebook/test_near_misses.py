"""The rule that nearly serves a metric, judged by the rules alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.metrics.rulebook.near_misses import LONGEST_NAME, near_miss, with_parsed_query
from tests.support.readings import rulebook_of

if TYPE_CHECKING:
    from adapter.metrics.rulebook.near_misses import NearMiss

OBJECTS = "resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
QUERY = "metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'"
RULES = f"""
rules:
- seriesQuery: '{{namespace!="",__name__!~"^container_.*"}}'
  seriesFilters: [{{isNot: ".*_total$"}}]
  {OBJECTS}
  {QUERY}
- seriesQuery: '{{__name__=~"^http_.*_total$",pod!=""}}'
  name: {{matches: "^(.*)_total$", as: "${{1}}_per_second"}}
  {OBJECTS}
  {QUERY}
- seriesQuery: 'spelled_out_total{{pod!=""}}'
  name: {{matches: "^spelled_(.*)$"}}
  {OBJECTS}
  {QUERY}
- seriesQuery: 'odd{{pod!=""}}'
  name: {{matches: "^even", as: "even"}}
  {OBJECTS}
  {QUERY}
- seriesQuery: '{{__name__="only_is"}}'
  seriesFilters: [{{is: "^never"}}]
  {OBJECTS}
  {QUERY}
"""


def missed(name: str) -> NearMiss | None:
    return near_miss([with_parsed_query(rule) for rule in rulebook_of(RULES).rules], name)


@pytest.mark.parametrize(
    ("name", "rule", "obstacle"),
    [
        ("jobs_total", "rules[0]", "its filter `isNot: .*_total$` drops the series jobs_total"),
        ("http_requests_total", "rules[1]", "it serves the series http_requests_total as 'http_requests_per_second'"),
        ("spelled_out_total", "rules[2]", "it serves the series spelled_out_total as 'out_total'"),
        ("odd", "rules[3]", "its `name.matches` '^even' does not match the series odd"),
        ("only_is", "rules[4]", "its filter `is: ^never` drops the series only_is"),
        ("anything", "rules[0]", None),
        (
            "http.requests",
            "rules[0]",
            'its `metricsQuery` lacks quotes around the series http.requests: write {"<<.Series>>",<<.LabelMatchers>>}',
        ),
        ("container_cpu", None, None),
    ],
)
def test_the_closest_rule_is_found_with_its_obstacle(name: str, rule: str | None, obstacle: str | None) -> None:
    found = missed(name)

    assert (found and found.rule.id, found and found.obstacle) == (rule, obstacle)


@pytest.mark.parametrize(
    ("name", "series"), [("http_requests_per_second", "http_requests_total"), ("out_total", "out_total")]
)
def test_the_series_behind_a_renamed_metric_is_guessed(name: str, series: str) -> None:
    found = missed(name)

    assert found
    assert (found.obstacle is None, found.series) == (name != "out_total", series)


@pytest.mark.parametrize("name", ["", "x" * (LONGEST_NAME + 1), "\x00", "ü", "a/b", "(("])
def test_any_name_may_be_requested(name: str) -> None:
    found = missed(name)

    assert found is None or found.series == name or found.series.startswith(name)
