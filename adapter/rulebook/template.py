"""`metricsQuery`: the template that becomes a PromQL query.

Read at load, and executed at load on made-up data, so that what would fail when the first asker comes is a finding of
the rule instead. Five fields are known, as in prometheus-adapter: `.Series`, `.LabelMatchers`, `.LabelValuesByName`,
`.GroupBy`, `.GroupBySlice`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.rulebook.gotemplate import Struct, TemplateError, execute, parse_template
from adapter.rulebook.gotemplate.nodes import Action, Field, Node, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.rulebook.gotemplate import Template

__all__ = ["QueryData", "QueryTemplate", "TemplateError", "parse_query_template"]

_PLAIN_FIELDS = frozenset({("Series",), ("LabelMatchers",), ("GroupBy",)})


@dataclass(frozen=True, slots=True)
class QueryData:
    """What a query is made of. Nothing here is escaped any further: whoever fills it in has done so."""

    series: str
    label_matchers: str
    """`a="b",c=~"d|e"`: complete matchers, comma-joined."""
    label_values: Mapping[str, str]
    """Label to value, several values joined with `|`."""
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A `metricsQuery` that was read; two are equal if their text is."""

    text: str
    fields: frozenset[str] = field(compare=False)
    """Names of the fields that appear anywhere in it."""
    is_plain: bool = field(compare=False)
    """Whether every action is a bare `.Series`, `.LabelMatchers` or `.GroupBy`.

    Only then is the query's shape the same for every asker. Any other template can compute with the asked values
    (`if eq (index .LabelValuesByName "k") "v"`), so what holds for made-up values need not hold for real ones.
    """
    _template: Template = field(compare=False, repr=False)

    def render(self, data: QueryData) -> str:
        """Return the query; raises TemplateError."""
        return execute(self._template, _struct(data))


def parse_query_template(text: str) -> QueryTemplate:
    """Return the template; raises TemplateError."""
    template = parse_template(text)
    return QueryTemplate(text, template.fields, all(map(_is_plain, template.nodes)), template)


def _struct(data: QueryData) -> Struct:
    return Struct(
        {
            "Series": data.series,
            "LabelMatchers": data.label_matchers,
            "LabelValuesByName": data.label_values,
            "GroupBy": ",".join(data.group_by),
            "GroupBySlice": data.group_by,
        }
    )


def _is_plain(node: Node) -> bool:
    if not isinstance(node, Action):
        return isinstance(node, Text)
    operands = [operand for command in node.pipe.commands for operand in command.operands]
    bare = len(operands) == 1 and not node.pipe.variables
    return bare and isinstance(operands[0], Field) and operands[0].names in _PLAIN_FIELDS
