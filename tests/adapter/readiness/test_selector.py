from __future__ import annotations

import pytest

from adapter.readiness.selector import parse_series_choice


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("a", {}, True),
        ("a", {"x": "1"}, True),
        ("a{}", {"x": "1"}, True),
        ('a{x="1"}', {"x": "1"}, True),
        ('a{x="1"}', {"x": "2"}, False),
        ('a{x="1"}', {}, False),
        ('a{x!="1"}', {}, True),
        ('a{x!="1"}', {"x": "1"}, False),
        ('a{x=""}', {"y": "1"}, True),
        (' a { x = "1" , y != "2", } ', {"x": "1", "y": "3"}, True),
        (r'a{x="say \"}\\n\n"}', {"x": 'say "}\\n\n'}, True),
    ],
)
def test_matchers_choose_series(text: str, labels: dict[str, str], *, matches: bool) -> None:
    assert parse_series_choice(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1a",
        "a b",
        "a{",
        "a{x}",
        "a{x=1}",
        'a{x="1}',
        'a{x="1"} b',
        'a{x="1" y="2"}',
        'a{="1"}',
        "a{,}",
        "sum(a)",
        'a\n{x="1"}',
    ],
)
def test_a_text_that_is_not_a_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_series_choice(text)


@pytest.mark.parametrize("operator", ["=~", "!~"])
def test_patterns_are_refused_with_what_to_write(operator: str) -> None:
    with pytest.raises(ValueError, match="write = or !="):
        parse_series_choice(f'a{{x{operator}"1"}}')
