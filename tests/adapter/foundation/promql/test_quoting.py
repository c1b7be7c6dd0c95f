"""How texts are quoted in PromQL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.promql.quoting import go_quoted, is_label_name, is_metric_name
from adapter.metrics.rulebook.gotemplate.literals import read_string


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("web-0", '"web-0"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("it's", '"it\'s"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("é世", '"é世"'),
        ("\u0080\u00ad\u2028\ufeff", r'"\u0080\u00ad\u2028\ufeff"'),
        ("\U0001f600\U000e0001", '"\U0001f600\\U000e0001"'),
        ("\ud800", r'"\ufffd"'),
    ],
)
def test_texts_are_quoted_as_in_go(text: str, quoted: str) -> None:
    assert go_quoted(text) == quoted


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_text_is_read_back(text: str) -> None:
    assert read_string(go_quoted(text)) == text


@pytest.mark.parametrize(
    ("text", "label", "metric"),
    [
        ("pod", True, True),
        ("_a9", True, True),
        ("job:rate5m", False, True),
        ("9a", False, False),
        ("", False, False),
        ("a-b", False, False),
        ("app.kubernetes.io/name", False, False),
        ("pod\n", False, False),
        ("é", False, False),
    ],
)
def test_label_and_metric_names_without_quotes_are_recognised(text: str, label: bool, metric: bool) -> None:  # noqa: FBT001 - a table
    assert (is_label_name(text), is_metric_name(text)) == (label, metric)
