"""The text of a report, for a file with thousands of findings."""

from __future__ import annotations

from adapter.commands.check.output import as_text
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.report import RulebookReport

MANY = 1000


class _Text(str):
    """The text of a file, which counts how often it is split into lines."""

    __slots__ = ("splits",)

    def __init__(self, _: str) -> None:
        self.splits = 0

    def splitlines(self, keepends: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - as that of str
        self.splits += 1
        return super().splitlines(keepends)


def test_a_file_with_a_finding_on_each_line_is_split_once() -> None:
    text = _Text("".join(f"line {number}\n" for number in range(MANY)))
    found = tuple(
        Finding(Severity.WARNING, Code.NAME_COLLISION.value, "rules.yaml", number + 1, f"message {number}", "remove it")
        for number in range(MANY)
    )

    shown = as_text(RulebookReport(("rules.yaml",), (), found), {"rules.yaml": text})

    assert "    7 | line 6\n      | ^\n" in shown
    assert text.splits == 1
