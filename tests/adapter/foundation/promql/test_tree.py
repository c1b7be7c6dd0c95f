from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.promql.tree import Aggregation, Binary, Call, SelectorNode, is_scalar
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('x{a="1",b="2"}', 'x{b="2",a="1"}'),
        ('{__name__="x"}', "x"),
        ("SUM BY (a, b) (x)", "sum(x) by (b,a,)"),
        ("x[1m]", "x[60s]"),
        ("x # said twice", "x"),
        ("x == NaN", "x == NaN"),
        ('x{a="A"}', "x{a='\\u0041'}"),
        ("a + on (x, y) b", "a + on(y,x) b"),
    ],
)
def test_queries_that_mean_the_same_are_equal(one: str, other: str) -> None:
    assert parse_query(one) == parse_query(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "-x"),
        ("x", "(x)"),
        ("x[1m]", "x[2m]"),
        ("x offset 1m", "x offset -1m"),
        ("x offset 1m", "x"),
        ("x @ 5", "x @ 6"),
        ("x @ start()", "x @ end()"),
        ("x[5m:1m]", "x[5m:]"),
        ("x[5m:1m]", "x[5m:1m] offset 1m"),
        ('x{a="1"}', 'x{a=~"1"}'),
        ('x{a!="1"}', 'x{a!~"1"}'),
        ("sum by (a) (x)", "sum without (a) (x)"),
        ("sum(x)", "sum without () (x)"),
        ("topk(1, x)", "topk(2, x)"),
        ("a + b", "a + on () b"),
        ("a + on (c) b", "a + ignoring (c) b"),
        ("a + on (c) group_left () b", "a + on (c) group_right () b"),
        ("a + on (c) group_left (d) b", "a + on (c) group_left () b"),
        ("a + b", "a + fill (0) b"),
        ("a > b", "a > bool b"),
        ("a and b", "a or b"),
        ('x{a="1" or b="2"}', 'x{a="1" or b="3"}'),
        ("1", "2"),
        ('label_replace(x, "a", "", "", "")', 'label_replace(x, "b", "", "", "")'),
    ],
)
def test_queries_that_differ_anywhere_are_not_equal(one: str, other: str) -> None:
    assert parse_query(one) != parse_query(other)


def test_a_quoted_label_is_read_without_quotes() -> None:
    tree = parse_query('sum by ("app.kubernetes.io/name") ({"http.requests", "app.kubernetes.io/name"="web"})')
    assert isinstance(tree, Aggregation)
    assert tree.labels == {"app.kubernetes.io/name"}
    assert isinstance(tree.expression, SelectorNode)
    assert [matcher.label for matcher in tree.expression.matchers] == ["__name__", "app.kubernetes.io/name"]


@pytest.mark.parametrize(
    ("query", "scalar"),
    [("1", True), ("-(time() + 1)", True), ("scalar(x)", True), ("vector(1)", False), ("1 + x", False), ("x", False)],
)
def test_scalars_are_distinguished_from_series(query: str, *, scalar: bool) -> None:
    assert is_scalar(parse_query(query)) is scalar


def test_only_operators_between_series_match_labels() -> None:
    with_number, with_series = parse_query("x + 1"), parse_query("x + y")
    assert isinstance(with_number, Binary)
    assert isinstance(with_series, Binary)
    assert with_number.matching is None
    assert with_series.matching is not None


def test_functions_of_prometheus_2_are_known() -> None:
    tree = parse_query("holt_winters(x[10m], 0.5, 0.5)")
    assert isinstance(tree, Call)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "no expression"),
        ("sum(", "unclosed"),
        ("new_function(x)", "unknown function"),
        ("x{,}", "unexpected"),
        ("x @ -5", "a time or duration out of range"),
        ("x offset 1e400", "a time or duration out of range"),
        ("(" * 100_000 + "x" + ")" * 100_000, "characters"),
        ("(" * 3000 + "x" + ")" * 3000, "more than 200 brackets and operators"),
        ("-" * 8000 + "x", "more than 200 brackets and operators"),
        ("x" + " or x" * 1000, "more than 200 brackets and operators"),
        ("x{a='\ud800'}", "surrogates"),
    ],
)
def test_an_unreadable_query_is_an_error_and_not_a_crash(query: str, reason: str) -> None:
    with pytest.raises(UnreadableQueryError, match=reason):
        parse_query(query)


