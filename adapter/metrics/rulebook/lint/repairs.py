"""Applies mechanical repairs to the text of rule files, so that comments and layout are kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.load import DocumentError, load_documents, problems_within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.metrics.rulebook.findings import Finding

_BEFORE: Final = frozenset({"", "'", '"', "\ufeff"})
"""What may precede the text at the place of a finding: a quotation mark, or the byte order mark of the file."""


def repaired(text: str, findings: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    """Return the text of one file after all known repairs, and the findings that were repaired.

    A finding is not repaired if the text at its place is unexpected (another style of quotes, other text on a line that
    should be deleted), or if the result would not be valid YAML or have another problem, such as a key twice.
    """
    lines = text.splitlines(keepends=True)
    mended: list[Finding] = []
    most = _problems(text)
    # Starting at the end, so that no repair changes the position of another.
    for finding in sorted(findings, key=lambda finding: (finding.line, finding.column), reverse=True):
        line = _mend_line(lines[finding.line - 1], finding) if 0 < finding.line <= len(lines) else None
        if line is None:
            continue
        tried = [*lines[: finding.line - 1], line, *lines[finding.line :]]
        left = _problems("".join(tried))
        if left <= most and left < math.inf:
            lines, most = tried, left
            mended.append(finding)
    return "".join(lines), tuple(reversed(mended))


def _problems(text: str) -> float:
    """Return how many problems the YAML of a text has, without those of its meaning; infinity if it cannot be read."""
    try:
        root = load_documents(text, "").root
    except DocumentError:
        return math.inf
    return 0 if root is None else sum(1 for _ in problems_within(root))


def _mend_line(line: str, finding: Finding) -> str | None:
    repair = finding.repair
    if repair is None or not repair.old:
        return None
    head, rest = line[: finding.column - 1], line[finding.column - 1 :]
    before, found, behind = rest.partition(repair.old)
    # Further on, the same text is another key or value.
    if not found or before not in _BEFORE:
        return None
    if repair.new:
        return f"{head}{before}{repair.new}{behind}"
    return None if (head + before + behind).strip() else ""
