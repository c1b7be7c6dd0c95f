"""The part of a refused entry that is kept: enough to recognise it after the next change, and to guess its metrics."""

from __future__ import annotations

import json

from adapter.foundation.documents.load import MappingNode, Node, ScalarNode, SequenceNode
from adapter.metrics.rulebook.model import Api, RefusedRule


def refused_rule(node: Node, rule_id: str, api: Api) -> RefusedRule:
    """Return the refused rule for a node with an error, whatever the node is."""
    said = _content_of(node)
    series_query = said.get("seriesQuery") if isinstance(said, dict) else None
    return RefusedRule(
        rule_id,
        api,
        node.file,
        node.line,
        series_query if isinstance(series_query, str) else "",
        json.dumps(said, sort_keys=True),
    )


def stated_name(rule: RefusedRule) -> tuple[str, str]:
    """Return `matches` and `as` of the rule's `name`; empty for what is missing or not a text."""
    said = json.loads(rule.said or "null")
    name = said.get("name") if isinstance(said, dict) else None
    matches, as_ = (name.get(key) if isinstance(name, dict) else None for key in ("matches", "as"))
    return matches if isinstance(matches, str) else "", as_ if isinstance(as_, str) else ""


def _content_of(node: Node) -> object:
    """Return the content of the node without line numbers, as texts, lists and dictionaries."""
    match node:
        case ScalarNode():
            return None if node.is_null else node.value
        case SequenceNode():
            return [_content_of(item) for item in node.items]
        case MappingNode():
            return {entry.name: _content_of(entry.value) for entry in node.entries}
        case _:
            return node.kind
