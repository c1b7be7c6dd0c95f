"""Turns the spec of an object into the tree that the strict reader of files expects. Pure.

An object has no lines, so each node has the number of a path instead of a line, and problems name that path, such as
`spec.predictive.horizon`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.plain_content import TooDeepError
from adapter.foundation.documents.tree import MappingEntry, MappingNode, ScalarNode, SequenceNode, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.documents.tree import DocumentProblem, Node

_MOST_PROBLEMS: Final = 5
_DEEPEST: Final = 32
"""The maximum depth of a spec in levels, which is more than any key needs."""
_LINE: Final = re.compile(r"\bin line ([0-9]+)\b")


def bounded(value: object, depth: int = 0) -> object:
    """Return a spec without the levels below the first one that `SpecTree` refuses; they are replaced by None.

    Versions of a spec are compared with each other, and a comparison of a thousand levels would fail.
    """
    if depth > _DEEPEST:
        return None
    match value:
        case dict():
            return {key: bounded(each, depth + 1) for key, each in value.items()}
        case list():
            return [bounded(each, depth + 1) for each in value]
        case _:
            return value


@dataclass(slots=True)
class SpecTree:
    """Makes the nodes of one object."""

    file: str
    """The name of the object in problems."""
    _paths: list[str] = field(default_factory=lambda: [""])
    """The paths, by number. The first is unused, since lines count from 1."""

    def node(self, value: object, path: str, depth: int = 0) -> Node:
        """Return the node of a JSON value. Raises TooDeepError."""
        if depth > _DEEPEST:
            raise TooDeepError(f"{shortened(path)} is nested in more than {_DEEPEST} levels: write one recommendation")
        place = (self.file, len(self._paths), 1, ())
        self._paths.append(path)
        match value:
            case dict():
                return MappingNode(
                    *place, tuple(self.entry(str(key), each, path, depth + 1) for key, each in value.items())
                )
            case list():
                return SequenceNode(
                    *place, tuple(self.node(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value))
                )
            case str():
                return ScalarNode(*place, value, plain=False, null=False)
            case _:
                return ScalarNode(*place, json.dumps(value), plain=True, null=value is None)

    def entry(self, key: str, value: object, path: str, depth: int = 1) -> MappingEntry:
        """Return the entry of a key and its value in the mapping at this path. Raises TooDeepError."""
        node = self.node(value, f"{path}.{key}", depth)
        return MappingEntry(ScalarNode(self.file, node.line, 1, (), key, plain=True, null=False), node)

    def message(self, problems: Iterable[DocumentProblem]) -> str:
        """Return the text of at most five problems, each with its path and fix, and the number of the others."""
        found = [f"{self._paths[each.line]}: {self._message_with_path(each.message)}: {each.fix}" for each in problems]
        rest = len(found) - _MOST_PROBLEMS
        return "; ".join([*found[:_MOST_PROBLEMS], *([f"and {rest} more problems"] if rest > 0 else [])])

    def _message_with_path(self, message: str) -> str:
        """Return a message in which references to other lines are replaced by paths."""
        return _LINE.sub(lambda found: f"at {self._paths[int(found[1])]}", message)
