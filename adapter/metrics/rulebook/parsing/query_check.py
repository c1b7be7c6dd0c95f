"""Checks `metricsQuery` when a file is loaded: parses it and executes it with made-up values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.parsing.malformed import flaw_of, has_branches, is_written_out
from adapter.metrics.rulebook.templates.matchers import names_matcher, selector_matchers, value_matcher
from adapter.metrics.rulebook.templates.template import (
    PlacingError,
    QueryTemplate,
    TemplateError,
    parse_query_template,
    template_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adapter.foundation.documents.load import MappingNode, Node
    from adapter.foundation.objects.selectors import Selector
    from adapter.metrics.rulebook.model import ResourceRule, Rule
    from adapter.metrics.rulebook.parsing.notes import Notes
    from adapter.metrics.rulebook.resources import ResourceMapping
    from adapter.metrics.rulebook.templates.template import TemplateArguments

_NOT_READ = frozenset({Code.QUERY_NOT_READ, Code.SERIES_QUERY_NOT_READ})
_SERIES = "some_series"
_SELECTORS = (EVERYTHING, parse_selector("some_label=a,other_label in (b,c),!third_label"))
_NAMES = (("web-0",), ("web-0", "web-1"))


def read_metrics_query(fields: MappingNode, api: Api, mapping: ResourceMapping, notes: Notes) -> QueryTemplate | None:
    """Return the rule's template; None, after noting why, if it cannot be used."""
    fix = "write a query, such as sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
    if notes.required_text(fields, "metricsQuery", "so there is nothing to query", fix) is None:
        return None
    return _read(fields, "metricsQuery", list(_trials(api, mapping)), notes)


Judge: TypeAlias = "Callable[[Rule | ResourceRule], str | None]"
"""Returns why Prometheus refuses a rule's query; None if it does not, or if that is unknown."""


def is_refused_by(judge: Judge | None, rule: Rule | ResourceRule, node: Node, notes: Notes) -> bool:
    """Return, after noting that, whether Prometheus refuses a query that cannot be parsed here."""
    doubtful = any(finding.code in _NOT_READ for finding in notes.findings)
    why = judge(rule) if judge is not None and doubtful else None
    if why is not None:
        notes.error(
            Code.QUERY_REFUSED, node, f"this program cannot parse it, and Prometheus refuses it: {why}", "correct it"
        )
    return why is not None


def read_usage_query(
    fields: MappingNode, key: str, namespace_label: str | None, group_by: tuple[str, ...], notes: Notes
) -> QueryTemplate | None:
    """Return a query of a resource rule; None if it is absent, or, after noting that, cannot be used.

    `group_by` are the labels of `.GroupBy`, the object's first. These queries name their series themselves.
    """
    if not notes.text(fields, key).strip():
        return None
    namespace = [value_matcher(namespace_label, "shop")] if namespace_label else []
    trials = [template_arguments("", [*namespace, names_matcher(group_by[0], names)], group_by) for names in _NAMES]
    return _read(fields, key, trials, notes)


def _read(fields: MappingNode, key: str, trials: Sequence[TemplateArguments], notes: Notes) -> QueryTemplate | None:
    text, node = notes.text(fields, key), fields.get(key)
    if node is None:
        return None
    try:
        template = parse_query_template(text)
        queries = _render_queries(template, trials)
    except (PlacingError, TemplateError) as e:
        where = f" (its line {e.line})" if "\n" in text.rstrip() else ""
        notes.error(Code.BAD_TEMPLATE, node, f"`{key}` is not a working template{where}: {e}", "correct it")
        return None
    flaws = [flaw_of(query, is_whole=is_written_out(text)) for query in queries if query.strip()]
    if flaws and all(flaws) and not has_branches(text):
        message = f"`{key}` makes a query that no version of Prometheus can parse: {flaws[0]}"
        notes.error(Code.UNBALANCED_QUERY, node, message, "correct it")
        return None
    _check(key, text, template, queries, node, notes)
    return template


def _render_queries(template: QueryTemplate, trials: Sequence[TemplateArguments]) -> list[str]:
    """Return the queries. Raises TemplateError, and PlacingError if no made-up value is allowed at its place.

    Some made-up values may be refused, since real ones can be numbers.
    """
    queries: list[str] = []
    refusals: list[PlacingError] = []
    for data in trials:
        try:
            queries.append(template.render(data))
        except PlacingError as e:
            refusals.append(e)
    if refusals and not queries:
        raise refusals[0]
    return queries


def _check(key: str, text: str, template: QueryTemplate, queries: list[str], node: Node, notes: Notes) -> None:
    if not any(query.strip() for query in queries):
        notes.error(Code.EMPTY_QUERY, node, f"`{key}` results in an empty query", "check its conditions")
        return
    if "{{" in text:
        message = f"`{key}` contains {{{{ }}}}, which is sent to Prometheus unchanged"
        notes.warning(Code.FOREIGN_DELIMITERS, node, message, "write actions as << >>")
    if not template.uses_request:
        message = f"`{key}` gives the same result for every namespace, object and selector"
        notes.warning(Code.NO_LABEL_MATCHERS, node, message, "put <<.LabelMatchers>> into its selectors")
    why = _unreadable(queries)
    if why is not None:
        fix = "correct it, unless Prometheus supports more than this program"
        notes.warning(Code.QUERY_NOT_READ, node, f"the query that `{key}` makes cannot be read: {why}", fix)


def _unreadable(queries: Sequence[str]) -> str | None:
    """Return why one of the queries cannot be parsed: with an `if`, they may differ between askers."""
    for query in filter(str.strip, dict.fromkeys(queries)):
        try:
            parse_query(query)
        except UnreadableQueryError as e:
            return flaw_of(query, is_whole=False) or str(e)
    return None


def _trials(api: Api, mapping: ResourceMapping) -> Iterator[TemplateArguments]:
    """Yield made-up data: with and without a selector, for one object and for several."""
    for selector in _SELECTORS:
        for names in _NAMES if api is Api.CUSTOM else ((),):
            yield _trial(mapping, selector, names)


def _trial(mapping: ResourceMapping, selector: Selector, names: tuple[str, ...]) -> TemplateArguments:
    matchers = selector_matchers(selector)
    namespace_label = mapping.namespace_label()
    if namespace_label:
        matchers.append(value_matcher(namespace_label, "shop"))
    object_label = next((label for label, _ in reversed(mapping.overrides)), "pod")
    if names:
        matchers.append(names_matcher(object_label, names))
    return template_arguments(_SERIES, matchers, (object_label,) if names else ())
