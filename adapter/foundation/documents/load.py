"""A strict YAML loader that keeps the place of every value.

Rule files of prometheus-adapter are read by Go, whose decoder knows the type of each field: `as: yes` stays the text
`yes`, `as: 1e3` stays `1e3`, and a duplicate key is an error. A loader that guesses types would lose all of that, as
well as the line numbers for error messages. So this module builds its own tree from the parser's events: every scalar
is kept as its literal text, every node has its file, line and column, and the reader of a node states which type it
expects (`mapping()`, `text()`, `boolean()`).

Errors that concern the whole file, such as bad syntax or a duplicate key at the top level, raise `DocumentError`.
Errors inside a value (a rule) are attached to its node as `problems`, so that they affect only that rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from adapter.foundation.documents.merge_keys import Place, make_mapping
from adapter.foundation.documents.tree import (
    Document,
    DocumentError,
    DocumentProblem,
    MappingEntry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    WrongKindError,
    nearest_word,
    problems_within,
    shorten,
)

__all__ = [
    "Document",
    "DocumentError",
    "DocumentProblem",
    "MappingEntry",
    "MappingNode",
    "Node",
    "ScalarNode",
    "SequenceNode",
    "WrongKindError",
    "load_documents",
    "nearest_word",
    "problems_within",
    "shorten",
]

DEEPEST = 64
"""Largest depth of nesting. Rule files have about six levels; the limit protects the stack from hostile files."""
MOST_NODES = 1_000_000
"""Largest number of nodes after all aliases are expanded. A few lines of nested aliases can expand to billions."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_CORE_TAG = "tag:yaml.org,2002:"
_CORE_TYPES = frozenset({"str", "int", "float", "bool", "null", "map", "seq", "timestamp", "merge"})
_UNQUOTED_TYPES = frozenset({"bool", "null", "merge"})
"""Tags that give a quoted text the type that it would have without quotes."""
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_TAB_INDENT = re.compile(r" *\t(?=[ \t]*[^ \t\r])")

_Loader: TypeAlias = "type[yaml.CSafeLoader | yaml.SafeLoader]"


class _Mark(Protocol):
    """The position at which an event began; the C parser and the Python parser have different classes for it."""

    line: int
    column: int


def load_documents(text: str, file: str) -> Document:
    """Return the one document of a YAML text; raises DocumentError if nothing in the file can be used.

    `file` is the name that messages give. A second document in the same text is an error: Go reads the first and
    silently ignores the rest.
    """
    _refuse_unprintable(text, file)
    loader: _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _document(yaml.parse(text, Loader=loader), file)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        reason = ", ".join(part for part in (e.context, e.problem) if part)
        tab = _tab_before(text, mark)
        if tab is not None:
            place, message = (file, *tab), "this is not YAML: this line is indented with a tab"
            raise _document_error(place, message, "indent it with spaces") from e
        raise _document_error(_place(file, mark), f"this is not YAML: {reason}", "correct the syntax") from e
    except yaml.YAMLError as e:
        raise _document_error(_place(file, None), f"this is not YAML: {e}", "correct the syntax") from e


def _refuse_unprintable(text: str, file: str) -> None:
    found = _UNPRINTABLE.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        message = f"a character that YAML does not allow (U+{ord(found[0]):04X})"
        raise DocumentError(
            DocumentProblem(file, line, column, message, "remove it, or write it as an escape in double quotes")
        )


def _tab_before(text: str, mark: _Mark | None) -> tuple[int, int] | None:
    """Return line and column of a tab that indents the line of the error or the one before; None without such a tab."""
    if mark is None:
        return None
    lines = text.split("\n")
    for line in range(max(0, mark.line - 1), min(mark.line + 1, len(lines))):
        found = _TAB_INDENT.match(lines[line])
        if found:
            return line + 1, found.end()
    return None


def _document_error(place: Place, message: str, fix: str) -> DocumentError:
    return DocumentError(DocumentProblem(*place, message, fix))


def _place(file: str, mark: _Mark | None) -> Place:
    return (file, mark.line + 1, mark.column + 1) if mark else (file, 1, 1)


def _document(events: Iterator[Event], file: str) -> Document:
    roots: list[Node] = []
    for event in events:
        if isinstance(event, DocumentStartEvent):
            root = _Builder(events, file).node(_next_node(events), depth=1)
            if roots and not root.is_null:
                fix = "put it into a file of its own"
                raise _document_error(
                    _place(file, event.start_mark), "a second document begins here; one file holds one document", fix
                )
            roots.append(root)
    if not roots or roots[0].is_null:
        return Document(file, None)
    for problem in roots[0].problems:
        raise DocumentError(problem)
    return Document(file, roots[0])


