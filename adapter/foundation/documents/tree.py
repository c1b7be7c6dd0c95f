"""The tree of a YAML file: every value with its place, and the types that its reader can request.

Go's decoder knows the type of each field: `as: yes` stays the text `yes`, `as: 1e3` stays `1e3`. Nothing is
guessed here either: a scalar is its literal text, and the reader of a node states which type it expects (`mapping()`,
`text()`, `boolean()`), so that a wrong type is an error with file, line and repair.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MOST_LINES: Final = 20
"""Number of problems that are printed. If there are more, one fewer is shown, so that at least two are left out."""
_LONGEST_WORD = 100
"""Longest word that is compared, in characters: the time of a comparison grows with the product of both lengths."""

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """A problem at one place of a file, and what to do about it."""

    file: str
    line: int
    column: int
    message: str
    fix: str

    def __str__(self) -> str:
        """Return `FILE:LINE: what is wrong: what to do`."""
        return f"{self.file}:{self.line}: {self.message}: {self.fix}"


class DocumentError(Exception):
    """A file, or one of its nodes, cannot be used; `problems` say where and why, each once, in the order of the file.

    The message has a line for each problem (`problem_lines`).
    """

    def __init__(self, *problems: DocumentProblem) -> None:
        self.problems = tuple(dict.fromkeys(sorted(problems, key=lambda each: (each.line, each.column))))
        super().__init__("\n".join(problem_lines(self.problems)))

    @property
    def problem(self) -> DocumentProblem:
        """The first problem."""
        return self.problems[0]


class WrongKindError(DocumentError):
    """A node has another type than its reader expects, such as a list instead of a mapping."""


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document; lines and columns count from 1."""

    file: str
    line: int
    column: int
    problems: tuple[DocumentProblem, ...]
    """The problems of this node itself; `problems_within` also includes the nodes that it contains."""

    @property
    def kind(self) -> str:
        """The kind of the node, for messages."""
        raise NotImplementedError

    @property
    def is_null(self) -> bool:
        """Whether the node is an explicit null or an empty value."""
        return False

    def mapping(self) -> MappingNode:
        """Return the node as a mapping; raises WrongKindError."""
        raise self.wrong_kind("a mapping (`key: value` lines)")

    def sequence(self) -> tuple[Node, ...]:
        """Return the items of a list; raises WrongKindError."""
        raise self.wrong_kind("a list (lines that start with `- `)")

    def text(self) -> str:
        """Return the node's literal text, as Go reads a string field; raises WrongKindError."""
        raise self.wrong_kind("a string")

    def boolean(self) -> bool:
        """Return the boolean of YAML 1.1 (yes, no, on, off, true, false, y, n). Raises WrongKindError otherwise."""
        raise self.wrong_kind("true or false")

    def wrong_kind(self, wanted: str) -> WrongKindError:
        """Return the error that says which type is expected here."""
        return WrongKindError(self.problem(f"expected {wanted}, found {self.kind}", f"write {wanted}"))

    def problem(self, message: str, fix: str) -> DocumentProblem:
        """Return a problem at the place of this node."""
        return DocumentProblem(self.file, self.line, self.column, message, fix)


@dataclass(frozen=True, slots=True)
class ScalarNode(Node):
    """A single value, as it was written, without quotes."""

    value: str
    plain: bool
    """Whether it was written without quotes and not in block style; only a plain scalar can be null or a boolean."""
    null: bool

    @property
    def kind(self) -> str:
        """The kind of the node, for messages."""
        return "null" if self.null else f"the string {shorten(self.value)!r}"

    @property
    def is_null(self) -> bool:
        """Whether the node is an explicit null or an empty value."""
        return self.null

    def text(self) -> str:
        """Return the literal text, as Go reads a string field; raises WrongKindError for null."""
        if self.null:
            raise self.wrong_kind("a string")
        return self.value

    def boolean(self) -> bool:
        """Return the value as a boolean of YAML 1.1; raises WrongKindError."""
        try:
            return read_boolean(self.value if self.plain else "")
        except ValueError:
            raise self.wrong_kind("true or false") from None


