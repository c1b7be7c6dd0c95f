"""`resourceRules`: what pods and nodes use of CPU and memory, for metrics.k8s.io.

There are two rules, `cpu` and `memory`, each with a query for containers and one for nodes. The queries name their
series themselves (`.Series` is empty), so there is nothing to discover: the rule alone defines its metrics. Their
queries are planned and sent like those of all other metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.documents.load import ScalarNode, WrongKindError, problems_within, shorten
from adapter.foundation.objects.durations import DurationError, parse_prometheus_duration
from adapter.foundation.objects.resources import BUILT_IN, ResolveResource, Resource, find_resource
from adapter.foundation.promql.quoting import is_quoted_label_name
from adapter.metrics.rulebook.findings import Code, Finding
from adapter.metrics.rulebook.model import Api, Metric, RefusedRule, ResourceRule, ResourceRules, Rule
from adapter.metrics.rulebook.naming import make_naming
from adapter.metrics.rulebook.parsing.metrics_query_check import Judge, is_refused_by, read_usage_query
from adapter.metrics.rulebook.parsing.notes import Notes
from adapter.metrics.rulebook.parsing.rule_file import RESOURCE_RULES, RESOURCES, USAGE, USAGES
from adapter.metrics.rulebook.parsing.rule_reader import read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping as Keyed

    from adapter.foundation.documents.load import MappingEntry, MappingNode, Node
    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.rulebook.parsing.declared_backends import DeclaredBackends
    from adapter.metrics.rulebook.resources import ResourceMapping
    from adapter.metrics.rulebook.templates.template import QueryTemplate

MEASURED = ("cpu", "memory")
"""The resources of metrics.k8s.io, in cores and bytes."""
PODS = find_resource(BUILT_IN, "", "pods")
NODES = find_resource(BUILT_IN, "", "nodes")

_WINDOW = "window"


class ResourceRulesReader:
    """Reads `resourceRules` of one file after the other; the first definition of a resource is used."""

    def __init__(self, resolve: ResolveResource, judge: Judge | None, backends: DeclaredBackends) -> None:
        self.refused: list[RefusedRule] = []
        self.findings: list[Finding] = []
        self._resolve = resolve
        self._judge = judge
        self._backends = backends
        self._rules: list[ResourceRule] = []
        self._defined: dict[str, Node] = {}
        self._window_seconds = ResourceRules().window_seconds

    def take(self, node: Node) -> None:
        """Read the `resourceRules` of one file."""
        notes = Notes(rule=None)
        notes.bad_yaml(node.problems)
        fields = notes.mapping(node, USAGES)
        entries = [entry for entry in fields.entries if not entry.value.is_null] if fields else []
        firsts = [entry for entry in entries if entry.name in {*MEASURED, _WINDOW} and self._is_first(entry, notes)]
        for entry in firsts:
            if entry.name == _WINDOW:
                self._take_window(entry.value, notes)
        self.findings.extend(notes.findings)
        for entry in firsts:
            if entry.name != _WINDOW:
                self._take_rule(entry)

    def finish(self) -> ResourceRules:
        """Return the resource rules of all files."""
        order = {name: position for position, name in enumerate(MEASURED)}
        rules = sorted(self._rules, key=lambda rule: order[rule.resource])
        return ResourceRules(tuple(rules), self._window_seconds)

    def _is_first(self, entry: MappingEntry, notes: Notes) -> bool:
        first = self._defined.setdefault(entry.name, entry.key)
        if first is entry.key:
            return True
        place = f"{first.file}:{first.line}"
        message = f"`{RESOURCE_RULES}.{entry.name}` is already defined in {place}, and that definition is used"
        notes.error(Code.REPEATED_RESOURCE_RULE, entry.key, message, "keep one of them")
        return False

    def _take_window(self, node: Node, notes: Notes) -> None:
        try:
            self._window_seconds = parse_prometheus_duration(node.text())
        except (DurationError, WrongKindError) as e:
            said = shorten(node.value) if isinstance(node, ScalarNode) else node.kind
            why = e if isinstance(e, DurationError) else "it is not a string"
            fix = "write a duration such as 1m; until then the last good window is used, or 1m after a start"
            notes.error(Code.BAD_WINDOW, node, f"`{_WINDOW}` {said!r} cannot be read: {why}", fix)

    def _take_rule(self, entry: MappingEntry) -> None:
        rule_id = f"{RESOURCE_RULES}.{entry.name}"
        notes = Notes(rule_id)
        metrics = _metrics(entry, self._resolve, self._backends, notes)
        rule = ResourceRule(rule_id, entry.name, entry.key.file, entry.key.line, metrics)
        serves = bool(metrics) and not is_refused_by(self._judge, rule, entry.value, notes)
        self.findings.extend(notes.findings)
        if serves:
            self._rules.append(rule)
        else:
            self.refused.append(RefusedRule(rule_id, Api.RESOURCE, entry.key.file, entry.key.line))


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels that contain names in the answers to a rule's queries."""

    mapping: ResourceMapping
    container: str

    def obstacle_for(self, kind: Resource) -> str | None:
        """Return why answers cannot be assigned to objects of the kind; None if they can."""
        if self.mapping.label_of(kind) is None:
            return f"`resources` maps no label to {kind.plural}"
        if kind.namespaced and self.mapping.namespace_label() is None:
            return "`resources` maps no label to namespaces"
        if kind == PODS and not self.container:
            return "`containerLabel` is missing"
        return None


