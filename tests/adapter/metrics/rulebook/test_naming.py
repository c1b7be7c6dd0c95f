"""How the names of series become the names of metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.regex import BadPatternError, compile_pattern
from adapter.metrics.rulebook.naming import NamingError, SeriesFilter, make_naming
from tests.support.naming import expand


@pytest.mark.parametrize(
    ("matches", "as_", "series", "name"),
    [
        # The default pattern takes every name, the default `as` the whole match.
        ("", "", "http_requests_total", "http_requests_total"),
        ("_total$", "", "http_requests_total", "_total"),
        ("_total$", "", "http_requests", None),
        # With one group it is that group.
        ("^(.*)_total$", "", "http_requests_total", "http_requests"),
        ("^(.*)_total$", "${1}_per_second", "http_requests_total", "http_requests_per_second"),
        # Unanchored, and what stands outside of `as` is gone.
        ("^(.*)_total", "${1}_per_second", "x_total_extra", "x_per_second"),
        ("http", "", "my_http_requests", "http"),
        ("", "websocket_connections", "anything", "websocket_connections"),
        ("^(?P<what>[a-z]+)_(?P<unit>[a-z]+)$", "$unit:${what}", "load_ratio", "ratio:load"),
        ("^container_(.*)_seconds_total$", "", "container_cpu_usage_seconds_total", "cpu_usage"),
    ],
)
def test_metric_names_come_from_matches_and_as(matches: str, as_: str, series: str, name: str | None) -> None:
    assert make_naming(matches, as_).name_for(series) == name


@pytest.mark.parametrize(
    ("template", "pattern", "subject", "expanded"),
    [
        # All of these agree with Go 1.26's Regexp.ExpandString.
        ("$1_x", "^(.*)_total$", "a_total", ""),
        ("${1}_x", "^(.*)_total$", "a_total", "a_x"),
        ("$1-x", "^(.*)_total$", "a_total", "a-x"),
        ("$$1", "^(.*)_total$", "a_total", "$1"),
        ("$", "a", "a", "$"),
        ("x$", "a", "a", "x$"),
        ("$ {1}", "(a)", "a", "$ {1}"),
        ("${1", "(a)", "a", "${1"),
        ("${}", "(a)", "a", "${}"),
        ("${1x}", "(a)", "a", ""),
        ("$01", "(a)", "a", ""),
        ("$0", "(a)b", "ab", "ab"),
        ("$10", "(a)", "a", ""),
        ("x$2", "(a)", "a", "x"),
        ("$n²", "(?P<n>a)", "a", "a²"),
        ("$999999999", "(a)", "a", ""),
        ("$12345678901", "(a)", "a", ""),
        ("$nobody.", "(a)", "a", "."),
        ("$1$2", "(a)|(b)", "b", "b"),
        ("$é", "(a)", "a", ""),
        ("", "a", "a", ""),
    ],
)
def test_expansion_agrees_with_go(template: str, pattern: str, subject: str, expanded: str) -> None:
    assert expand(compile_pattern(pattern), template, subject) == expanded


@given(st.text(alphabet="$${}10an_é-"))
def test_any_template_is_expanded(template: str) -> None:
    name = expand(compile_pattern("(?P<n>a)(b)?"), template, "a")
    assert name is not None
    assert "b" not in name


def test_two_groups_need_as() -> None:
    with pytest.raises(NamingError, match="2 groups"):
        make_naming("(a)(b)")
    assert make_naming("(a)(b)", "$2").name_for("ab") == "b"


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(BadPatternError):
        make_naming("(a")


@pytest.mark.parametrize(
    ("matches", "as_", "unknown", "always_empty"),
    [
        ("^(.*)_total$", "$1_rate", ("1_rate",), True),
        ("^(.*)_total$", "${1}_rate", (), False),
        ("^(.*)_total$", "x$2", ("2",), False),
        ("(?P<a>x)", "$a$b", ("b",), False),
        ("", "", (), False),
    ],
)
def test_unknown_groups_are_recognised(matches: str, as_: str, unknown: tuple[str, ...], always_empty: bool) -> None:  # noqa: FBT001 - a table
    naming = make_naming(matches, as_)
    assert naming.unknown_groups == unknown
    assert naming.always_empty is always_empty


@pytest.mark.parametrize(
    ("pattern", "wanted", "name", "passes"),
    [
        ("http", True, "my_http_requests", True),
        ("^http", True, "my_http_requests", False),
        ("http", False, "my_http_requests", False),
        ("^http", False, "my_http_requests", True),
    ],
)
def test_filters_match_anywhere_in_the_name(pattern: str, wanted: bool, name: str, passes: bool) -> None:  # noqa: FBT001 - a table
    assert SeriesFilter(compile_pattern(pattern), wanted).passes(name) is passes


def test_equivalent_namings_are_equal() -> None:
    assert make_naming("^(.*)_total$", "$1") == make_naming("^(.*)_total$")
    assert make_naming("^(.*)_total$", "$1") != make_naming("^(.*)_sum$")
