"""`prometheus` in rule files: the servers that rules may query instead of the one that the flags name.

No message repeats a value, which may be secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.documents.load import DocumentError, MappingNode, ScalarNode, problems_within, shorten
from adapter.foundation.sources.prometheus.backends.backend import Backend
from adapter.foundation.sources.prometheus.backends.backend_settings import BACKEND
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.parsing.notes import Notes
from adapter.metrics.rulebook.parsing.rule_file import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.documents.load import Document, DocumentProblem, Node


@dataclass(frozen=True, slots=True)
class DeclaredBackends:
    """The backends of all rule files."""

    by_name: Mapping[str, Backend]
    refused: Mapping[str, str]
    """The places of declarations of unusable backends, as `FILE:LINE` by name."""
    findings: tuple[Finding, ...]

    def backend_of(self, fields: MappingNode, notes: Notes) -> Backend | None:
        """Return a rule's backend; None for the Prometheus of the flags, or, after noting why, if it cannot be used."""
        name, node = notes.text(fields, "backend"), fields.get("backend")
        if node is None or not name:
            return None
        if name in self.by_name:
            return self.by_name[name]
        if name in self.refused:
            message = f"the backend {shorten(name)!r} cannot be used: see {self.refused[name]}"
            notes.error(Code.UNKNOWN_BACKEND, node, message, "correct it there")
            return None
        known = f", or name one of {shorten(', '.join(self.by_name))}" if self.by_name else ""
        message = f"the backend {shorten(name)!r} is not in `{BACKENDS}` of any rule file"
        notes.error(Code.UNKNOWN_BACKEND, node, message, f"add it there{known}")
        return None


@dataclass(frozen=True, slots=True)
class _Declared:
    """One entry of a list."""

    name: str
    """The name; empty if it cannot be read."""
    node: Node
    backend: Backend | None
    """The backend; None if it cannot be used."""


def declared_backends(documents: Sequence[Document]) -> DeclaredBackends:
    """Return the backends of all files. A name that is declared for two different backends is refused."""
    notes = Notes(rule=None)
    first: dict[str, _Declared] = {}
    usable: dict[str, Backend] = {}
    refused: dict[str, str] = {}
    for each in (entry for document in documents for entry in _entries(document, notes)):
        before = first.setdefault(each.name, each)
        if each.backend is None:
            refused.setdefault(each.name, _place(each.node))
        elif before is each:
            usable[each.name] = each.backend
        elif before.backend is None or before.backend.settings != each.backend.settings:
            _note_repeated(each, before, notes)
            refused.setdefault(each.name, _place(each.node))
    return DeclaredBackends(
        {name: backend for name, backend in usable.items() if name not in refused},
        {name: place for name, place in refused.items() if name},
        tuple(notes.findings),
    )


def _entries(document: Document, notes: Notes) -> Iterator[_Declared]:
    root = document.root
    node = root.get(BACKENDS) if isinstance(root, MappingNode) else None
    if node is None:
        return
    _note_problems(node.problems, notes)
    for item in notes.sequence(node):
        yield _entry(item, notes)


def _entry(item: Node, notes: Notes) -> _Declared:
    name = item.get("name") if isinstance(item, MappingNode) else None
    called = name.value if isinstance(name, ScalarNode) else ""
    problems, backend = tuple(problems_within(item)), None
    try:
        backend = Backend.of(*BACKEND.read(item))
    except DocumentError as error:
        problems = problems or error.problems
    _note_problems(problems, notes)
    return _Declared(called, item, None if problems else backend)


def _note_problems(problems: Iterable[DocumentProblem], notes: Notes) -> None:
    for problem in problems:
        notes.add_at(Severity.ERROR, Code.BAD_BACKEND, problem.file, problem.line, problem.message, problem.fix)


def _note_repeated(entry: _Declared, before: _Declared, notes: Notes) -> None:
    message = f"the backend {shorten(entry.name)!r} is declared with other content in {_place(before.node)}"
    fix = "give each a name of its own, or make both the same; until then, no rule can name it"
    notes.error(Code.REPEATED_BACKEND, entry.node, message, fix)


def _place(node: Node) -> str:
    return f"{node.file}:{node.line}"
