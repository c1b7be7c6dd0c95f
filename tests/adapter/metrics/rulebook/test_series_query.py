"""Facts about a series query that are known before it is sent."""

from __future__ import annotations

import pytest

from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.series_query import NotASelectorError, parse_series_query


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("up", "up"),
        ('up{pod!=""}', "up"),
        ('{__name__="up"}', "up"),
        ('{"up", pod!=""}', "up"),
        ('{"my.metric"}', "my.metric"),
        ('{__name__=~"up"}', None),
        ('{__name__!="up",pod!=""}', None),
        ('{pod!=""}', None),
        ('up{a="b" or a="c"}', None),
    ],
)
def test_a_spelled_out_name_is_recognised(query: str, name: str | None) -> None:
    assert parse_series_query(query).name == name


@pytest.mark.parametrize(
    ("matcher", "present", "absent"),
    [
        ('a=""', False, True),
        ('a="x"', True, False),
        ('a!=""', True, False),
        ('a!="x"', False, False),
        ('a=~".+"', True, False),
        ('a=~".*"', False, False),
        ('a=~"x|"', False, False),
        ('a!~""', True, False),
        ('a!~"x"', False, False),
    ],
)
def test_labels_that_are_certainly_present_or_absent_are_known(matcher: str, present: bool, absent: bool) -> None:  # noqa: FBT001 - a table
    selection = parse_series_query(f"up{{{matcher}}}")
    assert ("a" in selection.present, "a" in selection.absent) == (present, absent)


@pytest.mark.parametrize("query", ["sum(up)", "up[5m]", "up offset 5m", "rate(up[5m])", "up + up", "1", "(up)"])
def test_an_expression_is_not_a_series_query(query: str) -> None:
    with pytest.raises(NotASelectorError):
        parse_series_query(query)


@pytest.mark.parametrize("query", ["up{", '{__name__=~"^a"', "", "{}", "up{a=~'('}", "(" * 1000])
def test_an_unreadable_series_query_is_not_reported_as_an_expression(query: str) -> None:
    with pytest.raises(UnreadableQueryError):
        parse_series_query(query)