def _next_node(events: Iterator[Event]) -> NodeEvent:
    event = next(events)
    assert isinstance(event, NodeEvent), "a document starts with a node"
    return event


@dataclass(slots=True)
class _Anchored:
    """A node with an anchor, which aliases refer to."""

    node: Node | None = None
    """None while the anchored node is being read: an alias to it would contain itself."""
    size: int = 0
    """Number of nodes that an alias to the node expands to."""
    height: int = 0
    """Number of levels of nesting inside the node."""


class _Builder:
    """Builds the nodes of one document from the parser's events."""

    def __init__(self, events: Iterator[Event], file: str) -> None:
        self._events = events
        self._file = file
        self._anchors: dict[str, _Anchored] = {}
        """The anchors by name; if a name is defined twice, the later anchor counts, as in Go."""
        self._nodes = 0
        self._has_aliases = False
        self._deepest = 0
        """The deepest level reached so far inside the node that is being read, with aliases expanded."""

    def node(self, event: NodeEvent, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            return self._alias_node(event, depth)
        self._reach(depth, event)
        before, outer, self._deepest = self._nodes, self._deepest, depth
        self._count(1, event)
        anchored = _Anchored()
        if event.anchor:
            self._anchors[event.anchor] = anchored
        anchored.node = self._make_node(event, depth)
        anchored.size = self._nodes - before
        anchored.height = self._deepest - depth
        self._deepest = max(self._deepest, outer)
        return anchored.node

    def _alias_node(self, event: AliasEvent, depth: int) -> Node:
        name = event.anchor or ""
        anchored = self._anchors.get(name)
        if anchored is None:
            known = nearest_word(name, self._anchors)
            fix = f"did you mean *{known}?" if known else f"define it before with &{name}"
            raise _document_error(self._place(event), f"*{name} is not defined", fix)
        if anchored.node is None:
            raise _document_error(self._place(event), f"*{name} contains itself", "write its content out")
        self._has_aliases = True
        self._reach(depth + anchored.height, event)
        self._count(anchored.size, event)
        return anchored.node

    def _reach(self, depth: int, event: NodeEvent) -> None:
        self._deepest = max(self._deepest, depth)
        if depth > DEEPEST:
            raise _document_error(self._place(event), f"more than {DEEPEST} levels of nesting", "flatten it")

    def _count(self, nodes: int, event: NodeEvent) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            message, fix = f"there are more than {MOST_NODES} values up to here", "divide the file"
            if self._has_aliases:
                message = f"the aliases up to here stand for more than {MOST_NODES} values"
                fix = "write fewer aliases of aliases"
            raise _document_error(self._place(event), message, fix)

    def _make_node(self, event: NodeEvent, depth: int) -> Node:
        place = self._place(event)
        problems = _tag_problems(event, place)
        if isinstance(event, SequenceStartEvent):
            return SequenceNode(*place, problems, tuple(self._children(depth)))
        if isinstance(event, MappingStartEvent):
            return make_mapping(place, problems, list(self._children(depth)))
        assert isinstance(event, ScalarEvent), "nodes are aliases, lists, mappings and scalars"
        plain = event.implicit[0] or (event.tag or "").removeprefix(_CORE_TAG) in _UNQUOTED_TYPES
        null = plain and event.value in _NULLS
        return ScalarNode(*place, problems, event.value, plain, null)

    def _place(self, event: Event) -> Place:
        return _place(self._file, event.start_mark)

    def _children(self, depth: int) -> Iterator[Node]:
        for event in self._events:
            if isinstance(event, CollectionEndEvent):
                return
            assert isinstance(event, NodeEvent), "collections hold nodes"
            yield self.node(event, depth + 1)


def _tag_problems(event: NodeEvent, place: Place) -> tuple[DocumentProblem, ...]:
    tag: str | None = getattr(event, "tag", None)
    if tag == f"{_CORE_TAG}null" and getattr(event, "value", None) not in _NULLS:
        return (DocumentProblem(*place, "the tag !!null is on a value that is not null", "remove the tag"),)
    if tag is None or tag == "!" or tag.removeprefix(_CORE_TAG) in _CORE_TYPES:
        return ()
    return (DocumentProblem(*place, f"the tag {shorten(tag)!r} has no meaning here", "remove it"),)
