"""Collects findings while a file is read, so that one pass reports everything that is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.documents.load import WrongKindError, nearest_word
from adapter.metrics.rulebook.findings import Code, Finding, Repair, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from adapter.foundation.documents.load import DocumentError, DocumentProblem, MappingEntry, MappingNode, Node
    from adapter.foundation.documents.sections import Section

    T = TypeVar("T")


class Notes:
    """The findings in one rule, or in a file outside its rules."""

    def __init__(self, rule: str | None) -> None:
        self.findings: list[Finding] = []
        self._rule = rule
        self._meant: set[str] = set()
        """Keys that were probably misspelt, for which no second finding says that they are missing."""

    @property
    def has_errors(self) -> bool:
        """Whether the rule must be refused."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def error(self, code: Code, node: Node, message: str, fix: str, repair: Repair | None = None) -> None:
        """Note an error, which refuses the rule."""
        self._add(Finding(Severity.ERROR, code.value, node.file, node.line, message, fix, None, node.column, repair))

    def warning(self, code: Code, node: Node, message: str, fix: str, repair: Repair | None = None) -> None:
        """Note a warning."""
        self._add(Finding(Severity.WARNING, code.value, node.file, node.line, message, fix, None, node.column, repair))

    def add_at(self, severity: Severity, code: Code, file: str, line: int, message: str, fix: str) -> None:
        """Note a finding for a line that has no node."""
        self._add(Finding(severity, code.value, file, line, message, fix))

    def bad_yaml(self, problems: Iterable[DocumentProblem]) -> None:
        """Note the problems that the YAML loader found inside a value."""
        for problem in problems:
            self._add_problem(Code.BAD_YAML, problem)

    def wrong_kind(self, error: DocumentError) -> None:
        """Note that a node has the wrong type."""
        self._add_problem(Code.WRONG_KIND, error.problem)

    def unknown_key(self, entry: MappingEntry, section: Section[Any]) -> None:
        """Note an unknown key, with its place within the section or the most similar known one."""
        problem = section.unknown_key(entry)
        meant = nearest_word(entry.name, [each.key for each in section.keys])
        self._meant.update([meant] if meant else ())
        repair = Repair(f"{entry.name}:", f"{meant}:") if meant else None
        self.error(Code.UNKNOWN_KEY, entry.key, problem.message, problem.fix, repair)

    def mapping(self, node: Node | None, section: Section[Any]) -> MappingNode | None:
        """Return the node as a section, after noting its unknown keys; None if it is absent or something else."""
        mapping = self.any_mapping(node)
        for entry in mapping.unknown(each.key for each in section.keys) if mapping else ():
            self.unknown_key(entry, section)
        return mapping

    def any_mapping(self, node: Node | None) -> MappingNode | None:
        """Return the node as a mapping, whatever its keys; None if it is absent or something else."""
        return None if node is None else self._read(node.mapping)

    def sequence(self, node: Node | None) -> tuple[Node, ...]:
        """Return the node's items; none if it is absent or something else."""
        return () if node is None else self._read(node.sequence) or ()

    def text(self, mapping: MappingNode | None, key: str) -> str:
        """Return the text under a key; empty if it is absent or something else."""
        node = mapping.get(key) if mapping else None
        return "" if node is None else self.text_of(node) or ""

    def text_of(self, node: Node) -> str | None:
        """Return the node's text; None if it is something else."""
        return self._read(node.text)

    def required_text(self, mapping: MappingNode, key: str, meaning: str, fix: str) -> str | None:
        """Return the text under a required key; None, with an error noted, if it is absent or not a text."""
        node = mapping.get(key)
        text = "" if node is None else self._read(node.text)
        if text is None or text.strip():
            return text
        if node is not None or key not in self._meant:
            self.error(Code.MISSING_KEY, node or mapping, f"`{key}` is missing, {meaning}", fix)
        return None

    def boolean(self, mapping: MappingNode | None, key: str, *, default: bool) -> bool:
        """Return the boolean under a key, or the default."""
        node = mapping.get(key) if mapping else None
        value = None if node is None else self._read(node.boolean)
        return default if value is None else value

    def _add_problem(self, code: Code, problem: DocumentProblem) -> None:
        place = (problem.file, problem.line)
        self._add(Finding(Severity.ERROR, code.value, *place, problem.message, problem.fix, None, problem.column))

    def _add(self, finding: Finding) -> None:
        """Note a finding of this rule, with its message on one line."""
        self.findings.append(replace(finding, message=finding.message.replace("\n", " "), rule=self._rule))

    def _read(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except WrongKindError as e:
            self.wrong_kind(e)
            return None
