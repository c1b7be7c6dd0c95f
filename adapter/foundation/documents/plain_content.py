"""Turns plain content, such as the spec of a Kubernetes object, into the tree that readers of files use."""

from __future__ import annotations

from typing import Any, Final

from adapter.foundation.documents.tree import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode

_DEEPEST = 32
"""Largest depth of nesting of the content, in levels; no reader needs more."""
_CHARACTERS_OF_A_VALUE: Final = 16


class TooDeepError(ValueError):
    """The content is nested more deeply than any reader needs."""


def is_larger_than(most: int, content: object) -> bool:
    """Return whether decoded JSON has more than `most` values; each key and every 16 characters of a text count as one.

    The check stops as soon as the limit is exceeded, and handles any depth.
    """
    waiting = [content]
    while waiting:
        each = waiting.pop()
        most -= 1
        if isinstance(each, str):
            most -= len(each) // _CHARACTERS_OF_A_VALUE
        elif isinstance(each, dict | list):
            if len(each) > most:
                return True
            waiting.extend(each)
            if isinstance(each, dict):
                waiting.extend(each.values())
        if most < 0:
            return True
    return False


def node_of(content: object, source: str, depth: int = 0) -> Node:
    """Return the node of decoded JSON. `source` stands for the file; every line is 1. Raises TooDeepError."""
    if depth > _DEEPEST:
        raise TooDeepError(f"{source} is nested in more than {_DEEPEST} levels")
    if isinstance(content, dict):
        entries = (
            MappingEntry(scalar_of(str(key), source), _below(each, source, depth)) for key, each in content.items()
        )
        return MappingNode(source, 1, 1, (), tuple(entries))
    if isinstance(content, list):
        return SequenceNode(source, 1, 1, (), tuple(_below(each, source, depth) for each in content))
    return scalar_of(content, source)


def scalar_of(content: object, source: str) -> ScalarNode:
    """Return a single value as YAML would write it; only a text counts as quoted."""
    is_text = isinstance(content, str)
    text = _text(content)
    return ScalarNode(source, 1, 1, (), text, plain=not is_text, null=content is None)


def _below(content: Any, source: str, depth: int) -> Node:  # noqa: ANN401 - a part of a document
    return node_of(content, source, depth + 1)


def _text(content: object) -> str:
    if isinstance(content, bool):
        return "true" if content else "false"
    return "" if content is None else str(content)