def _metrics(
    entry: MappingEntry, resolve: ResolveResource, backends: DeclaredBackends, notes: Notes
) -> tuple[Metric, ...]:
    """Return the metrics of one rule, or none if it has an error, and add all errors to the notes."""
    notes.bad_yaml(problems_within(entry.value))
    fields = notes.mapping(entry.value, USAGE)
    if fields is None:
        return ()
    mapping = read_mapping(notes.mapping(fields.get("resources"), RESOURCES), resolve, notes)
    labels = _Labels(mapping, _container_label(fields, notes))
    queries = {kind: _query(fields, kind, labels, notes) for kind in (PODS, NODES)}
    backend = backends.backend_of(fields, notes)
    if notes.has_errors:
        return ()
    _note_unserved(fields, entry.name, labels, queries, notes)
    return tuple(
        _metric(entry, kind, labels, query, backend)
        for kind, query in queries.items()
        if query is not None and labels.obstacle_for(kind) is None
    )


def _container_label(fields: MappingNode, notes: Notes) -> str:
    label, node = notes.text(fields, "containerLabel"), fields.get("containerLabel")
    if node is not None and label and not is_quoted_label_name(label):
        message = f"`containerLabel` {shorten(label)!r} cannot be a label in a query"
        notes.error(Code.BAD_LABEL, node, message, "use the label's name as Prometheus has it, such as container")
    return label


def _query(fields: MappingNode, kind: Resource, labels: _Labels, notes: Notes) -> QueryTemplate | None:
    namespace = labels.mapping.namespace_label() if kind.namespaced else None
    group_by = (
        labels.mapping.label_of(kind) or kind.singular,
        *([labels.container or "container"] if kind == PODS else []),
    )
    return read_usage_query(fields, query_key(kind), namespace, group_by, notes)


def query_key(kind: Resource) -> str:
    """Return the key of a resource rule's query for pods or for nodes."""
    return "containerQuery" if kind == PODS else "nodeQuery"


def _note_unserved(
    fields: MappingNode, name: str, labels: _Labels, queries: Keyed[Resource, QueryTemplate | None], notes: Notes
) -> None:
    """Note which kinds the rule cannot measure, as an error if it can measure none."""
    obstacles = {
        kind: f"`{query_key(kind)}` is missing" if query is None else labels.obstacle_for(kind)
        for kind, query in queries.items()
    }
    note = notes.error if all(obstacles.values()) else notes.warning
    for kind, obstacle in obstacles.items():
        if obstacle is not None:
            message = f"{obstacle}, so what {kind.plural} use of {name} is not served"
            place = fields.get(query_key(kind)) or fields
            note(Code.UNSERVED_USAGE, place, message, "write containerQuery, nodeQuery, resources and containerLabel")


def _metric(
    entry: MappingEntry, kind: Resource, labels: _Labels, query: QueryTemplate, backend: Backend | None
) -> Metric:
    rule = Rule(
        id=f"{RESOURCE_RULES}.{entry.name}",
        api=Api.RESOURCE,
        file=entry.key.file,
        line=entry.key.line,
        series_query="",
        series_filters=(),
        naming=make_naming(),
        resources=labels.mapping,
        metrics_query=query,
        backend=backend,
    )
    return Metric(
        rule=rule,
        name=entry.name,
        series="",
        resource=kind,
        object_label=labels.mapping.label_of(kind),
        namespace_label=labels.mapping.namespace_label() if kind.namespaced else None,
        container_label=labels.container if kind == PODS else None,
    )
