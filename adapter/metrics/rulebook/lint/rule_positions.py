"""Positions in the rule files, for findings about parsed rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from adapter.foundation.documents.load import Document, MappingNode, Node, SequenceNode
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.parsing.parse import RULE_LISTS
from adapter.metrics.rulebook.parsing.resource_rules import MEASURED
from adapter.metrics.rulebook.parsing.rule_file import RESOURCE_RULES


@dataclass(frozen=True, slots=True)
class Place:
    """One rule in its file."""

    rule: str
    node: Node

    def warning(self, code: Code, path: tuple[str, ...], message: str, fix: str) -> Finding:
        """Return a warning at the value under these keys, or at the nearest value that exists."""
        return self.warning_at(code, _below(self.node, path), message, fix)

    def warning_at(self, code: Code, node: Node, message: str, fix: str) -> Finding:
        """Return a warning at a node of the rule."""
        return Finding(
            Severity.WARNING, code.value, node.file, node.line, message, fix, rule=self.rule, column=node.column
        )

    def items(self, key: str) -> tuple[Node, ...]:
        """Return the items of a list of the rule; none if there is no list."""
        found = _below(self.node, (key,))
        return found.items if isinstance(found, SequenceNode) else ()


def rule_nodes(documents: Iterable[Document]) -> dict[str, Node]:
    """Return each rule's node by its id; rules are numbered across all files, as in the rulebook."""
    found: dict[str, Node] = {}
    counted = dict.fromkeys(RULE_LISTS, 0)
    for document in documents:
        root = document.root
        for key in RULE_LISTS if isinstance(root, MappingNode) else ():
            items = root.get(key) if isinstance(root, MappingNode) else None
            for item in items.items if isinstance(items, SequenceNode) else ():
                found[f"{key}[{counted[key]}]"] = item
                counted[key] += 1
        for name, rule in _resource_rules(root):
            # The first of several definitions is used.
            found.setdefault(f"{RESOURCE_RULES}.{name}", rule)
    return found


def _resource_rules(root: Node | None) -> Iterator[tuple[str, Node]]:
    rules = root.get(RESOURCE_RULES) if isinstance(root, MappingNode) else None
    for name in MEASURED if isinstance(rules, MappingNode) else ():
        rule = rules.get(name) if isinstance(rules, MappingNode) else None
        if rule is not None:
            yield name, rule


def _below(node: Node, path: tuple[str, ...]) -> Node:
    for key in path:
        below = node.get(key) if isinstance(node, MappingNode) else None
        if below is None:
            return node
        node = below
    return node
