from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.promql.tokens import TokenKind, closing_bracket, nests_deeper_than, tokens_of


def test_signs_within_strings_and_comments_are_not_tokens() -> None:
    query = "sum(x{a=\"(\",b='\\')',c=`)`}) # ) by (pod)"
    signs = [token.text for token in tokens_of(query) if token.kind is TokenKind.SIGN]
    assert signs == ["(", "{", "=", ",", "=", ",", "=", "}", ")"]


@pytest.mark.parametrize(
    ("query", "closed_at"),
    [("(a)", 2), ("((a)[5m:])", 8), ("(a", None), ("(a]", None), ('(a{b=")"})', 7)],
)
def test_the_closing_bracket_is_found(query: str, closed_at: int | None) -> None:
    assert closing_bracket(tokens_of(query), 0) == closed_at


@given(st.text(alphabet="ab(){}[]\"'`\\#\n \t=~5m,+é"))
def test_tokens_blanks_and_comments_cover_the_whole_text(text: str) -> None:
    tokens = tokens_of(text)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    gaps = [text[before.end : after.start] for before, after in pairwise(tokens)]
    assert all(not gap.strip() or gap.lstrip().startswith("#") for gap in gaps)


@pytest.mark.parametrize(
    ("query", "deeper"),
    [
        ("((x))", True),
        ("x + y - z", True),
        ("x or y unless z", True),
        ("(x)", False),
        ('x{a="((((",b="+-+-"}', False),
        ("x{a=~'a',b!~'b',c='d'}", False),
        ("x # ((((", False),
    ],
)
def test_nesting_counts_brackets_and_operators_outside_of_matchers(query: str, *, deeper: bool) -> None:
    assert nests_deeper_than(1, query) is deeper
