"""Reads one rule of a rule file, and reports all errors in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapter.foundation.documents.load import MappingNode, Node, ScalarNode, problems_within, shorten
from adapter.foundation.objects.regex import BadPatternError, Pattern, compile_pattern
from adapter.foundation.objects.resources import ResolveResource, Resource, UnknownResourceError
from adapter.foundation.promql.quoting import is_quoted_label_name
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.findings import Code, Repair
from adapter.metrics.rulebook.gotemplate import TemplateError
from adapter.metrics.rulebook.model import Api, Policy, Rule
from adapter.metrics.rulebook.naming import Naming, NamingError, SeriesFilter, make_naming
from adapter.metrics.rulebook.parsing.metrics_query_check import read_metrics_query
from adapter.metrics.rulebook.parsing.policy_reader import read_policy
from adapter.metrics.rulebook.parsing.rule_file import FILTER, GROUP_RESOURCE, NAME, RESOURCES, RULE
from adapter.metrics.rulebook.plans.reach import ranges_of
from adapter.metrics.rulebook.plans.sample_age import SampleAgeError, times_template
from adapter.metrics.rulebook.resources import LabelTemplate, LabelTemplateError, ResourceMapping, parse_label_template
from adapter.metrics.rulebook.series_query import NotASelectorError, parse_series_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.metrics.rulebook.parsing.declared_backends import DeclaredBackends
    from adapter.metrics.rulebook.parsing.notes import Notes
    from adapter.metrics.rulebook.templates.template import QueryTemplate

_CONDITIONS = tuple(each.key for each in FILTER.keys)
_RUN_IN = re.compile(r"\$([0-9]+)([A-Za-z_][A-Za-z0-9_]*)")


def read_rule(
    node: Node, rule_id: str, api: Api, resolve: ResolveResource, backends: DeclaredBackends, notes: Notes
) -> Rule | None:
    """Return the rule, or None if it has an error, and add all errors to the notes."""
    notes.bad_yaml(problems_within(node))
    fields = notes.mapping(node, RULE)
    if fields is None:
        return None
    series_query = _series_query(fields, notes)
    filters = tuple(_filters(fields, notes))
    naming = _naming(fields, notes)
    resources = notes.mapping(fields.get("resources"), RESOURCES)
    mapping = read_mapping(resources, resolve, notes)
    namespaced = _read_namespaced(resources, api, notes)
    if not notes.has_errors:
        _check_mapping(mapping, api, resources or fields, notes, namespaced=namespaced)
    takes_namespace = namespaced or api is Api.CUSTOM
    metrics_query = read_metrics_query(fields, api, mapping, notes, takes_namespace=takes_namespace)
    policy = read_policy(fields, api, notes)
    backend = backends.backend_of(fields, notes)
    times_query = _times_query(fields, metrics_query, policy, api, notes)
    if notes.has_errors or naming is None or metrics_query is None:
        return None
    return Rule(
        id=rule_id,
        api=api,
        file=node.file,
        line=node.line,
        series_query=series_query,
        series_filters=filters,
        naming=naming,
        resources=mapping,
        metrics_query=metrics_query,
        namespaced=namespaced,
        policy=policy,
        times_query=times_query,
        ranges_seconds=0.0 if policy.no_data_value is None else ranges_of(metrics_query),
        backend=backend,
    )


def _times_query(
    fields: MappingNode, query: QueryTemplate | None, policy: Policy, api: Api, notes: Notes
) -> QueryTemplate | None:
    """Return the template of the query for the times of the rule's samples; None if their age is not limited."""
    node = fields.get("maxSampleAge")
    if query is None or node is None or policy.max_sample_age_seconds is None:
        return None
    try:
        return times_template(query, api)
    except SampleAgeError as e:
        message = f"`maxSampleAge` cannot be checked, since it is unknown which samples `metricsQuery` uses: {e}"
        fix = (
            "remove `maxSampleAge`, or write each selector as NAME{…,<<.LabelMatchers>>} without offset and @, and "
            "with ranges of up to 5m"
        )
        notes.error(Code.SAMPLE_AGE_NOT_CHECKED, node, message, fix)
        return None


