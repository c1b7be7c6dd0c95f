"""Strict reading of mappings: each key once, in its type, and none that is not known.

Problems are collected, so that one reading names all of them. Where a value cannot be read, its default stands in for
it; the caller must check the problems before it uses the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from adapter.documents.tree import DocumentError, MappingNode, unknown_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.documents.tree import DocumentProblem, Node

T = TypeVar("T")
D = TypeVar("D")


class MappingReader:
    """The keys of one mapping, while they are read."""

    def __init__(
        self,
        node: MappingNode,
        known: Iterable[str],
        problems: list[DocumentProblem],
        *,
        path: str = "",
    ) -> None:
        """`path` names the mapping in messages."""
        self.node = node
        self.problems = problems
        self._path = path
        known = tuple(known)
        for entry in node.unknown(known):
            self.problems.append(unknown_key(entry, known))

    def read(self, key: str, reader: Callable[[Node], T], default: D) -> T | D:
        """Return what the reader makes of the value; the default if the key is absent, null or wrong."""
        node = self.node.get(key)
        if node is None:
            return default
        try:
            return reader(node)
        except DocumentError as error:
            self.problems.append(error.problem)
            return default

    def require(self, key: str, reader: Callable[[Node], T], default: D, example: str) -> T | D:
        """Return what the reader makes of the value; an absent key is a problem too."""
        if self.node.get(key) is None:
            self.problems.append(self.node.problem(f"{self._named(key)} is missing", f"write {key}: {example}"))
        return self.read(key, reader, default)

    def _named(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def mapping_of(node: Node, path: str, keys: Iterable[str]) -> MappingNode:
    """Return the node as a mapping. Raises DocumentError, whose message does not repeat a value that may be secret."""
    if not isinstance(node, MappingNode):
        raise DocumentError(node.problem(f"{path} is not a mapping", f"write a mapping with {', '.join(keys)}"))
    return node
