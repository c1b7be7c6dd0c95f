"""Turns rule files into the rulebook: parses prometheus-adapter's configuration format.

Anything ambiguous (an unknown key, an invalid pattern) is an error with file, line and repair. An error affects only
the rule that contains it. Errors of a whole file (it is missing, it is not YAML, it has a duplicate key at the top
level) are raised earlier, by `adapter.foundation.documents.load`.

A rule can also fail because the cluster lacks a resource. Parsing has no state, so parsing the same documents again
after the resources of the cluster have changed fixes that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.model import Api, RefusedRule, Rule, Rulebook
from adapter.metrics.rulebook.parsing.declared_backends import DeclaredBackends, declared_backends
from adapter.metrics.rulebook.parsing.metrics_query_check import Judge, is_refused_by
from adapter.metrics.rulebook.parsing.notes import Notes
from adapter.metrics.rulebook.parsing.refused import refused_rule
from adapter.metrics.rulebook.parsing.resource_rules import ResourceRulesReader
from adapter.metrics.rulebook.parsing.rule_file import BACKENDS, EXTERNAL_RULES, RESOURCE_RULES, RULE_FILE, RULES
from adapter.metrics.rulebook.parsing.rule_reader import read_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.documents.load import Document, MappingNode, Node
    from adapter.foundation.objects.resources import ResolveResource

RULE_LISTS = {RULES: Api.CUSTOM, EXTERNAL_RULES: Api.EXTERNAL}
"""The keys of a file that contain lists of rules, and the API that each list is for."""


def parse_rulebook(documents: Sequence[Document], resolve: ResolveResource, judge: Judge | None = None) -> Rulebook:
    """Return the rulebook of all files, in their order; rules are numbered across all files.

    `judge` decides on rules whose query cannot be parsed here; without it, they are accepted.
    """
    backends = declared_backends(documents)
    reading = _Reading(resolve, judge, backends)
    for document in documents:
        reading.take(document)
    return Rulebook(
        rules=tuple(reading.rules),
        refused=(*reading.refused, *reading.resource.refused),
        findings=(*backends.findings, *reading.findings, *reading.resource.findings),
        files=tuple(document.file for document in documents),
        resource=reading.resource.finish(),
        backends=tuple(backends.by_name.values()),
    )


class _Reading:
    def __init__(self, resolve: ResolveResource, judge: Judge | None, backends: DeclaredBackends) -> None:
        self.rules: list[Rule] = []
        self.refused: list[RefusedRule] = []
        self.findings: list[Finding] = []
        self.resource = ResourceRulesReader(resolve, judge, backends)
        self._resolve = resolve
        self._backends = backends
        self._judge = judge
        self._counted = dict.fromkeys(RULE_LISTS, 0)

    def take(self, document: Document) -> None:
        notes = Notes(rule=None)
        rules: list[tuple[str, Node]] = []
        top = _top(document, notes)
        if top is not None:
            rules = [(key, item) for key in RULE_LISTS for item in _items(top, key, notes)]
            resource_rules = top.get(RESOURCE_RULES)
            if resource_rules is not None:
                self.resource.take(resource_rules)
            if not rules and not top.get(BACKENDS) and resource_rules is None and not notes.has_errors:
                _note_empty(notes, document)
        self.findings.extend(notes.findings)
        for key, item in rules:
            self._take_rule(key, item)

    def _take_rule(self, key: str, node: Node) -> None:
        rule_id = f"{key}[{self._counted[key]}]"
        self._counted[key] += 1
        notes = Notes(rule_id)
        rule = read_rule(node, rule_id, RULE_LISTS[key], self._resolve, self._backends, notes)
        is_refused = rule is not None and is_refused_by(self._judge, rule, node, notes)
        self.findings.extend(notes.findings)
        if rule is None or is_refused:
            self.refused.append(refused_rule(node, rule_id, RULE_LISTS[key]))
        else:
            self.rules.append(rule)


def _top(document: Document, notes: Notes) -> MappingNode | None:
    if document.root is None:
        _note_empty(notes, document)
        return None
    return notes.mapping(document.root, RULE_FILE)


def _items(top: MappingNode, key: str, notes: Notes) -> tuple[Node, ...]:
    node = top.get(key)
    notes.bad_yaml(node.problems if node else ())
    return notes.sequence(node)


def _note_empty(notes: Notes, document: Document) -> None:
    message = "this file contains no rule, so nothing is served from it"
    notes.add_at(
        Severity.WARNING, Code.EMPTY_CONFIGURATION, document.file, 1, message, "add `rules` or `externalRules`"
    )
