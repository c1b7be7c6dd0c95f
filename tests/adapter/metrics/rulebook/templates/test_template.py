"""Facts about a query's template that are known without executing it."""

from __future__ import annotations

import pytest

from adapter.metrics.rulebook.templates.template import TemplateArguments, is_written_out, parse_query_template

DATA = TemplateArguments("up", 'a="b"', {"a": "b"}, ("namespace", "pod"))


def test_the_five_fields_are_rendered() -> None:
    text = '<<.Series>> <<.LabelMatchers>> <<index .LabelValuesByName "a">> <<.GroupBy>> <<.GroupBySlice>>'
    assert parse_query_template(text).render(DATA) == 'up a="b" b namespace,pod [namespace pod]'


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("sum(<<.Series>>{<<.LabelMatchers>>}) by (<<- .GroupBy ->>)", True),
        ("<</* a comment */>>up", True),
        ("<<$.Series>>", False),
        ("<<.GroupBySlice>>", False),
        ('<<index .LabelValuesByName "a">>', False),
        ("<<.LabelMatchers | len>>", False),
        ("<<print .LabelMatchers>>", False),
        ("<<$x := .LabelMatchers>>", False),
        ("<<if .LabelMatchers>>x<<end>>", False),
        ("<<.Series.LabelMatchers>>", False),
    ],
)
def test_a_plain_template_places_fields_and_does_nothing_else(text: str, is_plain: bool) -> None:  # noqa: FBT001 - a table
    assert parse_query_template(text).is_plain is is_plain


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("up", set()),
        ("<<.Series>>{<<.LabelMatchers>>}", {"Series", "LabelMatchers"}),
        ('<<with $x := .>><<if (index $x.LabelValuesByName "a")>>y<<end>><<end>>', {"LabelValuesByName"}),
        ("<<(index .GroupBySlice 0)>><<range .GroupBySlice>><<$.GroupBy>><<end>>", {"GroupBySlice", "GroupBy"}),
    ],
)
def test_fields_are_found_anywhere_in_a_template(text: str, fields: set[str]) -> None:
    assert parse_query_template(text).fields == fields


def test_templates_of_the_same_text_are_equal() -> None:
    assert parse_query_template("<<.Series>>") == parse_query_template("<<.Series>>")
    assert parse_query_template("<<.Series>>") != parse_query_template("<<.GroupBy>>")


@pytest.mark.parametrize(
    ("template", "is_whole"),
    [
        ("sum by (<<.GroupBy>>) (<< .Series >>{<<.LabelMatchers>>})", True),
        ('up{pod=~"<<.LabelValuesByName.pod>>"} < 5 # <<.Comment>>', True),
        ("quantile(<<.LabelValuesByName.q>>, up)", False),
        ('quantile(<<index .LabelValuesByName "q">>, up)', False),
        ('up{<<if .LabelMatchers>>a="b"<<end>>}', False),
        ('up{a="<<range .GroupBySlice>><<.>><<end>>"}', False),
    ],
)
def test_templates_whose_words_depend_on_the_request_are_recognised(template: str, *, is_whole: bool) -> None:
    assert is_written_out(template) is is_whole
