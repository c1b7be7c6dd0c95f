"""From rule files to the rulebook: prometheus-adapter's configuration format, read strictly and forgivingly at once.

Strictly: whatever has no certain meaning (an unknown key, a pattern that is none) is an error with file, line and
repair. Forgivingly: an error harms the rule that it stands in, and no other. What concerns a whole file (it is missing,
it is not YAML, a key of its top level stands twice) is raised before, by `adapter.service.documents`.

A rule can also fail because the cluster lacks a resource. Reading the same documents again once the cluster's resources
have changed heals it: there is no state here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.rulebook.findings import Code
from adapter.rulebook.model import Api, RefusedRule, Rule, Rulebook, Severity
from adapter.rulebook.notes import Notes
from adapter.rulebook.rule_reader import read_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.objects.resources import ResolveResource
    from adapter.rulebook.model import Finding
    from adapter.service.documents import Document, Mapping, Node

RULE_LISTS = {"rules": Api.CUSTOM, "externalRules": Api.EXTERNAL}
"""The keys of a file that hold lists of rules, and which API each of them feeds."""
_RESOURCE_RULES = "resourceRules"
_KEYS = (*RULE_LISTS, _RESOURCE_RULES)


def parse_rulebook(documents: Sequence[Document], resolve: ResolveResource) -> Rulebook:
    """Return what the files say together, in their order; rules are counted over all files."""
    reading = _Reading(resolve)
    for document in documents:
        reading.take(document)
    return Rulebook(
        rules=tuple(reading.rules),
        refused=tuple(reading.refused),
        findings=tuple(reading.findings),
        files=tuple(document.file for document in documents),
    )


class _Reading:
    def __init__(self, resolve: ResolveResource) -> None:
        self.rules: list[Rule] = []
        self.refused: list[RefusedRule] = []
        self.findings: list[Finding] = []
        self._resolve = resolve
        self._counted = dict.fromkeys(RULE_LISTS, 0)

    def take(self, document: Document) -> None:
        notes = Notes(rule=None)
        rules: list[tuple[str, Node]] = []
        top = _top(document, notes)
        if top is not None:
            rules = [(key, item) for key in RULE_LISTS for item in _items(top, key, notes)]
            _note_resource_rules(top, notes)
            if not rules and top.get(_RESOURCE_RULES) is None and not notes.has_errors:
                _note_empty(notes, document)
        self.findings.extend(notes.findings)
        for key, item in rules:
            self._take_rule(key, item)

    def _take_rule(self, key: str, node: Node) -> None:
        rule_id = f"{key}[{self._counted[key]}]"
        self._counted[key] += 1
        notes = Notes(rule_id)
        rule = read_rule(node, rule_id, RULE_LISTS[key], self._resolve, notes)
        self.findings.extend(notes.findings)
        if rule is None:
            self.refused.append(RefusedRule(rule_id, RULE_LISTS[key], node.file, node.line))
        else:
            self.rules.append(rule)


def _top(document: Document, notes: Notes) -> Mapping | None:
    if document.root is None:
        _note_empty(notes, document)
        return None
    return notes.mapping(document.root, _KEYS)


def _items(top: Mapping, key: str, notes: Notes) -> tuple[Node, ...]:
    node = top.get(key)
    notes.bad_yaml(node.problems if node else ())
    return notes.sequence(node)


def _note_empty(notes: Notes, document: Document) -> None:
    message = "no rule stands in this file, so nothing is served from it"
    notes.add_at(
        Severity.WARNING, Code.EMPTY_CONFIGURATION, document.file, 1, message, "add `rules` or `externalRules`"
    )


def _note_resource_rules(top: Mapping, notes: Notes) -> None:
    entry = top.entry(_RESOURCE_RULES)
    if entry is not None and not entry.value.is_null:
        message = "`resourceRules` (metrics.k8s.io) are not served by this version; they come later"
        notes.warning(Code.RESOURCE_RULES_NOT_SERVED, entry.key, message, "run metrics-server for that API until then")
