"""The text of the queries; tests with a real Prometheus show what they evaluate to."""

from __future__ import annotations

import math
import re

import pytest

from adapter.foundation.promql.quoting import go_quoted
from adapter.nodes.exporters.claims import SOURCE_LABELS
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import (
    ACCOUNTED_RULE,
    IDENTITY_LABELS,
    RULES,
    RateFunction,
    matchers_of,
    rate_function,
    resource_query,
)
from adapter.nodes.queries.past_queries import past_expression
from adapter.nodes.queries.series_survey import survey_query

METRIC = re.compile(
    r"""(\b(?:node_\w+|DCGM_\w+|tidewatch:\w+:ratio)\b|(?={__name__))({(?:[^}"]|"(?:[^"\\]|\\.)*")*})?"""
)
"""A selector: its metric, or an empty text if the selector is for several metrics, and its matchers."""
RATE = RateFunction("irate", 60)
MATCHERS = {"cluster": 'a"b\\c', "team": "x"}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("resource", LoadResource)
def test_matchers_are_added_to_every_selector(resource: LoadResource, *, recorded: bool) -> None:
    query = resource_query(resource, rate=RATE, matchers=matchers_of(MATCHERS), recorded=recorded).expression
    found = METRIC.findall(query)
    assert found
    assert all('cluster="a\\"b\\\\c", team="x"' in inside for _metric, inside in found)


def test_a_label_that_needs_quotes_has_them_in_its_matcher() -> None:
    assert matchers_of({"k8s.cluster.name": "east"}) == ('"k8s.cluster.name"="east"',)


def test_matchers_are_added_to_every_selector_of_the_survey() -> None:
    assert all('team="x"' in inside for _metric, inside in METRIC.findall(survey_query(matchers_of(MATCHERS))))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("resource", LoadResource)
def test_labels_of_answers_are_of_bounded_length(resource: LoadResource, *, recorded: bool) -> None:
    queries = (
        resource_query(resource, rate=RATE, matchers=(), recorded=recorded).expression,
        past_expression(resource, (), recorded=recorded),
    )
    bounds = {f'{label}=~"(?s).{{0,' for label in (*IDENTITY_LABELS, *SOURCE_LABELS)}
    selectors = [inside for query in queries for _metric, inside in METRIC.findall(query)]
    assert selectors
    assert all(bound in inside for inside in selectors for bound in bounds)


@pytest.mark.parametrize("resource", LoadResource)
def test_queries_need_no_recording_rule_and_no_job_label(resource: LoadResource) -> None:
    query = resource_query(resource, rate=RATE, matchers=()).expression
    assert 'job="' not in query
    assert ":" not in query


@pytest.mark.parametrize("resource", LoadResource)
def test_recording_rules_replace_only_the_counters_of_a_query(resource: LoadResource) -> None:
    query = resource_query(resource, rate=RATE, matchers=(), recorded=True).expression
    assert RULES[resource] in query
    assert (ACCOUNTED_RULE in query) == (resource is LoadResource.CPU)
    assert "irate" not in query
    assert "timestamp(" in query


@pytest.mark.parametrize(
    ("scrape_seconds", "function"),
    [
        (15, "irate(x[60s])"),
        (30, "irate(x[120s])"),
        (60, "irate(x[240s])"),
        (10, "irate(x[40s])"),
        (5, "rate(x[20s])"),
        (1, "rate(x[20s])"),
        (300, "irate(x[600s])"),
        (math.nan, "irate(x[300s])"),
    ],
)
def test_the_range_of_rates_follows_the_scrape_interval(scrape_seconds: float, function: str) -> None:
    assert rate_function(scrape_seconds).of("x") == function


def test_text_in_a_matcher_cannot_end_its_literal() -> None:
    assert go_quoted('a"} or up{b="\\\n') == '"a\\"} or up{b=\\"\\\\\\n"'
