"""Label matchers of PromQL for a request: for requirements, a namespace, and names of objects.

Requirements become the same matchers as in prometheus-adapter, since rule files and dashboards depend on that. As in
prometheus-adapter, the values of `in` and `notin` are regular expressions (`verb in (G.T)`); names of objects are
escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.foundation.objects.regex import quote_pattern
from adapter.foundation.objects.selectors import Operator, Requirement, Selector
from adapter.foundation.promql.quoting import go_quoted, is_quoted_label_name, label_in_query
from adapter.metrics.rulebook.gotemplate import taint


class RenderError(ValueError):
    """The request cannot be expressed as a query. The message says which part cannot, and what to do."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One matcher; `str()` returns its PromQL."""

    label: str
    sign: str
    """One of `=`, `!=`, `=~` and `!~`."""
    value: str
    raw: str
    """Value of the label in templates: the requested values, joined with `|`."""

    def __str__(self) -> str:
        return f"{label_in_query(self.label)}{self.sign}{go_quoted(self.value)}"

    @property
    def traced(self) -> tuple[str, str, str]:
        """Parts of the matcher for a template; the value is tainted, and is escaped only in the query."""
        return f'{label_in_query(self.label)}{self.sign}"', taint(self.value), '"'


_SIGNS = {
    Operator.EQUALS: "=",
    Operator.DOUBLE_EQUALS: "=",
    Operator.NOT_EQUALS: "!=",
    Operator.IN: "=~",
    Operator.NOT_IN: "!~",
    Operator.EXISTS: "!=",
    Operator.DOES_NOT_EXIST: "=",
}


def selector_matchers(selector: Selector) -> list[Matcher]:
    """Return the matchers of a metric's selector in the order of keys. Raises RenderError."""
    return [_requirement_matcher(requirement) for requirement in selector.requirements]


def value_matcher(label: str, value: str) -> Matcher:
    """Return the matcher for exactly this value."""
    return Matcher(label, "=", value, value)


def names_matcher(label: str, names: Sequence[str]) -> Matcher:
    """Return the matcher for any of the names, which need not be sorted."""
    if len(names) == 1:
        return value_matcher(label, names[0])
    return Matcher(label, "=~", "|".join(map(quote_pattern, names)), "|".join(names))


def presence_matcher(label: str) -> Matcher:
    """Return the matcher for any value except the empty one, which in Prometheus is the same as no label."""
    return Matcher(label, "!=", "", "")


def _requirement_matcher(requirement: Requirement) -> Matcher:
    sign = _SIGNS.get(requirement.operator)
    if sign is None:
        raise RenderError(
            f"the metric selector {str(requirement)!r} compares numbers, which PromQL's matchers cannot: "
            "use =, !=, in, notin, exists or !"
        )
    if not is_quoted_label_name(requirement.key):
        raise RenderError(
            f"the metric selector's key {requirement.key!r} cannot be a label in a query "
            "(letters, digits and _:./- only): use the label's name as Prometheus has it"
        )
    value = "|".join(requirement.values)
    return Matcher(requirement.key, sign, value, value)