def _series_query(fields: MappingNode, notes: Notes) -> str:
    fix = "write a selector of series, such as http_requests_total"
    text = notes.required_text(fields, "seriesQuery", "so the rule selects nothing", fix)
    node = fields.get("seriesQuery")
    if text is None or node is None:
        return ""
    try:
        parse_series_query(text)
    except NotASelectorError as e:
        notes.error(
            Code.BAD_SERIES_QUERY,
            node,
            f"`seriesQuery` {shorten(text)!r} cannot be looked up: {e}",
            "write only a selector, NAME{…}",
        )
    except UnreadableQueryError as e:
        fix = "correct it, unless Prometheus supports more than this program"
        notes.warning(Code.SERIES_QUERY_NOT_READ, node, f"`seriesQuery` {shorten(text)!r} cannot be read: {e}", fix)
    return text


def _filters(fields: MappingNode, notes: Notes) -> Iterator[SeriesFilter]:
    for item in notes.sequence(fields.get("seriesFilters")):
        entry = notes.mapping(item, FILTER)
        if entry is None or entry.unknown(_CONDITIONS):
            continue
        conditions = [(key, text) for key in _CONDITIONS if (text := notes.text(entry, key))]
        if len(conditions) != 1:
            has = "both `is` and `isNot`" if conditions else "neither `is` nor `isNot`"
            notes.error(Code.BAD_FILTER, item, f"a filter has {has}", "write exactly one of them in each entry")
            continue
        key, text = conditions[0]
        pattern = _pattern(text, key, entry.get(key) or item, notes)
        if pattern is not None:
            yield SeriesFilter(pattern, wanted=key == "is")


def _pattern(text: str, key: str, node: Node, notes: Notes) -> Pattern | None:
    try:
        return compile_pattern(text)
    except BadPatternError as e:
        _note_bad_pattern(key, text, e, node, notes)
        return None


def _note_bad_pattern(key: str, text: str, error: BadPatternError, node: Node, notes: Notes) -> None:
    message = f"`{key}` {shorten(text)!r} is not a regular expression of RE2: {error}"
    notes.error(Code.BAD_REGEX, node, message, "correct the pattern (RE2 has no look-around and no back-references)")


def _naming(fields: MappingNode, notes: Notes) -> Naming | None:
    name = notes.mapping(fields.get("name"), NAME)
    if name is None:
        return make_naming()
    matches, as_ = notes.text(name, "matches"), notes.text(name, "as")
    place = name.get("matches") or name
    try:
        naming = make_naming(matches, as_)
    except BadPatternError as e:
        _note_bad_pattern("matches", matches, e, place, notes)
        return None
    except NamingError as e:
        notes.error(Code.MISSING_AS, place, str(e), "write in `as` how they form the name, as in ${1}_${2}")
        return None
    _check_naming(naming, name.get("as") or place, notes)
    return naming


def _check_naming(naming: Naming, node: Node, notes: Notes) -> None:
    unknown = ", ".join(naming.unknown_groups)
    if naming.always_empty:
        message = f"`as` {naming.template!r} makes every name empty: `matches` has no group {unknown}"
        notes.error(
            Code.BAD_METRIC_NAME, node, message, "put braces around the group, as in ${1}_rate", _braces(naming, node)
        )
    elif unknown:
        message = f"`as` {naming.template!r} refers to {unknown}, but `matches` has no such group"
        fix = "put braces around the group, as in ${1}_rate, or name one that exists"
        notes.warning(Code.UNKNOWN_GROUP, node, message, fix, _braces(naming, node))
    if "/" in naming.literal:
        message = f"`as` {naming.template!r} makes names with a slash, which cannot be requested"
        notes.error(Code.BAD_METRIC_NAME, node, message, "use another character")


def _braces(naming: Naming, node: Node) -> Repair | None:
    """Return the repair for a group that is joined with the text after it, as in `$1_rate`."""
    mended = _RUN_IN.sub(r"${\1}\2", naming.template)
    if mended == naming.template or "$$" in naming.template or "'" in mended:
        return None
    # If the rule is written on one line, braces without quotes would be a mapping in YAML.
    bare = isinstance(node, ScalarNode) and node.plain
    return Repair(naming.template, f"'{mended}'" if bare else mended)


def _read_namespaced(resources: MappingNode | None, api: Api, notes: Notes) -> bool:
    namespaced = notes.boolean(resources, "namespaced", default=True)
    entry = resources.entry("namespaced") if resources else None
    if entry is not None and api is Api.CUSTOM:
        message = "`namespaced` has no meaning in `rules`: the kind of object determines it"
        value = entry.value.value if isinstance(entry.value, ScalarNode) else ""
        notes.warning(Code.NAMESPACED_IGNORED, entry.key, message, "remove it", Repair(f"{entry.name}: {value}"))
    return namespaced


