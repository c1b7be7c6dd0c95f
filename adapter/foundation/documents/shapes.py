"""Shapes of the values of a document: each is read strictly, and has a JSON Schema.

A shape reads a node and returns its value, or raises DocumentError with all problems inside the node, so that one
reading reports every problem. Its schema (draft 2020-12) accepts everything that the shape accepts; only the reader
checks some conditions, such as those that involve several keys. Schemas have a type everywhere and no references.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from adapter.foundation.documents.tree import DocumentError, MappingNode, ScalarNode, SequenceNode, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from adapter.foundation.documents.tree import DocumentProblem, Node

T = TypeVar("T")
R = TypeVar("R")
Schema: TypeAlias = dict[str, Any]

_LONGEST_MESSAGE = 160


class ValueShape(Protocol):
    """Reads the values of one type."""

    def read(self, node: Node, key: str = "") -> Any:  # noqa: ANN401 - what a section holds differs from key to key
        """Return the value; `key` is its key, if it has one. Raises DocumentError with all problems of the value."""

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the values."""


class WrongValueError(ValueError):
    """A text is of the expected type, but not a value that can be used."""

    def __init__(self, message: str, fix: str = "") -> None:
        """If `fix` is empty, the fix of the type is shown."""
        super().__init__(message)
        self.fix = fix


class OutOfRangeError(WrongValueError):
    """A value is too small or too large; its problem shows the text that the user wrote."""

    def __init__(self, fix: str = "") -> None:
        """If `fix` is empty, the fix of the type is shown."""
        super().__init__("the value is out of range", fix)


@dataclass(frozen=True, slots=True)
class Scalar(Generic[T]):
    """A single value, read from text. A ValueError of `parse` means the wrong type, but a WrongValueError does not."""

    name: str
    """The name with its article, for messages, such as `a duration`."""
    fix: str
    parse: Callable[[str], T]
    schema: Schema
    written: Callable[[T], object] = str
    """Returns the text of a value, for the defaults in the schema."""
    unquoted: bool = False
    """Whether the value must not be quoted: a quoted text is parsed as the empty text, which `parse` refuses."""

    def read(self, node: Node, key: str = "") -> T:
        """Return the value of a scalar node. Raises DocumentError if it cannot be used."""
        if not isinstance(node, ScalarNode) or node.null:
            raise DocumentError(node.problem(f"{node.kind} is not {self.name}", self.fix))
        try:
            return self.parse("" if self.unquoted and not node.plain else node.value)
        except WrongValueError as error:
            message = shorten(str(error), _LONGEST_MESSAGE)
            if isinstance(error, OutOfRangeError):
                written = shorten(node.value)
                message = f"`{key}` is {written}" if key else f"{written} is out of range"
            raise DocumentError(node.problem(message, error.fix or self.fix)) from None
        except ValueError:
            message = f"{shorten(node.value)!r} is not {self.name}"
            raise DocumentError(node.problem(message, self.fix)) from None

    def then(self, make: Callable[[T], R]) -> Scalar[R]:
        """Return the shape of what `make` returns for the value; `make` may raise ValueError."""
        parse = self.parse
        return Scalar(self.name, self.fix, lambda text: make(parse(text)), self.schema, unquoted=self.unquoted)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of one type."""

    item: ValueShape
    make: Callable[[list[Any]], Any] = tuple
    empty: tuple[str, str] = ("", "")
    """The problem of an empty list, and its fix; if it has no message, the list may be empty."""
    unique: Callable[[Any], object] | None = None
    """Returns the key that must be unique among items, and its name in messages."""

    def read(self, node: Node, _key: str = "") -> Any:  # noqa: ANN401 - see ValueShape
        """Return what `make` returns for the items. Raises DocumentError."""
        if not isinstance(node, SequenceNode):
            raise DocumentError(
                node.problem(f"{describe_node(node)} is not a list", "write lines that start with `- `")
            )
        values, problems = read_each((item, self.item, "") for item in node.items)
        if not node.items and self.empty[0]:
            problems.append(node.problem(*self.empty))
        problems += self._repetition_problems(node, values)
        if problems:
            raise DocumentError(*problems)
        return made_of(node, self.make, list(values.values()))

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the list."""
        return {"type": "array", "items": self.item.schema} | ({"minItems": 1} if self.empty[0] else {})

    def _repetition_problems(self, node: SequenceNode, values: Mapping[int, Any]) -> Iterator[DocumentProblem]:
        lines: dict[object, int] = {}
        for position, value in values.items() if self.unique else ():
            name, line = self.unique(value) if self.unique else "", node.items[position].line
            if name in lines:
                message = f"{shorten(str(name))} is listed twice, first in line {lines[name]}"
                yield node.items[position].problem(message, "remove one of them")
            lines.setdefault(name, line)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A value that may be written in several ways, each a different kind of node: a text, a list or a mapping."""

    shapes: Mapping[type[Node], ValueShape]

    def read(self, node: Node, key: str = "") -> Any:  # noqa: ANN401 - see ValueShape
        """Return the value that the shape for the node's kind reads; without one, raise the first shape's error."""
        return self.shapes.get(type(node), next(iter(self.shapes.values()))).read(node, key)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of all alternatives."""
        return {"anyOf": [shape.schema for shape in self.shapes.values()]}


class Anything:
    """Any value. The caller knows which types it may have."""

    schema: Schema = {"type": ["object", "array", "string", "number", "boolean", "null"]}  # noqa: RUF012 - never changed

    def read(self, node: Node, _key: str = "") -> object:
        """Return YAML's mappings, lists and texts."""
        if isinstance(node, MappingNode):
            return {entry.name: self.read(entry.value) for entry in node.entries}
        if isinstance(node, SequenceNode):
            return [self.read(item) for item in node.items]
        return node.value if isinstance(node, ScalarNode) and not node.null else None


def read_each(parts: Iterable[tuple[Node, ValueShape, str]]) -> tuple[dict[int, Any], list[DocumentProblem]]:
    """Read each node by its shape; return the readable values by position, and the problems of the other nodes."""
    values: dict[int, Any] = {}
    problems: list[DocumentProblem] = []
    for place, (node, shape, key) in enumerate(parts):
        try:
            values[place] = shape.read(node, key)
        except DocumentError as error:
            problems.extend(error.problems)
    return values, problems


def describe_node(node: Node) -> str:
    """Return the description of a node for messages: its text in quotes, or its kind."""
    return repr(shorten(node.value)) if isinstance(node, ScalarNode) and not node.null else node.kind


def made_of(node: Node, make: Callable[..., T], *values: object, **arguments: object) -> T:
    """Return what `make` returns for values of the node; its WrongValueError is raised as a DocumentError."""
    try:
        return make(*values, **arguments)
    except WrongValueError as error:
        raise DocumentError(node.problem(str(error), error.fix)) from None
