"""Anybody can choose labels, so an administrator's terminal gets their control characters escaped."""

from __future__ import annotations

import pytest

from adapter.commands.check.output import as_text as check_as_text
from adapter.commands.explain.command import as_text
from adapter.foundation.reports.terminal_escaping import printable, printable_lines
from adapter.metrics.readings.explain.explanation import (
    ExplainedValue,
    Explanation,
    ExplanationStep,
    ExplanationVerdict,
    Outcome,
)
from adapter.metrics.rulebook.findings import Finding, Severity
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.report import RulebookReport, RuleReport, ServedMetric

EVIL = "web\x1b]0;owned\x07\r\u202e\x9b2J\x7f\nok"
ESCAPED = r"web\x1b]0;owned\x07\r\u202e\x9b2J\x7f\nok"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, ESCAPED),
        ("", ""),
        ('pod="wéb-0", "…" 日本 \\d', 'pod="wéb-0", "…" 日本 \\d'),
        ("\ud800\U000e0001", r"\ud800\U000e0001"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_query_keeps_its_line_breaks() -> None:
    assert printable_lines('\n sum(\r\n\tup{a="\x1b"}\n)\n\n') == 'sum(\n\tup{a="\\x1b"}\n)'


def test_an_explanation_contains_no_control_characters() -> None:
    found = Explanation(
        metric=EVIL,
        namespace=EVIL,
        object=EVIL,
        verdict=ExplanationVerdict.NO_VALUE,
        cause=EVIL,
        fix=EVIL,
        rule="rules[0]",
        query=f'sum(\n  x{{a="{EVIL}"}}\n)\n',
        steps=(ExplanationStep("values", Outcome.NO, EVIL),),
        values=(ExplainedValue(EVIL, 3221234567.0, None, None),),
    )
    text = as_text(found)

    assert text.replace("\n", "").isprintable()
    assert text.count(ESCAPED) == 7
    assert text.count("\n") == 8, "four of them are of the query"
    assert text.endswith("ok  3221234567"), "all digits"


def test_a_report_of_check_contains_no_control_characters() -> None:
    finding = Finding(Severity.WARNING, "odd", "rules.yaml", 1, EVIL, EVIL)
    served = ServedMetric(EVIL, True, 1, 'sum(\n\tx{a="\x1b"}\n)\n')  # noqa: FBT003 - a field of a value
    rule = RuleReport("rules[0]", Api.CUSTOM, "rules.yaml", 1, (finding,), None, (served,), None)
    report = RulebookReport(("rules.yaml",), (rule,), ())
    text = check_as_text(report, {"rules.yaml": f"- {EVIL}"})

    assert text.replace("\n", "").isprintable()
    assert text.count(ESCAPED) == 3
    assert "query: sum(\n" in text