def read_mapping(resources: MappingNode | None, resolve: ResolveResource, notes: Notes) -> ResourceMapping:
    """Return the mapping that `resources` describes, and add its errors to the notes."""
    template = _label_template(resources, notes)
    node = resources.get("overrides") if resources else None
    overrides = notes.any_mapping(node)
    notes.bad_yaml(overrides.repeated if overrides else ())
    mapped: list[tuple[str, Resource]] = []
    first: dict[str, str] = {}
    for entry in overrides.entries if overrides else ():
        if entry.key.is_null or not is_quoted_label_name(entry.name):
            message = f"{shorten(entry.name)!r} cannot be a label in a query"
            notes.error(Code.BAD_LABEL, entry.key, message, "use the label's name as Prometheus has it")
        resource = _resource(entry.value, resolve, notes)
        if resource is None:
            continue
        kind = resource.qualified
        if kind in first:
            message = f"the labels {first[kind]} and {shorten(entry.name)} both stand for {kind}"
            notes.warning(
                Code.AMBIGUOUS_OVERRIDE,
                entry.key,
                message,
                f"keep one; queries use {first[kind]} where a series has it",
            )
        first.setdefault(kind, entry.name)
        mapped.append((entry.name, resource))
    return ResourceMapping(tuple(mapped), template).with_guessed_scopes()


def _resource(node: Node, resolve: ResolveResource, notes: Notes) -> Resource | None:
    meaning, fix = "so the label identifies no object", "write something like {resource: pod}"
    if node.is_null:
        notes.error(Code.MISSING_KEY, node, f"`resource` is missing, {meaning}", fix)
        return None
    fields = notes.mapping(node, GROUP_RESOURCE)
    if fields is None or fields.unknown(("group", "resource")):
        return None
    group, name = notes.text(fields, "group"), notes.required_text(fields, "resource", meaning, fix)
    if name is None:
        return None
    try:
        return resolve(group, name)
    except UnknownResourceError as e:
        fix = "correct the name or the group, or install what defines it: the rule is then served automatically"
        notes.error(Code.UNKNOWN_RESOURCE, fields.get("resource") or node, str(e), fix)
        return None


def _label_template(resources: MappingNode | None, notes: Notes) -> LabelTemplate | None:
    text = notes.text(resources, "template")
    node = resources.get("template") if resources else None
    if not text or node is None:
        return None
    try:
        return parse_label_template(text)
    except (TemplateError, LabelTemplateError, BadPatternError) as e:
        message = f"`template` {shorten(text)!r} cannot be used: {e}"
        notes.error(Code.BAD_LABEL_TEMPLATE, node, message, "write it like kube_<<.Group>>_<<.Resource>>")
        return None


def _check_mapping(mapping: ResourceMapping, api: Api, node: Node, notes: Notes, *, namespaced: bool) -> None:
    """Note what the rule cannot serve because a label is missing."""
    if api is Api.CUSTOM and not mapping.overrides and mapping.template is None:
        message = "the rule does not say which labels contain the names of which objects"
        notes.error(Code.NO_RESOURCES, node, message, "add `resources.overrides` or `resources.template`")
    elif mapping.namespace_label() is None and (api is Api.CUSTOM or namespaced):
        _note_no_namespace(mapping, api, node, notes)


def _note_no_namespace(mapping: ResourceMapping, api: Api, node: Node, notes: Notes) -> None:
    fix = "add an override such as namespace: {resource: namespace}"
    needy = [resource.qualified for _, resource in mapping.overrides if resource.namespaced]
    if api is Api.EXTERNAL:
        fix += ", or write `namespaced: false` if all namespaces may see the same values"
        message = "no label contains the namespace, so no request, which always names one, can be answered"
        notes.error(Code.NO_NAMESPACE_LABEL, node, message, fix)
    elif len(needy) == len(mapping.overrides):
        message = f"no label contains the namespace, and {', '.join(needy)} are namespaced"
        notes.error(Code.NO_NAMESPACE_LABEL, node, message, fix)
    elif needy:
        message = f"no label contains the namespace, so metrics of {', '.join(needy)} are not served"
        notes.warning(Code.NO_NAMESPACE_LABEL, node, message, fix)
    guessed = [resource.qualified for _, resource in mapping.overrides if not resource.scope_is_known]
    if guessed and api is Api.CUSTOM:
        kinds = ", ".join(guessed)
        message = f"no label contains the namespace, so metrics of {kinds} are served only if they have no namespace"
        fix += ", or name the cluster with --kubeconfig, since it knows their scope"
        notes.warning(Code.NO_NAMESPACE_LABEL, node, message, fix)
