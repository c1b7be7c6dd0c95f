"""Mappings of documents: sections, described key by key, and mappings whose keys users choose."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adapter.foundation.documents.shapes import Scalar, Schema, ValueShape, made_of, read_each
from adapter.foundation.documents.tree import DocumentError, MappingNode, nearest_word, shorten, unknown_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from adapter.foundation.documents.tree import DocumentProblem, MappingEntry, Node

T = TypeVar("T")

_WORD = re.compile("(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a section."""

    key: str
    shape: ValueShape
    doc: str
    """One sentence for people, which the schema shows."""
    example: str = ""
    """An example of the value, for messages; only required keys have an example."""
    into: str | None = None
    """The argument of the section's `make`; empty for a key that is only checked. None means the key in snake case: for
    `minSize`, this is `min_size`.
    """

    @property
    def attribute(self) -> str:
        """The argument of the section's `make`."""
        return _WORD.sub("_", self.key).replace("-", "_").lower() if self.into is None else self.into


@dataclass(frozen=True, slots=True)
class Given:
    """The keys of a section as they are written, for checks that involve several keys."""

    node: MappingNode
    values: Mapping[str, Any]
    """The values by key, without those that are absent or wrong."""
    is_readable: bool
    """Whether no key has a problem of its own."""

    def get(self, key: str) -> Any:  # noqa: ANN401 - see ValueShape
        """Return the value of a key; None if it is absent or wrong."""
        return self.values.get(key)

    def at(self, path: str) -> Node | None:
        """Return the value of a key, right or wrong; `path` may name a value inside it, such as `filter.pools`."""
        node: Node | None = self.node
        for key in path.split("."):
            node = node.get(key) if isinstance(node, MappingNode) else None
        return node

    def has(self, path: str) -> bool:
        """Return whether the key has a value, right or wrong."""
        return self.at(path) is not None

    def problem(self, path: str, message: str, fix: str) -> DocumentProblem:
        """Return a problem at the place of a value, or of the section if the value is absent."""
        return (self.at(path) or self.node).problem(message, fix)


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """A mapping with known keys."""

    name: str
    """Its path for messages, such as `predictive.forEach`, or a description, such as `the file`."""
    make: Callable[..., T]
    """Makes the value from the attributes of the keys that are set; the other attributes keep their defaults."""
    keys: tuple[Key, ...] = ()
    check: Callable[[Given], Iterable[DocumentProblem]] = lambda _: ()
    """Returns the problems that involve several keys."""
    others: tuple[Scalar[Any], ValueShape] | None = None
    """Shapes of all other keys and their values, which are passed as the argument `others`."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Reasons to remove keys that users bring from other programs, by key."""
    defaults: type | None = None
    """The dataclass that has the defaults, if `make` is not a dataclass."""

    def read(self, node: Node, _key: str = "") -> T:
        """Return the value made from the section. A key without a value counts as absent. Raises DocumentError."""
        mapping = self.mapping(node)
        known = {each.key: each for each in self.keys}
        given = {key: (value, known[key].shape, key) for key in known if (value := mapping.get(key)) is not None}
        values, problems = read_each(given.values())
        by_key = {key: values[place] for place, key in enumerate(given) if place in values}
        rest, wrong = self._others(mapping, known)
        problems += [*wrong, *self.missing_key_problems(mapping)]
        problems += self.check(Given(mapping, by_key, not problems))
        if problems:
            raise DocumentError(*problems)
        arguments = {known[key].attribute: value for key, value in by_key.items() if known[key].attribute}
        return made_of(node, self.make, **arguments, **({"others": rest} if self.others else {}))

    def mapping(self, node: Node) -> MappingNode:
        """Return the node as a mapping. Raises DocumentError, which quotes no text, since that may be a secret."""
        if not isinstance(node, MappingNode):
            keys = shorten(", ".join(each.key for each in self.keys) or "`key: value` lines")
            name = self.name if " " in self.name else f"`{self.name}`"
            raise DocumentError(node.problem(f"{name} is not a mapping", f"write a mapping with {keys}"))
        return node

    def missing_key_problems(self, mapping: MappingNode) -> Iterator[DocumentProblem]:
        """Yield a problem for each required key without a value; a misspelt one is reported as such instead."""
        known = [each.key for each in self.keys]
        misspelt = {nearest_word(entry.name, known) for entry in mapping.unknown(known)}
        for each in self.keys:
            if each.example and mapping.get(each.key) is None and each.key not in misspelt:
                path = each.key if " " in self.name else f"{self.name}.{each.key}"
                yield mapping.problem(f"`{path}` is missing", f"write {each.key}: {each.example}")

    def unknown_key(self, entry: MappingEntry) -> DocumentProblem:
        """Return the problem of a key that this section does not have; it may belong to a section inside this one."""
        within = [each.key for each in self.keys if isinstance(each.shape, Section) and each.shape.has(entry.name)]
        if len(within) == 1 and entry.name not in self.hints:
            message = f"the key {entry.name!r} is not known here, but in `{within[0]}`"
            return entry.key.problem(message, f"indent it below `{within[0]}:`")
        return unknown_key(entry, [each.key for each in self.keys], self.hints.get(entry.name, ""))

    def has(self, key: str) -> bool:
        """Return whether the section has such a key."""
        return any(each.key == key for each in self.keys)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the mapping, with the defaults of its attributes."""
        defaults = getattr(self.defaults or self.make, "__dataclass_fields__", {})
        properties = {}
        for each in self.keys:
            schema = dict(each.shape.schema) if each.example else _nullable(each.shape.schema)
            default = getattr(defaults.get(each.attribute), "default", None)
            if isinstance(each.shape, Scalar) and isinstance(default, bool | int | float | str) and default != "":
                schema["default"] = each.shape.written(default)
            properties[each.key] = {"description": each.doc, **schema}
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": self.others[1].schema if self.others else False,
            **({"required": required} if (required := [each.key for each in self.keys if each.example]) else {}),
        }

    def _others(self, mapping: MappingNode, known: Mapping[str, Key]) -> tuple[dict[Any, Any], list[DocumentProblem]]:
        unknown = mapping.unknown(known)
        if self.others is None:
            return {}, [self.unknown_key(entry) for entry in unknown]
        names, problems = read_each((entry.key, self.others[0], entry.name) for entry in unknown)
        values, wrong = read_each((entry.value, self.others[1], entry.name) for entry in unknown)
        return {name: values[place] for place, name in names.items() if place in values}, [*problems, *wrong]


def mapping_of(
    name: str, key: Scalar[Any], value: ValueShape, empty: tuple[str, str] = ("", "")
) -> Section[dict[Any, Any]]:
    """Return the shape of a mapping whose keys users choose.

    `empty` is the problem of a mapping without keys, and its fix; if it has no message, the mapping may be empty.
    """

    def check(given: Given) -> Iterator[DocumentProblem]:
        if empty[0] and not given.node.entries:
            yield given.node.problem(*empty)

    return Section(name, lambda others: others, check=check, others=(key, value))


def _nullable(schema: Schema) -> Schema:
    """Return the schema of a value that may be null, which counts as absent."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*types, "null"], **enum}
