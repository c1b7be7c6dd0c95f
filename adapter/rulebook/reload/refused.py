"""What is kept of a refused entry: enough to recognise it, and the rule that it was before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from adapter.documents.load import MappingNode, ScalarNode, SequenceNode
from adapter.rulebook.model import RefusedRule

if TYPE_CHECKING:
    from adapter.documents.load import Node
    from adapter.rulebook.model import Api


def refused_rule(node: Node, rule_id: str, api: Api) -> RefusedRule:
    """Return the refused rule of a node in which something is wrong, whatever it is."""
    said = _said(node)
    series_query = said.get("seriesQuery") if isinstance(said, dict) else None
    return RefusedRule(
        rule_id,
        api,
        node.file,
        node.line,
        series_query if isinstance(series_query, str) else "",
        json.dumps(said, sort_keys=True),
    )


def _said(node: Node) -> object:
    """Return the node without its place: texts, lists and dictionaries."""
    match node:
        case ScalarNode():
            return None if node.is_null else node.value
        case SequenceNode():
            return [_said(item) for item in node.items]
        case MappingNode():
            return {entry.name: _said(entry.value) for entry in node.entries}
        case _:
            return node.kind
