"""Patterns that match more names than their author meant, because they may match anywhere in a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapter.foundation.documents.load import MappingNode, ScalarNode, shortened
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.lint.selection import spelled_out_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.load import Node
    from adapter.metrics.rulebook.lint.rule_positions import Place
    from adapter.metrics.rulebook.model import Finding, Rule

_WORD = re.compile(r"[A-Za-z0-9_:]+")
_ENDINGS = ("_total", "_seconds", "_bytes", "_bucket", "_count", "_sum", "_ratio", "_info", "_celsius")
"""Endings with a meaning in Prometheus's naming practice: a pattern with one is meant for the end of a name."""


def open_patterns(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding for each pattern of the rule that certainly matches more names than it seems to.

    Yields none if `seriesQuery` states the name, since the patterns are then only applied to that name.
    """
    if spelled_out_name(rule) is not None:
        return
    for key, node in _patterns(place):
        text = node.value
        if _WORD.fullmatch(text):
            message = f"`{key}` {shortened(text)!r} matches every name that contains it, such as other_{text}_more"
            yield place.warning_at(Code.UNANCHORED_PATTERN, node, message, f"write ^{text}$ if the whole name is meant")
        elif text.endswith(_ENDINGS):
            message = f"`{key}` {shortened(text)!r} also matches longer names, as in …_created"
            yield place.warning_at(Code.UNANCHORED_PATTERN, node, message, "end it with $")


def _patterns(place: Place) -> Iterator[tuple[str, ScalarNode]]:
    for item in place.items("seriesFilters"):
        yield from _scalars(item, ("is", "isNot"))
    fields = place.node
    name = fields.get("name") if isinstance(fields, MappingNode) else None
    if name is not None:
        yield from _scalars(name, ("matches",))


def _scalars(node: Node, keys: tuple[str, ...]) -> Iterator[tuple[str, ScalarNode]]:
    for key in keys:
        value = node.get(key) if isinstance(node, MappingNode) else None
        if isinstance(value, ScalarNode) and value.value:
            yield key, value
