"""RE2 regular expressions with Go's meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.regex import (
    BadPatternError,
    LargePatternError,
    compile_pattern,
    compile_small_pattern,
    quote_pattern,
)

if TYPE_CHECKING:
    from _pytest.capture import CaptureFixture


def test_a_pattern_is_found_anywhere_but_matches_only_the_whole_text() -> None:
    pattern = compile_pattern("tt")
    assert pattern.found_in("http")
    assert not pattern.matches_all_of("http")
    assert pattern.matches_all_of("tt")


def test_unmatched_groups_are_none() -> None:
    match = compile_pattern("(?P<a>x)|(y)").search("y")
    assert match is not None
    assert match.groups == ("y", None, "y")
    assert match.group("a") is None
    assert match.group("nobody") is None


@pytest.mark.parametrize("text", ["[[:alpha:]]+", r"\pL+", r"^a\z", r"\Qa.b\E", "(?U)a+", "(?i)A", r"\QC\C\E"])
def test_syntax_that_only_re2_has_is_accepted(text: str) -> None:
    assert compile_pattern(text).text == text


@pytest.mark.parametrize("text", ["(a", "[a", "(?=a)", "(?<!a)b", r"(a)\1", "a**", "a{1001}", r"\C"])
def test_patterns_that_go_refuses_are_refused_without_output(text: str, capfd: CaptureFixture[str]) -> None:
    with pytest.raises(BadPatternError, match=r"."):
        compile_pattern(text)
    assert capfd.readouterr() == ("", "")


def test_patterns_of_the_same_text_are_equal() -> None:
    assert compile_pattern("a.c") == compile_pattern("a.c")
    assert compile_pattern("a.c") != compile_pattern("a.d")


@given(st.text(), st.text())
def test_a_quoted_text_matches_only_itself(text: str, other: str) -> None:
    pattern = compile_pattern(quote_pattern(text))
    assert pattern.matches_all_of(text)
    assert pattern.matches_all_of(other) == (other == text)


@pytest.mark.parametrize(
    "text", ["^http_(.*)_total$", "|".join(f"queue_{n}" for n in range(400)), r"[\pL\pN_]+", "(?i)a{100}"]
)
def test_ordinary_patterns_are_small(text: str) -> None:
    assert compile_small_pattern(text) == compile_pattern(text)


# The first one takes 300 ms, in which no other thread can run.
@pytest.mark.parametrize("text", ["(?i)" + 300 * r"\pL", "(a?){1000}b" * 8, r"(\p{Han}{1,31}){1,32}", 9000 * "a"])
def test_patterns_that_take_long_are_not_small(text: str) -> None:
    with pytest.raises(LargePatternError, match="too large"):
        compile_small_pattern(text)


def test_a_bad_pattern_is_bad_and_not_large() -> None:
    with pytest.raises(BadPatternError, match="missing") as refused:
        compile_small_pattern("(a")
    assert not isinstance(refused.value, LargePatternError)
