"""The spec of an object as the tree that the strict reader of files takes (pure).

An object has no lines, so each node has the number of its place instead, and problems name the place: a path such as
`spec.predictive.horizon`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import MappingEntry, MappingNode, ScalarNode, SequenceNode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.documents.tree import DocumentProblem, Node

_MOST_PROBLEMS: Final = 5
_LINE: Final = re.compile(r"\bin line ([0-9]+)\b")


@dataclass(slots=True)
class SpecTree:
    """Makes the nodes of one object."""

    file: str
    """What problems call the object."""
    _paths: list[str] = field(default_factory=lambda: [""])
    """By number of the place; lines count from 1."""

    def node(self, value: object, path: str) -> Node:
        """Return the node of a value as JSON has it."""
        place = (self.file, len(self._paths), 1, ())
        self._paths.append(path)
        match value:
            case dict():
                return MappingNode(*place, tuple(self.entry(str(key), each, path) for key, each in value.items()))
            case list():
                return SequenceNode(*place, tuple(self.node(each, f"{path}[{at}]") for at, each in enumerate(value)))
            case str():
                return ScalarNode(*place, value, plain=False, null=False)
            case _:
                return ScalarNode(*place, json.dumps(value), plain=True, null=value is None)

    def entry(self, key: str, value: object, path: str) -> MappingEntry:
        """Return a key with its value in the mapping at this path."""
        node = self.node(value, f"{path}.{key}")
        return MappingEntry(ScalarNode(self.file, node.line, 1, (), key, plain=True, null=False), node)

    def message(self, problems: Iterable[DocumentProblem]) -> str:
        """Return what is wrong, each with its place and what to do."""
        found = [f"{self._paths[each.line]}: {self._placed(each.message)}: {each.fix}" for each in problems]
        rest = len(found) - _MOST_PROBLEMS
        return "; ".join([*found[:_MOST_PROBLEMS], *([f"and {rest} more problems"] if rest > 0 else [])])

    def _placed(self, message: str) -> str:
        """Return a message in which another place is named by its path."""
        return _LINE.sub(lambda found: f"at {self._paths[int(found[1])]}", message)
