"""Applies mechanical repairs to the text of rule files, so that comments and layout are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.load import DocumentError, problems_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.foundation.documents.load import Document
    from adapter.metrics.rulebook.findings import Finding

_BEFORE: Final = frozenset({"", "'", '"', "\ufeff"})
"""What may precede the text at the place of a finding: a quotation mark, or the byte order mark of the file."""


def repair_file(
    text: str, findings: Iterable[Finding], load: Callable[[str], Iterable[Document]]
) -> tuple[str, tuple[Finding, ...]]:
    """Return the text of one file after all known repairs, and the findings that were repaired.

    A finding is not repaired if the text at its place is unexpected (another style of quotes, other text on a line that
    should be deleted), or if the result would not be valid YAML or have another problem, such as a key twice. `load`
    returns the documents in a text with the lines of the text, and raises DocumentError.
    """
    with_repair = [finding for finding in findings if finding.repair is not None]
    if not with_repair:
        return text, ()
    # Starting at the end, so that no repair changes the position of another.
    ordered = sorted(with_repair, key=lambda finding: (finding.line, finding.column), reverse=True)
    mending = _Mending(text.splitlines(keepends=True), load)
    mending.mend(ordered)
    return mending.text(), tuple(reversed(mending.mended))


class _Mending:
    """One file while it is repaired."""

    def __init__(self, lines: list[str], load: Callable[[str], Iterable[Document]]) -> None:
        self.mended: list[Finding] = []
        self._lines = lines
        self._deleted: frozenset[int] = frozenset()
        """Deleted lines, which stay as empty ones until the end, so that problems keep their places."""
        self._load = load
        self._problems = self._problems_of(lines)

    def text(self) -> str:
        """Return the text as it is now."""
        return "".join(line for number, line in enumerate(self._lines) if number not in self._deleted)

    def mend(self, findings: Sequence[Finding]) -> None:
        """Repair what can be repaired: all at once, since reading a large file takes seconds, and else each half."""
        lines, deleted = list(self._lines), set(self._deleted)
        done: list[Finding] = []
        for finding in findings:
            number = finding.line - 1
            line = _mend_line(lines[number], finding) if 0 <= number < len(lines) else None
            if line is None:
                continue
            if not line:
                deleted.add(number)
                line = lines[number][len(lines[number].rstrip("\r\n")) :]
            lines[number] = line
            done.append(finding)
        if not done:
            return
        problems = self._problems_of(lines)
        if problems is not None and problems <= (self._problems or frozenset()):
            self._lines, self._deleted, self._problems = lines, frozenset(deleted), problems
            self.mended += done
        elif len(done) > 1:
            half = len(done) // 2
            self.mend(done[:half])
            self.mend(done[half:])

    def _problems_of(self, lines: Sequence[str]) -> frozenset[tuple[int, str]] | None:
        """Return the problems of the YAML by line, without those of its meaning; None if it cannot be read."""
        try:
            roots = [document.root for document in self._load("".join(lines)) if document.root is not None]
        except DocumentError:
            return None
        return frozenset((problem.line, problem.message) for root in roots for problem in problems_within(root))


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
