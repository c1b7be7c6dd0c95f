"""Checks `metricsQuery` when a file is loaded: parses it and executes it with made-up values."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.selectors import EVERYTHING, Selector, parse_selector
from adapter.foundation.promql.malformed import flaw_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.model import Api, ResourceRule, Rule
from adapter.metrics.rulebook.templates.matchers import names_matcher, selector_matchers, value_matcher
from adapter.metrics.rulebook.templates.template import (
    PlacingError,
    QueryTemplate,
    TemplateArguments,
    TemplateError,
    has_branches,
    is_written_out,
    parse_query_template,
    template_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.foundation.documents.load import MappingNode, Node
    from adapter.metrics.rulebook.parsing.notes import Notes
    from adapter.metrics.rulebook.resources import ResourceMapping

_NOT_READ = frozenset({Code.QUERY_NOT_READ, Code.SERIES_QUERY_NOT_READ})
_SERIES = "some_series"
_SELECTORS = (EVERYTHING, parse_selector("some_label=a,other_label in (b,c),!third_label"))
_NAMES = (("web-0",), ("web-0", "web-1"))
_REMEMBERED: Final = 512
"""Limit on the cached made-up data, which differ by the labels of rules alone."""


class _Trials:
    """Made-up values to execute a template with. Instances are compared by identity."""

    def __init__(self, arguments: Iterable[TemplateArguments]) -> None:
        self.arguments = tuple(arguments)


class _Tried(NamedTuple):
    """The result of a template with made-up values."""

    template: QueryTemplate
    has_query: bool
    flaw: str | None
    """The flaw that makes every query invalid in every dialect; None if that is not certain."""
    unreadable: str | None
    """Why one of the queries cannot be parsed."""
    needs_selector: bool
    """Whether only the queries of requests without a selector cannot be parsed."""


def read_metrics_query(
    fields: MappingNode, api: Api, mapping: ResourceMapping, notes: Notes, *, takes_namespace: bool
) -> QueryTemplate | None:
    """Return the rule's template; None, after noting why, if it cannot be used.

    `takes_namespace` says whether the namespace of a request restricts its query.
    """
    fix = "write a query, such as sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
    if notes.required_text(fields, "metricsQuery", "so there is nothing to query", fix) is None:
        return None
    object_label = next((label for label, _ in reversed(mapping.overrides)), "pod") if api is Api.CUSTOM else None
    namespace_label = mapping.namespace_label() if takes_namespace else None
    return _read(fields, "metricsQuery", _trials(namespace_label, object_label), notes)


Judge: TypeAlias = "Callable[[Rule | ResourceRule], str | None]"
"""Returns why Prometheus refuses a rule's query; None if it does not, or if that is unknown."""


def is_refused_by(judge: Judge | None, rule: Rule | ResourceRule, node: Node, notes: Notes) -> bool:
    """Return whether Prometheus refuses a query that cannot be parsed here, and note it if so."""
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
    """Return a query of a resource rule; None if it is absent or, after noting why, if it cannot be used.

    `group_by` are the labels of `.GroupBy`, the object's first. These queries name their series themselves.
    """
    if not notes.text(fields, key).strip():
        return None
    return _read(fields, key, _usage_trials(namespace_label, group_by), notes)


def _read(fields: MappingNode, key: str, trials: _Trials, notes: Notes) -> QueryTemplate | None:
    text, node = notes.text(fields, key), fields.get(key)
    if node is None:
        return None
    try:
        tried = _render_with_test_values(text, trials)
    except (PlacingError, TemplateError) as e:
        where = f" (its line {e.line})" if "\n" in text.rstrip() else ""
        notes.error(Code.BAD_TEMPLATE, node, f"`{key}` is not a working template{where}: {e}", "correct it")
        return None
    if tried.flaw is not None:
        message = f"`{key}` makes a query that no version of Prometheus can parse: {tried.flaw}"
        notes.error(Code.UNBALANCED_QUERY, node, message, "correct it")
        return None
    _check(key, text, tried, node, notes)
    return tried.template