@dataclass(frozen=True, slots=True)
class SequenceNode(Node):
    """A list of values."""

    items: tuple[Node, ...]

    @property
    def kind(self) -> str:
        """The kind of the node, for messages."""
        return "a list"

    def sequence(self) -> tuple[Node, ...]:
        """Return the items."""
        return self.items


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """One key of a mapping with its value."""

    key: ScalarNode
    value: Node

    @property
    def name(self) -> str:
        """The key's text."""
        return self.key.value


@dataclass(frozen=True, slots=True)
class MappingNode(Node):
    """Keys with values, in the order of the file. The first entry of a duplicate key counts, as in Go."""

    entries: tuple[MappingEntry, ...]
    repeated: tuple[DocumentProblem, ...] = ()
    """Keys that are set both by a merge and elsewhere. Go refuses them in a map, but not in a struct."""

    @property
    def kind(self) -> str:
        """The kind of the node, for messages."""
        return "a mapping"

    def mapping(self) -> MappingNode:
        """Return this node."""
        return self

    def entry(self, name: str) -> MappingEntry | None:
        """Return the key of this name with its value, null or not; None if it is absent."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def get(self, name: str) -> Node | None:
        """Return the value of the key; None if it is absent or null, which Go treats alike."""
        entry = self.entry(name)
        return None if entry is None or entry.value.is_null else entry.value

    def unknown(self, known: Iterable[str]) -> tuple[MappingEntry, ...]:
        """Return the entries whose keys are not among the known ones."""
        names = frozenset(known)
        return tuple(entry for entry in self.entries if entry.name not in names)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file, parsed."""

    file: str
    root: Node | None
    """None for a file that is empty or contains only comments."""


def read_boolean(text: str) -> bool:
    """Return one of YAML 1.1's booleans. Raises ValueError."""
    if text not in _TRUE | _FALSE:
        raise ValueError(text)
    return text in _TRUE


def problems_within(node: Node) -> Iterator[DocumentProblem]:
    """Yield the problems of the node and of everything that it contains, each once, in the order of the file."""
    seen: set[int] = set()
    waiting: list[Node] = [node]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield from current.problems
        if isinstance(current, SequenceNode):
            waiting.extend(reversed(current.items))
        elif isinstance(current, MappingNode):
            waiting.extend(entry.value for entry in reversed(current.entries))


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that the author probably meant; None if none is similar."""
    if len(word) > _LONGEST_WORD:
        return None
    by_lower = {candidate.lower(): candidate for candidate in known if len(candidate) <= _LONGEST_WORD}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the question whether a known word was meant; `otherwise` if none is similar."""
    meant = nearest_word(word, known)
    return f"did you mean {meant}?" if meant else otherwise


def unknown_key(entry: MappingEntry, known: Collection[str], hint: str = "") -> DocumentProblem:
    """Return the problem of a key that is not among the known ones; it names the most similar one, if there is any.

    `hint` says why a key of another program has no meaning here.
    """
    if hint:
        return entry.key.problem(f"the key {shorten(entry.name)!r} has no effect here", f"remove it: {hint}")
    meant = nearest_word(entry.name, known)
    keys = f"remove it; the keys here are {', '.join(known)}" if known else "remove it: there are no keys here"
    fix = f"did you mean {meant!r}?" if meant else keys
    return entry.key.problem(f"the key {shorten(entry.name)!r} is not known", fix)


def problem_lines(problems: Sequence[object]) -> list[str]:
    """Return a line for each problem. If there are more than `MOST_LINES`, the last line says how many are left out."""
    lines = [line for problem in problems for line in str(problem).split("\n")]
    if len(lines) <= MOST_LINES:
        return lines
    shown = lines[: MOST_LINES - 1]
    return [*shown, f"… and {len(lines) - len(shown)} more: correct these first"]


def shorten(text: str, limit: int = 60) -> str:
    """Return the text, shortened so that it does not dominate a message."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
