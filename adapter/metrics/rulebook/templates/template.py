"""`metricsQuery`: the template that becomes a PromQL query.

It is parsed when the file is loaded, and executed with made-up data, so that an error that would fail the first request
is reported as a finding instead. Five fields are known, as in prometheus-adapter: `.Series`, `.LabelMatchers`,
`.LabelValuesByName`, `.GroupBy`, `.GroupBySlice`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.promql.quoting import label_in_query
from adapter.foundation.promql.tokens import tokens_of
from adapter.foundation.promql.tree import selectors_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.gotemplate import (
    Struct,
    TemplateError,
    concatenate,
    execute_traced,
    parse_template,
    taint,
)
from adapter.metrics.rulebook.gotemplate.nodes import Action, Field, Node, Text
from adapter.metrics.rulebook.templates.argument_escaping import PlacingError, escaped_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.promql import tree as promql
    from adapter.metrics.rulebook.gotemplate import Template
    from adapter.metrics.rulebook.templates.matchers import Matcher

__all__ = [
    "PlacingError",
    "QueryTemplate",
    "TemplateArguments",
    "TemplateError",
    "has_branches",
    "is_written_out",
    "parse_query_template",
    "quotes_series",
    "template_arguments",
]

_NAME = "metrics-query"
"""Name of the whole template, as in prometheus-adapter: `<<template "metrics-query" .>>` would execute it."""
_SERIES = "Series"
_IN_QUOTES_ONLY = "made.up"
"""Name of a series that a query can only contain between quotes."""
_PLAIN_FIELDS = frozenset({("Series",), ("LabelMatchers",), ("GroupBy",)})
_ALWAYS_THE_SAME: Final = re.compile(r"<<-?\s*\.(?:Series|LabelMatchers|GroupBy)\s*-?>>")
"""Actions that print the same kind of tokens for every requester of a rule."""
_BRANCH: Final = re.compile(r"<<-?\s*(?:if|else|range|with)\b")


@dataclass(frozen=True, slots=True)
class TemplateArguments:
    """The values of a query's template. Values that a requester controls are tainted, and only escaped by `render`.

    `template_arguments` returns those of a request.
    """

    series: str
    label_matchers: str
    """Complete matchers, joined by commas: `a="b",c=~"d|e"`."""
    label_values: Mapping[str, str]
    """Values of labels; several values of a label are joined with `|`."""
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A parsed `metricsQuery`; two are equal if their texts are."""

    text: str
    fields: frozenset[str] = field(compare=False)
    """Names of the fields that occur in it."""
    is_plain: bool = field(compare=False)
    """Whether every action is a bare `.Series`, `.LabelMatchers` or `.GroupBy`.

    Only then does the query have the same form for every requester. Any other template can compute with the values of
    the request (`if eq (index .LabelValuesByName "k") "v"`), so what holds for made-up values need not hold for real
    ones.
    """
    _template: Template = field(compare=False, repr=False)

    @property
    def uses_request(self) -> bool:
        """Whether the query depends on the request."""
        return bool(self.fields & {"LabelMatchers", "LabelValuesByName"})

    @property
    def repeats(self) -> bool:
        """Whether executing it may take much longer than its length suggests."""
        return self._template.repeats

    def render(self, data: TemplateArguments) -> str:
        """Return the query. Raises TemplateError, and PlacingError for a value that is not allowed at its place."""
        return escaped_query(execute_traced(self._template, _struct(data)))


def template_arguments(series: str, matchers: Sequence[Matcher], group_by: tuple[str, ...]) -> TemplateArguments:
    """Return the arguments for a request, in which all values that its requester controls are tainted."""
    parts = [part for matcher in matchers for part in (",", *matcher.traced)]
    values = {taint(matcher.label): taint(matcher.raw) for matcher in matchers}
    return TemplateArguments(series, concatenate(parts[1:]), values, group_by)


def parse_query_template(text: str) -> QueryTemplate:
    """Return the parsed template. Raises TemplateError."""
    template = parse_template(text, _NAME)
    return QueryTemplate(text, template.fields, all(map(_is_plain, template.nodes)), template)


def has_branches(template: str) -> bool:
    """Return whether a template may print different text for different requesters."""
    return _BRANCH.search(template) is not None


def is_written_out(template: str) -> bool:
    """Return whether a template prints the same tokens outside strings for every requester.

    `quantile(<<.LabelValuesByName.q>>, up)` is a valid query only for requests that select a `q`.
    """
    tokens = tokens_of(_ALWAYS_THE_SAME.sub("x", template))
    asked = any(a.is_sign("<") and b.is_sign("<") and a.end == b.start for a, b in pairwise(tokens))
    return not asked and not has_branches(template)


def quotes_series(query: QueryTemplate) -> bool:
    """Return whether `.Series` is only between quotes, as in `{"<<.Series>>",<<.LabelMatchers>>}`, or nowhere.

    The quotes of a pattern do not count: with `=~`, a dot would select the series of other names, too.
    """
    return _SERIES not in query.fields or (query.is_plain and _is_quoted(query.text))


@bounded_cache(MEBIBYTE)
def _is_quoted(text: str) -> bool:
    arguments = TemplateArguments(_IN_QUOTES_ONLY, 'made_up="x"', {}, ("made_up",))
    try:
        tree = parse_query(parse_query_template(text).render(arguments))
    except (TemplateError, PlacingError, UnreadableQueryError):
        return False
    return not _has_pattern_of_series(tree)


def _has_pattern_of_series(tree: promql.Node) -> bool:
    """Return whether the name of the made-up series is in a pattern of a selector."""
    matchers = (matcher for each in selectors_of(tree) for matcher in chain(each.matchers, *each.alternatives))
    return any(_IN_QUOTES_ONLY in matcher.value for matcher in matchers if matcher.operator in {"=~", "!~"})


def _struct(data: TemplateArguments) -> Struct:
    return Struct(
        {
            "Series": data.series,
            "LabelMatchers": data.label_matchers,
            "LabelValuesByName": data.label_values,
            "GroupBy": ",".join(map(label_in_query, data.group_by)),
            "GroupBySlice": data.group_by,
        }
    )


def _is_plain(node: Node) -> bool:
    if not isinstance(node, Action):
        return isinstance(node, Text)
    operands = [operand for command in node.pipe.commands for operand in command.operands]
    bare = len(operands) == 1 and not node.pipe.variables
    return bare and isinstance(operands[0], Field) and operands[0].names in _PLAIN_FIELDS