@bounded_cache(4 * MEBIBYTE)
def _render_with_test_values(text: str, trials: _Trials) -> _Tried:
    """Return the template's result with the made-up values. Raises TemplateError and PlacingError."""
    template = parse_query_template(text)
    # A plain template has one form for all requesters, except that those of the first values may have no matchers.
    arguments = (trials.arguments[0], trials.arguments[-1]) if template.is_plain else trials.arguments
    queries = [query for query in _render_queries(template, arguments) if query.strip()]
    flaw = None if has_branches(text) else _flaw_of_all(queries, is_whole=is_written_out(text))
    unreadable = None if flaw else _unreadable(queries)
    # The last values have a selector. Without one, nothing may be left for the matchers.
    needs_selector = unreadable is not None and not arguments[0].label_matchers and _unreadable(queries[-1:]) is None
    return _Tried(template, bool(queries), flaw, unreadable, needs_selector)


def _flaw_of_all(queries: Sequence[str], *, is_whole: bool) -> str | None:
    """Return the flaw of the first query if all queries are invalid; otherwise None."""
    first = flaw_of(queries[0], is_whole=is_whole) if queries else None
    return first if first and all(flaw_of(query, is_whole=is_whole) for query in queries[1:]) else None


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


def _check(key: str, text: str, tried: _Tried, node: Node, notes: Notes) -> None:
    if not tried.has_query:
        notes.error(Code.EMPTY_QUERY, node, f"`{key}` results in an empty query", "check its conditions")
        return
    if "{{" in text:
        message = f"`{key}` contains {{{{ }}}}, which is sent to Prometheus unchanged"
        notes.warning(Code.FOREIGN_DELIMITERS, node, message, "write actions as << >>")
    if not tried.template.uses_request:
        message = f"`{key}` gives the same result for every namespace, object and selector"
        notes.warning(Code.NO_LABEL_MATCHERS, node, message, "put <<.LabelMatchers>> into its selectors")
    if tried.unreadable is not None:
        fix = "correct it, unless Prometheus supports more than this program"
        message = f"the query that `{key}` makes cannot be read: {tried.unreadable}"
        if tried.needs_selector:
            fix = "always request it with a selector, or write <<.LabelMatchers>> behind the other matchers"
            message = f"without a selector, {message}"
        notes.warning(Code.QUERY_NOT_READ, node, message, fix)


def _unreadable(queries: Sequence[str]) -> str | None:
    """Return why one of the queries cannot be parsed: with an `if`, they may differ between requesters."""
    for query in dict.fromkeys(queries):
        try:
            parse_query(query)
        except UnreadableQueryError as e:
            return flaw_of(query, is_whole=False) or str(e)
    return None


@lru_cache(maxsize=_REMEMBERED)
def _trials(namespace_label: str | None, object_label: str | None) -> _Trials:
    """Return made-up data with and without a selector; if objects have a label, for one object and for several."""
    return _Trials(
        _trial(namespace_label, object_label or "", selector, names)
        for selector, names in product(_SELECTORS, _NAMES if object_label is not None else ((),))
    )


@lru_cache(maxsize=_REMEMBERED)
def _usage_trials(namespace_label: str | None, group_by: tuple[str, ...]) -> _Trials:
    namespace = [value_matcher(namespace_label, "shop")] if namespace_label else []
    return _Trials(
        template_arguments("", [*namespace, names_matcher(group_by[0], names)], group_by) for names in _NAMES
    )


def _trial(
    namespace_label: str | None, object_label: str, selector: Selector, names: tuple[str, ...]
) -> TemplateArguments:
    matchers = selector_matchers(selector)
    if namespace_label:
        matchers.append(value_matcher(namespace_label, "shop"))
    if names:
        matchers.append(names_matcher(object_label, names))
    return template_arguments(_SERIES, matchers, (object_label,) if names else ())
