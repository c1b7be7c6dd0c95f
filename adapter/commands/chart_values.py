"""The rules in the values of a Helm chart: prometheus-adapter's, or this project's, which has the same keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adapter.foundation.documents.load import Document, DocumentError, MappingNode, Node, SequenceNode
from adapter.foundation.documents.tree import MappingEntry, unknown_key
from adapter.metrics.rulebook.parsing.rule_file import BACKENDS, EXTERNAL_RULES, RESOURCE_RULES, RULES

_EXISTING: Final = "existing"
_RULE_FILE_KEYS: Final = {
    "custom": RULES,
    "external": EXTERNAL_RULES,
    "resource": RESOURCE_RULES,
    "prometheus": BACKENDS,
}
"""Keys below `rules` in the values (prometheus-adapter's chart, `values.yaml`), and their names in a rule file."""
_CHART_KEYS: Final = (*_RULE_FILE_KEYS, _EXISTING, "default", "shipped", "recommenderMatchers")


def are_chart_values(root: Node | None) -> bool:
    """Return whether a file is the values of a chart with rules in them, or of a chart that contains such charts."""
    return bool(_rules_of(root))


def rules_within(document: Document) -> tuple[Document, ...]:
    """Return the rules of each chart in values as a rule file, whose nodes keep their places. Raises DocumentError."""
    return tuple(Document(document.file, _rule_file(rules)) for rules in _rules_of(document.root))


def _rule_file(rules: MappingNode) -> MappingNode:
    unknown = rules.unknown(_CHART_KEYS)
    if unknown:
        raise DocumentError(*(unknown_key(entry, _CHART_KEYS) for entry in unknown))
    existing = rules.get(_EXISTING)
    if existing is not None and existing.text():
        message = f"the chart takes its rules from the ConfigMap {existing.text()!r}, and ignores all others"
        raise DocumentError(existing.problem(message, f"name that ConfigMap, or leave `{_EXISTING}` empty"))
    entries = tuple(_with_rule_file_key(entry) for entry in rules.entries if entry.name in _RULE_FILE_KEYS)
    if all(_is_empty(entry.value) for entry in entries):
        message = "the values contain no rule: `custom`, `external` and `resource` are empty"
        raise DocumentError(rules.problem(message, "there is nothing to check; the chart's own rules are valid"))
    return replace(rules, entries=entries)


def _is_empty(node: Node) -> bool:
    is_empty_list = isinstance(node, SequenceNode) and not node.items
    return node.is_null or is_empty_list or (isinstance(node, MappingNode) and not node.entries)


def _with_rule_file_key(entry: MappingEntry) -> MappingEntry:
    return MappingEntry(replace(entry.key, value=_RULE_FILE_KEYS[entry.name]), entry.value)


def _rules_of(root: Node | None) -> tuple[MappingNode, ...]:
    """Return `rules` of the values, and of each chart in them that has such rules."""
    if not isinstance(root, MappingNode):
        return ()
    inner = [entry.value for entry in root.entries if isinstance(entry.value, MappingNode)]
    return tuple(rules for chart in (root, *inner) if (rules := _own_rules(chart)) is not None)


def _own_rules(values: MappingNode) -> MappingNode | None:
    """Return `rules` if it is a mapping with a key of such a chart; in a rule file, `rules` is a list."""
    rules = values.get(RULES)
    if not isinstance(rules, MappingNode) or len(rules.unknown(_CHART_KEYS)) == len(rules.entries):
        return None
    return rules
