"""Label matchers of PromQL, made from a request: requirements, a namespace, names of objects.

Which requirement becomes which matcher follows prometheus-adapter to the letter, since rule files and dashboards count
on it. `in` and `notin` hand their values on as regular expressions, as there (`verb in (G.T)`); names of objects do
not: they are escaped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.objects.regex import quote_pattern
from adapter.objects.selectors import Operator
from adapter.rulebook.gotemplate import tainted
from adapter.rulebook.rendering.quoting import go_quoted, is_label_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.objects.selectors import Requirement, Selector


class RenderError(ValueError):
    """The request cannot be asked as a query; the message says what in it, and what to do."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One matcher; `str()` is its PromQL."""

    label: str
    sign: str
    """`=`, `!=`, `=~` or `!~`."""
    value: str
    raw: str
    """What templates see under the label's name: the asked values, joined with `|`."""

    def __str__(self) -> str:
        return f"{self.label}{self.sign}{go_quoted(self.value)}"

    @property
    def traced(self) -> tuple[str, str, str]:
        """Its parts for a template: the value in the midst is tainted, and escaped only where it comes to stand."""
        return f'{self.label}{self.sign}"', tainted(self.value), '"'


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
    """Return the matchers of a metric's selector, ascending by key; raises RenderError."""
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
    """Return the matcher for any value but the empty one, which is what Prometheus takes an absent label for."""
    return Matcher(label, "!=", "", "")


def _requirement_matcher(requirement: Requirement) -> Matcher:
    sign = _SIGNS.get(requirement.operator)
    if sign is None:
        raise RenderError(
            f"the metric selector {str(requirement)!r} compares numbers, which PromQL's matchers cannot: "
            "use =, !=, in, notin, exists or !"
        )
    if not is_label_name(requirement.key):
        raise RenderError(
            f"the metric selector's key {requirement.key!r} cannot be a label in Prometheus "
            "(letters, digits and _ only): use the label's name as Prometheus has it"
        )
    value = "|".join(requirement.values)
    return Matcher(requirement.key, sign, value, value)
