"""The added matchers are in every selector of a query, and nothing else has changed."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adapter.foundation.promql.narrowing import Matchers, MatchersError
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from tests.adapter.foundation.promql.queries import QUERIES, SELECTORS, MadeQuery

EU = Matchers.read('cluster="eu-1"')
MARK = Matchers.read('zq7="eu"')


@pytest.mark.parametrize(
    ("query", "narrowed"),
    [
        ("up", 'up{cluster="eu-1"}'),
        ("up{}", 'up{cluster="eu-1"}'),
        ('{__name__=~"node_.*"}', '{cluster="eu-1",__name__=~"node_.*"}'),
        ('{"http.requests", pod="a"}', '{cluster="eu-1","http.requests", pod="a"}'),
        ('up{cluster="us-1"}', 'up{cluster="eu-1",cluster="us-1"}'),
        ('up{job="a",}', 'up{cluster="eu-1",job="a",}'),
        ("sum by (pod) (rate(x[5m])) / y", 'sum by (pod) (rate(x{cluster="eu-1"}[5m])) / y{cluster="eu-1"}'),
        ("x * on (pod) group_left y", 'x{cluster="eu-1"} * on (pod) group_left y{cluster="eu-1"}'),
        ("x > bool y", 'x{cluster="eu-1"} > bool y{cluster="eu-1"}'),
        ("x # y{}\n + z", 'x{cluster="eu-1"} # y{}\n + z{cluster="eu-1"}'),
        ('x{a="}"} offset -5m', 'x{cluster="eu-1",a="}"} offset -5m'),
        ("max_over_time((x)[1h:5m] @ end())", 'max_over_time((x{cluster="eu-1"})[1h:5m] @ end())'),
        ('x{a="b" or c="d"}', 'x{cluster="eu-1",a="b" or cluster="eu-1", c="d"}'),
        ("sum + inf + 5m + sum(count)", 'sum{cluster="eu-1"} + inf + 5m + sum(count{cluster="eu-1"})'),
        ("absent(x)", 'absent(x{cluster="eu-1"})'),
        ("vector(1) + time()", "vector(1) + time()"),
    ],
)
def test_each_selector_gets_the_matchers(query: str, narrowed: str) -> None:
    assert EU.in_query(query) == narrowed


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("info(x)", id="a function that reads other series than are written"),
        pytest.param("x # a\r + y", id="a comment that ends for Prometheus alone"),
        pytest.param(
            f'{{`{"a" * 70}\\`!="",`="z"}} or y # {"a" * 70}`!=""}}', id="a string that ends for Prometheus alone"
        ),
        pytest.param("x{a=`b\\`}", id="a short string that ends for Prometheus alone"),
        pytest.param("x +", id="no expression"),
        pytest.param("x{", id="a brace that is not closed"),
        pytest.param("x @ -5", id="a time at which the parser gives up"),
        pytest.param('{a=""}', id="a selector that Prometheus refuses"),
        pytest.param("x offset (5 * 2)", id="syntax that the parser does not know"),
        pytest.param("(" * 300 + "x" + ")" * 300, id="too deep to be parsed"),
        pytest.param("x" * 9000, id="too long to be parsed"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused(query: str) -> None:
    with pytest.raises(UnreadableQueryError):
        EU.in_query(query)


def test_a_query_that_selects_many_pods_is_not_refused_as_too_long() -> None:
    names = "|".join(f"web-{number}" for number in range(20_000))
    assert EU.in_query(f'x{{pod=~"{names}"}}') == f'x{{cluster="eu-1",pod=~"{names}"}}'


def test_a_query_of_many_expressions_is_not_refused_as_too_long() -> None:
    ways = ["sum by (pod) ({}) or on (pod) ({})", "({} or {})", "{} offset 5m # a or b\n unless {}"]
    query, narrowed = (
        " or ".join(way.format(*(f'x{number}{{{more}a=" or "}}',) * 2) for number in range(150) for way in ways)
        for more in ("", 'cluster="eu-1",')
    )
    assert EU.in_query(query) == narrowed


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(" or ".join(["x"] * 400) + " or x{", id="one of them is not closed"),
        pytest.param(" or ".join(["x"] * 400) + " or info(x)", id="one of them reads other series"),
        pytest.param(" or ".join(["x"] * 400) + ") or (x", id="brackets that are closed first"),
        pytest.param(" or ".join(["x"] * 9000), id="too many"),
        pytest.param("(" + " or ".join(["x"] * 400) + ")", id="in brackets"),
    ],
)
def test_a_query_of_many_expressions_is_refused_if_one_cannot_be_read(query: str) -> None:
    with pytest.raises(UnreadableQueryError):
        EU.in_query(query)


@pytest.mark.parametrize("selector", ["x[5m]", "x offset 5m", "sum(x)", "x + y", "1"])
def test_only_a_selector_may_look_up_series(selector: str) -> None:
    with pytest.raises(UnreadableQueryError):
        EU.in_selector(selector)


@given(QUERIES)
@settings(max_examples=300, deadline=None)
def test_every_selector_of_any_query_gets_the_matchers_and_nothing_else_changes(query: MadeQuery) -> None:
    written = query.written()
    assume(_is_valid(written))
    narrowed = MARK.in_query(written)
    assert parse_query(narrowed) == parse_query(query.written(str(MARK)))
    assert narrowed.count('zq7="eu"') == len(query.selectors)
    without = narrowed.replace('zq7="eu",', "").replace('zq7="eu"', "")
    assert without.replace("{}", "") == written.replace("{}", "")


@given(SELECTORS)
@settings(deadline=None)
def test_every_selector_of_series_gets_the_matchers(selector: MadeQuery) -> None:
    assume(_is_valid(selector.written()))
    assert parse_query(MARK.in_selector(selector.written())) == parse_query(selector.written(str(MARK)))


@given(st.text(alphabet="xy{}()[]\"'`\\#\n \t=~!5m,+@or:.", max_size=40))
@settings(max_examples=500, deadline=None)
def test_any_text_is_narrowed_exactly_or_refused(text: str) -> None:
    try:
        narrowed = MARK.in_query(text)
    except UnreadableQueryError:
        return
    before, after = str(parse_query(text)), str(parse_query(narrowed))
    assert after.count("SelectorNode") == before.count("SelectorNode") == narrowed.count('zq7="eu"')


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('cluster="eu-1"', 'cluster="eu-1"'),
        ("region=~'eu|us', cluster!=\"x\",", 'cluster!="x",region=~"eu|us"'),
        ('cluster="a" # a comment', 'cluster="a"'),
        (r'"k8s.cluster"="a\"b\\c\n"', r'"k8s.cluster"="a\"b\\c\n"'),
        ('cluster=""', 'cluster=""'),
    ],
)
def test_matchers_are_read_as_within_a_selector(text: str, read: str) -> None:
    assert str(Matchers.read(text)) == read
    assert Matchers.read(read) == Matchers.read(text)


@pytest.mark.parametrize(
    "text",
    ["", "cluster", '{cluster="a"}', 'cluster="a"} or y{b="c"', 'cluster="a" or b="c"', '__name__=~"a.*"', 'a="b"}[5m'],
)
def test_a_text_that_is_not_a_list_of_matchers_is_refused(text: str) -> None:
    with pytest.raises(MatchersError, match="write them as between the braces"):
        Matchers.read(text)


def _is_valid(query: str) -> bool:
    try:
        parse_query(query)
    except UnreadableQueryError:
        return False
    return True