@pytest.mark.parametrize(
    "query",
    [
        *("x @ -5", "x@-1e15", "x @ - # so\n 5", "rate(x[5m] @ -1)", "x[5m:] @ -0.5"),
        *("x offset 1e400", "x OFFSET -1E+400", "x offset .5e400", "x offset 5.e99", "x offset NaN", "x offset - inf"),
        *("x[1e400]", "x[18446744073709551615]", "x[5m:1e30]", "x[1e20:]", "x offset 5m + y[1e400]"),
        *("x offset 18446744073709551616 - 5", "[1e400]", "x offset 1e400.5"),
    ],
)
def test_the_parser_writes_nothing_to_stderr(query: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnreadableQueryError, match="a time or duration out of range"):
        parse_query(query)
    # Lines of the Rust code would be among those of the log, and are no JSON.
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "query",
    [
        *(
            "x > 1e400",
            "x == NaN",
            "x - Inf",
            "x{a='@ -5'} > 99999999999999999999",
            "x[5m] # [1e400]",
            "x offset 5m > 1e30",
        ),
        *(
            "x @ 5 - 1e400",
            "x offset 5m - inf",
            "topk(1e400, x)",
            "info(x)",
            "x{offset='1e400'}",
            "x:nan[1e3]",
            ":inf[5m]",
        ),
    ],
)
def test_any_number_that_is_no_duration_is_read(query: str) -> None:
    assert parse_query(query) == parse_query(query)


def test_the_deepest_allowed_query_does_not_overflow_the_stack() -> None:
    assert parse_query("(" * 199 + "x" + ")" * 199) == parse_query("(" * 199 + "x" + ")" * 199)
    assert parse_query("-(" * 99 + "x" + ")" * 99) != parse_query("x" + " + x" * 199)


_PIECES = (
    *("x", "a", "sum", "by", "without", "topk", "count_values", "rate", "vector", "time()", "start()", "info", "fill"),
    *("(", ")", "[", "]", "{", "}", ":", ",", "-", "+", "^", "%", "<", "==", "=", "!=", "=~", ".", "\\", '"', "@"),
    *("5m", "-1y", "1", "-5", "NaN", "Inf", "1e400", '"s"', "'s'", "offset", "on", "ignoring", "group_left", "bool"),
    *("or", "and", 'x{a="b"}', "x[5m]", "topk(1, x)", '{"a.b"}'),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join))
def test_any_text_is_a_tree_or_an_unreadable_query_error(query: str) -> None:
    with suppress(UnreadableQueryError):
        assert parse_query(query) == parse_query(query)


@pytest.mark.parametrize(
    "query",
    [
        # Each takes the parser tenths of a second or more, in which no other thread can run.
        "x{" + ",".join(20 * [r'a=~"(\\pL{1,10}){1,10}"']) + "}",
        "x{" + ",".join(20 * [r"a!~'(\\w\x7b1,10}){1,10}'"]) + "}",
        r"""x{a=~"([)]\\pLb){1000}"}""",
        'x # says nothing\r{a=~"(\\\\pL{1,20}){1,20}"}',
    ],
)
def test_regular_expressions_that_take_long_to_compile_are_not_read(query: str) -> None:
    with pytest.raises(UnreadableQueryError, match="regular expressions are too large"):
        parse_query(query)


@pytest.mark.parametrize(
    "regex",
    [
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"(.+-)?\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}",
        "|".join(f"web-{number}" for number in range(400)),
        "(?i)[[:alpha:]_][[:alnum:]_]{0,62}",
        r"[\\w-]{1,24}[.][\\w-]{1,24}[.]svc",
    ],
)
def test_ordinary_regular_expressions_are_read(regex: str) -> None:
    tree = parse_query(f'up{{a=~"{regex}",b!~"{regex}"}}')
    assert isinstance(tree, SelectorNode)
    assert len(tree.matchers) == 3
