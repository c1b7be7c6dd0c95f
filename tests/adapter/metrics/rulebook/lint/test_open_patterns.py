"""Patterns of names: which match more than their author meant, and which only seem to."""

from __future__ import annotations

import pytest

from tests.adapter.metrics.rulebook.lint.test_lint import codes, findings, rule


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        pytest.param("  seriesFilters: [{is: http}]\n", [5], id="a bare word"),
        pytest.param("  seriesFilters: [{is: ^http_.*_total}]\n", [5], id="an ending without an end"),
        pytest.param("  name: {matches: ^(.*)_seconds, as: $1}\n", [5], id="the name's pattern"),
        pytest.param("  seriesFilters: [{is: ^http_.*_total$}]\n", [], id="anchored"),
        pytest.param("  seriesFilters: [{isNot: ^container_.*}]\n", [], id="a prefix"),
        pytest.param("  seriesFilters: [{is: ^container_}]\n", [], id="a prefix without the rest"),
        pytest.param("  name: {matches: ^(.*)_seconds_total$, as: $1}\n", [], id="as the default rules have it"),
    ],
)
def test_unanchored_patterns_are_found(more: str, lines: list[int]) -> None:
    found = findings("rules:\n" + rule(series='{__name__=~"http_.*"}', more=more))

    assert [finding.line for finding in found if finding.code == "unanchored-pattern"] == lines


@pytest.mark.parametrize(
    ("series", "more", "found"),
    [
        pytest.param("^http_requests_total$", "  name: {matches: http_requests_total}\n", False, id="one name"),
        pytest.param("http_requests|grpc_requests", "  seriesFilters: [{is: http_requests}]\n", False, id="two names"),
        pytest.param("http_requests_?.*", "  name: {matches: http_requests}\n", True, id="a longer name"),
        pytest.param(".*http_requests", "  name: {matches: http_requests}\n", True, id="a name with another beginning"),
        pytest.param("^http_.*_total$", "  name: {matches: ^(.*)_total}\n", False, id="the ending of the series"),
        pytest.param("http_.*_total|.*_created", "  name: {matches: ^(.*)_total}\n", True, id="of some series"),
        pytest.param(
            "http_.*",
            "  seriesFilters: [{is: _total$}]\n  name: {matches: ^(.*)_total}\n",
            False,
            id="the ending of a filter",
        ),
        pytest.param(
            "http_.*",
            "  seriesFilters: [{isNot: _total$}]\n  name: {matches: ^(.*)_total}\n",
            True,
            id="the ending of a filter that excludes",
        ),
    ],
)
def test_a_pattern_needs_no_anchors_if_only_the_names_that_it_means_are_selected(
    series: str, more: str, *, found: bool
) -> None:
    text = rule(series=f'{{__name__=~"{series}"}}', more=more)

    assert ("unanchored-pattern" in codes(text)) == found


def test_a_spelled_out_name_needs_no_anchors() -> None:
    assert codes(rule(more="  name: {matches: http_requests_total, as: rps}\n")) == []
