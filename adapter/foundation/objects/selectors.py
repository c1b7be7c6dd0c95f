"""Label selectors, which select objects or series.

The API server passes on selectors as text (`app=web,tier in (a,b),!canary`). The grammar, the deviations from it that
are tolerated, and the canonical text are those of `k8s.io/apimachinery/pkg/labels`, so that every selector that the API
server accepts works.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from adapter.foundation.objects.requirements import Operator, Requirement, SelectorError

__all__ = [
    "EVERYTHING",
    "Operator",
    "Requirement",
    "Selector",
    "SelectorError",
    "label_selector",
    "parse_selector",
]

_SIGNS: Final = frozenset({"", "=", "==", "!", "!=", "<", ">", "(", ")", ","})
_TOKEN: Final = re.compile(r"([=!]=|[=!(),><]|[^ \t\r\n=!(),><]+)")
_EXPRESSION_OPERATORS: Final = {
    Operator.IN: "In",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """Requirements that must all be satisfied; a selector without requirements matches everything. Hashable."""

    requirements: tuple[Requirement, ...] = ()
    """Requirements in the order of their keys."""
    text: str = field(init=False, repr=False)
    """Canonical text, which is used to compare selectors."""
    keys: frozenset[str] = field(init=False, repr=False)
    """Keys of the labels that the selector tests."""

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda requirement: requirement.key))
        object.__setattr__(self, "requirements", ordered)
        object.__setattr__(self, "text", ",".join(map(str, ordered)))
        object.__setattr__(self, "keys", frozenset(requirement.key for requirement in ordered))

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING: Final = Selector()


def parse_selector(text: str) -> Selector:
    """Return the selector of a text; the empty text selects everything. Raises SelectorError."""
    tokens = _Tokens(text)
    requirements: list[Requirement] = []
    while tokens.next:
        if requirements and not tokens.take(","):
            tokens.refuse("',' or the end")
        requirements.append(_parse_requirement(tokens))
    return Selector(tuple(requirements)) if requirements else EVERYTHING


def label_selector(selector: Selector) -> dict[str, object] | None:
    """Return the equivalent LabelSelector as JSON; None for a selector that matches everything.

    Raises SelectorError for `!=`, `>` and `<`, which a LabelSelector cannot express.
    """
    equal: dict[str, str] = {}
    expressions: list[dict[str, object]] = []
    for requirement in selector.requirements:
        equals = requirement.operator in {Operator.EQUALS, Operator.DOUBLE_EQUALS}
        if equals and requirement.key not in equal:
            equal[requirement.key] = requirement.values[0]
        else:
            # matchLabels can contain a key only once.
            expressions.append(_expression(requirement, Operator.IN if equals else requirement.operator))
    said = {"matchLabels": equal, "matchExpressions": expressions}
    return {key: value for key, value in said.items() if value} or None


def _expression(requirement: Requirement, operator: Operator) -> dict[str, object]:
    name = _EXPRESSION_OPERATORS.get(operator)
    if name is None:
        raise SelectorError(f"'{requirement}' has no LabelSelector form: use =, in, notin, exists or !")
    said: dict[str, object] = {"key": requirement.key, "operator": name}
    return {**said, "values": list(requirement.values)} if requirement.values else said


class _Tokens:
    """The tokens of a selector's text, from left to right."""

    def __init__(self, text: str) -> None:
        found = [(match.group(1), match.start(1)) for match in _TOKEN.finditer(text)]
        self._tokens: list[tuple[str, int]] = [*found, ("", len(text))]
        self._next = 0

    @property
    def next(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._next][0]

    @property
    def position(self) -> int:
        """Position of the next token, in characters from 0."""
        return self._tokens[self._next][1]

    def take(self, *wanted: str) -> str:
        """Take the next token if it is one of these; otherwise return the empty string."""
        token = self.next
        if token not in wanted:
            return ""
        self._next += 1
        return token

    def take_word(self) -> str:
        """Take a key or value; return the empty string if there is none."""
        return "" if self.next in _SIGNS else self.take(self.next)

    def refuse(self, expected: str) -> NoReturn:
        found = f"'{self.next}'" if self.next else "the end"
        raise SelectorError(f"found {found} where {expected} was expected", self.position)


def _parse_requirement(tokens: _Tokens) -> Requirement:
    start = tokens.position
    absent = tokens.take("!")
    key = tokens.take_word() or tokens.refuse("a label key")
    operator, values = (Operator.DOES_NOT_EXIST, ()) if absent else _parse_restriction(tokens)
    try:
        return Requirement(key, operator, values)
    except SelectorError as error:
        raise SelectorError(str(error), start) from error


def _parse_restriction(tokens: _Tokens) -> tuple[Operator, tuple[str, ...]]:
    if tokens.next in {"", ","}:
        return Operator.EXISTS, ()
    if word := tokens.take("in", "notin"):
        return Operator(word), _parse_values(tokens)
    sign = tokens.take("=", "==", "!=", ">", "<") or tokens.refuse("one of =, ==, !=, in, notin, >, <")
    value = "" if tokens.next in {"", ","} else tokens.take_word() or tokens.refuse("a value")
    return Operator(sign), (value,)


def _parse_values(tokens: _Tokens) -> tuple[str, ...]:
    """Return the values in parentheses, separated by commas; a value may be empty, as in `(a,,b)`."""
    if not tokens.take("("):
        tokens.refuse("'('")
    values = [tokens.take_word()]
    while tokens.take(","):
        values.append(tokens.take_word())
    if not tokens.take(")"):
        tokens.refuse("',' or ')'")
    return tuple(values)
