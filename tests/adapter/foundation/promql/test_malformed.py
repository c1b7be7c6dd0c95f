"""Queries that no parser can read, and queries that some parsers can read."""

from __future__ import annotations

from random import Random

import pytest

from adapter.foundation.promql.malformed import flaw_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from tests.support.promql_generator import POD_WORDS, TemplateGenerator

FLAWS = [
    ('sum by (pod) (rate(a{b="c"}[5m])', "the ( of '(rate(a"),
    ("sum(up))", "the ) of 'sum(up))' closes nothing"),
    ("up[5m", "the [ of '[5m' is never closed"),
    ('up{a="b"', "the { of"),
    ("sum(up]", "the ( of '(up]' is closed by a ]"),
    ('up{a="b}', "the string that begins at '\"b}' is never closed"),
    ("up{a='b}", "is never closed"),
    ("up{a=`b}", "is never closed"),
    ('up{a="b\n"}', "is never closed"),
    ("up +", "nothing follows the + of 'up +'"),
    ("up ==", "nothing follows the ="),
    ("up # and so on\n / # by what?", "nothing follows the /"),
    ("(up - )", "nothing follows the - of '(up - )'"),
    ("* up", "nothing precedes the * of '* up'"),
    ("(/ up)", "nothing precedes the /"),
    ("sum(*)", "nothing precedes the *"),
    ("a + group_left(/) b", "nothing precedes the /"),
    ("clamp_max(, 1)", "nothing precedes the , of ', 1)'"),
    ("clamp_max(up,, 1)", "nothing precedes the ,"),
    ("sum(rate())", "nothing is between the brackets of 'sum(rate()'"),
    ("SUM ( ) by (pod)", "nothing is between the brackets"),
]


@pytest.mark.parametrize(("query", "words"), FLAWS, ids=[query for query, _ in FLAWS])
def test_a_query_that_no_parser_can_read_is_reported_with_the_position(query: str, words: str) -> None:
    flaw = flaw_of(query)
    assert flaw is not None
    assert words in flaw
    with pytest.raises(UnreadableQueryError):
        parse_query(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "now_in_a_later_version(up)",
        "pi() + time() - sum by () (up) / on () up",
        'up{a="(",b=\'"[\',c=`\\`} # (',
        'up{a="\\"("}',
        'a{b="c",}',
        "sum by (pod,) (up)",
        "-up + -(-up) * +1",
        "up >= bool 1 and up =~ up",
        "up @ start() offset -5m",
        "up[5m:]",
        r"foo\(bar",
        'up{a=`\\`"}',
        "WITH (f(x) = x / 2,) f(union(up, up,))",
        "rate(up[5m]) keep_metric_names default 0",
        '{a="b" or c="d"}',
        "up </ 5",
        'a * on (x) group_left(*) prefix "ns_" b + ON() Group_Right ( * ) c',
        "and",
        "f()",
    ],
)
def test_a_query_that_some_parser_may_read_has_no_flaw(query: str) -> None:
    """These queries have newer functions, VictoriaMetrics's templates, escapes, commas, or apparent brackets."""
    assert flaw_of(query) is None


@pytest.mark.parametrize(
    ("query", "is_flawed"),
    [("quantile(, up)", False), ("up > ", False), ("sum()", False), ("quantile(, up", True), ('up{a="}', True)],
)
def test_an_incomplete_query_is_checked_only_for_brackets_and_strings(query: str, *, is_flawed: bool) -> None:
    assert (flaw_of(query, is_whole=False) is not None) is is_flawed


def test_a_generated_query_has_a_flaw_only_with_an_extra_bracket() -> None:
    for seed in range(200):
        template = TemplateGenerator(Random(seed), POD_WORDS).template()
        for action, text in (("<<.Series>>", "up"), ("<<.LabelMatchers>>", 'a="("'), ("<<.GroupBy>>", "pod")):
            template = template.replace(action, text)
        assert flaw_of(template) is None, template
        assert flaw_of(template + ")") is not None, template
        assert flaw_of("(" + template) is not None, template
