"""The rules in the values of a Helm chart: prometheus-adapter's, or this project's, which has the same keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.load import Document, DocumentError, MappingNode, SequenceNode
from adapter.foundation.documents.tree import MappingEntry, unknown_key
from adapter.metrics.rulebook.parsing.rule_file import BACKENDS, EXTERNAL_RULES, RESOURCE_RULES, RULES

if TYPE_CHECKING:
    from adapter.foundation.documents.load import Node

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
    """Return whether a file holds the values of a chart that has rules, or of a chart that contains such a chart."""
    return _rules_of(root) is not None


def rules_within(document: Document) -> Document:
    """Return the rules in chart values as a rule file; nodes keep their places in the values. Raises DocumentError."""
    rules = _rules_of(document.root)
    assert rules is not None, "the caller knows that these are values"
    unknown = rules.unknown(_CHART_KEYS)
    if unknown:
        raise DocumentError(*(unknown_key(entry, _CHART_KEYS) for entry in unknown))
    existing = rules.get(_EXISTING)
    if existing is not None and existing.text():
        message = f"the chart takes its rules from the ConfigMap {existing.text()!r}, and ignores all others"
        raise DocumentError(existing.problem(message, f"name that ConfigMap, or leave `{_EXISTING}` empty"))
    entries = tuple(_renamed(entry) for entry in rules.entries if entry.name in _RULE_FILE_KEYS)
    if all(_is_empty(entry.value) for entry in entries):
        message = "the values contain no rule: `custom`, `external` and `resource` are empty"
        raise DocumentError(rules.problem(message, "there is nothing to check; the chart's own rules are valid"))
    return Document(document.file, replace(rules, entries=entries))


def _is_empty(node: Node) -> bool:
    is_empty_list = isinstance(node, SequenceNode) and not node.items
    return node.is_null or is_empty_list or (isinstance(node, MappingNode) and not node.entries)


def _renamed(entry: MappingEntry) -> MappingEntry:
    return MappingEntry(replace(entry.key, value=_RULE_FILE_KEYS[entry.name]), entry.value)


def _rules_of(root: Node | None) -> MappingNode | None:
    """Return `rules` of the values or of a chart in them; None unless exactly one of these has such rules."""
    if not isinstance(root, MappingNode):
        return None
    inner = [entry.value for entry in root.entries if isinstance(entry.value, MappingNode)]
    found = [rules for chart in (root, *inner) if (rules := _own_rules(chart)) is not None]
    return found[0] if len(found) == 1 else None


def _own_rules(values: MappingNode) -> MappingNode | None:
    """Return `rules` if it is a mapping with a key of such a chart; in a rule file, `rules` is a list."""
    rules = values.get(RULES)
    if not isinstance(rules, MappingNode) or len(rules.unknown(_CHART_KEYS)) == len(rules.entries):
        return None
    return rules
