"""Reads a MetricRule object: by the reader of rule files, and confined to the object's namespace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity
from adapter.foundation.documents.load import shorten
from adapter.foundation.documents.plain_content import TooDeepError, node_of
from adapter.foundation.documents.tree import Document, MappingEntry, MappingNode, Node, ScalarNode, SequenceNode
from adapter.foundation.objects.regex import FEWER_THINGS, BadPatternError, LargePatternError, compile_small_pattern
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.lint import lint
from adapter.metrics.rulebook.model import Api, Rule, Rulebook
from adapter.metrics.rulebook.objects.confining import confined_rule
from adapter.metrics.rulebook.objects.metric_rule import HAS_NO_MEANING, NOT_NAMESPACED, SPEC, rule_object_text
from adapter.metrics.rulebook.parsing.notes import Notes
from adapter.metrics.rulebook.parsing.parse import RULE_LISTS, parse_rulebook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.objects.resources import ResolveResource

_OF_MANY_NAMESPACES: Final = frozenset({Code.ROWS_OF_ALL_NAMESPACES, Code.SERIES_OF_ANYBODY, Code.EXACT_PLAN})
"""Warnings that are irrelevant once a rule sees only the series of one namespace."""
_MOST_STEPS: Final = 20_000
"""Limit on the size of all patterns of an object together, which take 1 MiB then. The largest small pattern has 17,400
steps."""
_LIST_OF: Final = {api: key for key, api in RULE_LISTS.items()}


@dataclass(frozen=True, slots=True)
class ObjectContent(ObjectIdentity):
    """The part of a MetricRule object that is read from the API server."""

    spec: object

    @property
    def shown(self) -> str:
        """The object for people: `MetricRule shop/web`."""
        return rule_object_text(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class RuleObject:
    """A MetricRule object with its rule and its findings."""

    content: ObjectContent
    rule: Rule | None
    """The confined rule; None if it is refused."""
    findings: tuple[Finding, ...]
    """The findings of `check` about it, errors first."""

    @property
    def waits_for_a_kind(self) -> bool:
        """Whether it may be valid as soon as the cluster serves another kind of object."""
        return any(finding.code == Code.UNKNOWN_RESOURCE for finding in self.findings)


def read_rule_object(content: ObjectContent, resolve: ResolveResource, namespace_label: str) -> RuleObject:
    """Return the object with its rule, or with the errors for which it is refused.

    `namespace_label` is the Prometheus label that contains the namespace; takes some milliseconds.
    """
    notes = Notes(content.shown)
    document = _document(content, namespace_label, notes)
    if document is None or notes.has_errors:
        return RuleObject(content, None, tuple(notes.findings))
    rulebook = parse_rulebook([document], resolve)
    rule, warnings = _confined_rule(content, document, rulebook, resolve, namespace_label, notes)
    found = (*notes.findings, *rulebook.findings, *warnings)
    ordered = sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)
    return RuleObject(content, rule, tuple(replace(finding, rule=content.shown) for finding in ordered))


def _confined_rule(
    content: ObjectContent,
    document: Document,
    rulebook: Rulebook,
    resolve: ResolveResource,
    namespace_label: str,
    notes: Notes,
) -> tuple[Rule | None, tuple[Finding, ...]]:
    """Return the confined rule and the warnings about it; None, after noting why, if it cannot be confined."""
    for rule in rulebook.rules:
        own = _with_small_patterns(replace(rule, id=content.shown))
        confined = confined_rule(own, content.namespace, namespace_label, resolve, document, notes)
        if confined is None:
            return None, ()
        linted = lint([document], replace(rulebook, rules=(replace(confined, id=rule.id),)), resolve)
        warnings = tuple(finding for finding in linted if finding.code not in _OF_MANY_NAMESPACES)
        return confined, warnings
    return None, ()


def _document(content: ObjectContent, namespace_label: str, notes: Notes) -> Document | None:
    """Return the object as a rule file with one rule; None, after noting why, if it cannot be one."""
    try:
        spec = notes.mapping(node_of(content.spec, content.shown), SPEC)
    except TooDeepError as e:
        notes.add_at(Severity.ERROR, Code.WRONG_KIND, content.shown, 1, str(e), "write one rule")
        return None
    if spec is None:
        return None
    api = notes.required_text(spec, "api", "so it is unknown which API serves the metric", "write custom or external")
    rule = notes.any_mapping(spec.get("rule"))
    if api is None or rule is None:
        if rule is None and not notes.has_errors:
            notes.error(Code.MISSING_KEY, spec, "`rule` is missing, so nothing is served", "write a rule")
        return None
    if api not in {Api.CUSTOM, Api.EXTERNAL}:
        notes.error(Code.WRONG_KIND, spec, f"`api` {api[:20]!r} is not an API of rules", "write custom or external")
        return None
    _note_keys_without_meaning(rule, notes)
    _note_large_patterns(rule, notes)
    listed = SequenceNode(content.shown, 1, 1, (), (_with_namespace_label(rule, namespace_label),))
    return Document(content.shown, _mapping(content.shown, (_LIST_OF[Api(api)], listed)))


def _note_keys_without_meaning(rule: MappingNode, notes: Notes) -> None:
    resources = rule.get("resources")
    for entry in rule.entries:
        if entry.name in HAS_NO_MEANING:
            message = f"`{entry.name}` cannot be set in an object: {HAS_NO_MEANING[entry.name]}"
            notes.error(Code.UNKNOWN_KEY, entry.key, message, "remove it")
    namespaced = resources.entry(NOT_NAMESPACED) if isinstance(resources, MappingNode) else None
    if namespaced is not None:
        message = f"`{NOT_NAMESPACED}` cannot be set in an object: its metrics belong to its namespace"
        notes.error(Code.UNKNOWN_KEY, namespaced.key, message, "remove it")


def _note_large_patterns(rule: MappingNode, notes: Notes) -> None:
    """Note patterns that would hold up all threads while they are compiled, as reading the rule does next."""
    filters, name = rule.get("seriesFilters"), rule.get("name")
    holders: list[tuple[Node | None, tuple[str, ...]]] = [(name, ("matches",))]
    if isinstance(filters, SequenceNode):
        holders += [(item, ("is", "isNot")) for item in filters.items]
    steps = 0
    for holder, keys in holders:
        nodes = [(key, holder.get(key)) for key in keys] if isinstance(holder, MappingNode) else []
        for key, node in nodes:
            if not isinstance(node, ScalarNode):
                continue
            steps += _noted_steps(key, node, notes)
            if steps > _MOST_STEPS:
                # The others are not compiled, since each takes time and memory.
                _note_large(key, node, f"it is too large together with those before it: {FEWER_THINGS}", notes)
                return


def _noted_steps(key: str, node: ScalarNode, notes: Notes) -> int:
    """Return the size of a pattern; 0, after noting why, if it cannot be used."""
    try:
        return compile_small_pattern(node.value).size
    except LargePatternError as e:
        _note_large(key, node, str(e), notes)
    except BadPatternError:
        # The reader of rules says what is wrong with it.
        pass
    return 0


def _note_large(key: str, node: ScalarNode, text: str, notes: Notes) -> None:
    reason, _, fix = text.partition(": ")
    notes.error(Code.BAD_REGEX, node, f"`{key}` {shorten(node.value)!r} cannot be used here: {reason}", fix)


def _with_small_patterns(rule: Rule) -> Rule:
    """Return the rule with patterns that also take little memory while they are used."""
    filters = tuple(replace(each, pattern=compile_small_pattern(each.pattern.text)) for each in rule.series_filters)
    naming = replace(rule.naming, pattern=compile_small_pattern(rule.naming.pattern.text))
    return replace(rule, series_filters=filters, naming=naming)


def _with_namespace_label(rule: MappingNode, label: str) -> MappingNode:
    """Return the rule with an override for the namespace label, unless the rule already has one for that label."""
    resources = rule.get("resources")
    if resources is not None and not isinstance(resources, MappingNode):
        return rule
    overrides = resources.get("overrides") if resources else None
    if overrides is not None and not isinstance(overrides, MappingNode):
        return rule
    if overrides is not None and overrides.entry(label) is not None:
        return rule
    entry = (label, node_of({"resource": "namespace"}, rule.file))
    known = overrides or _mapping(rule.file)
    added = replace(known, entries=(*known.entries, *_mapping(rule.file, entry).entries))
    within = _with_value(resources or _mapping(rule.file), "overrides", added)
    return _with_value(rule, "resources", within)


def _with_value(mapping: MappingNode, key: str, value: Node) -> MappingNode:
    others = tuple(entry for entry in mapping.entries if entry.name != key)
    return replace(mapping, entries=(*others, *_mapping(mapping.file, (key, value)).entries))


def _mapping(source: str, *entries: tuple[str, Node]) -> MappingNode:
    return MappingNode(source, 1, 1, (), tuple(_entries(source, *entries)))


def _entries(source: str, *entries: tuple[str, Node]) -> Iterator[MappingEntry]:
    for key, value in entries:
        node = node_of({key: None}, source).mapping()
        yield replace(node.entries[0], value=value)
