"""One condition on one label: the operators of selectors, and the values that they accept and match.

The rules are those of `NewRequirement` in `k8s.io/apimachinery/pkg/labels`. A requirement that Kubernetes would refuse
cannot be created, so every requirement can be written into a query or a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.objects.names import label_key_problem, label_value_problem

_INTEGER: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64_MIN: Final = -(2**63)


class SelectorError(ValueError):
    """The selector cannot be parsed, or cannot be expressed in the requested form."""

    def __init__(self, message: str, position: int | None = None) -> None:
        """`position` is the place of the error in characters from 0, if there is one."""
        super().__init__(message if position is None else f"{message} (at character {position})")
        self.position = position


class Operator(StrEnum):
    """The operator of a requirement, as in the grammar of selectors."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. Raises SelectorError if Kubernetes would refuse it."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    """Values in ascending order, without duplicates."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))
        if problem := _problem(self):
            raise SelectorError(problem)

    def __str__(self) -> str:
        """Return the text that client-go prints."""
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy the condition. An absent label satisfies `!=`, `notin` and `!`."""
        return _TESTS[self.operator](labels.get(self.key), self.values)


def _integer(text: str) -> int | None:
    digits = _INTEGER.fullmatch(text)
    if digits is None:
        return None
    number = int(digits.group(1) + digits.group(2))
    return number if _INT64_MIN <= number <= INT64_MAX else None


def _greater(value: str | None, values: tuple[str, ...]) -> bool:
    number, bound = _integer(value or ""), _integer(values[0])
    return number is not None and bound is not None and number > bound


def _less(value: str | None, values: tuple[str, ...]) -> bool:
    number, bound = _integer(value or ""), _integer(values[0])
    return number is not None and bound is not None and number < bound


_TESTS: Final[dict[Operator, Callable[[str | None, tuple[str, ...]], bool]]] = {
    Operator.EQUALS: lambda value, values: value in values,
    Operator.DOUBLE_EQUALS: lambda value, values: value in values,
    Operator.IN: lambda value, values: value in values,
    Operator.NOT_EQUALS: lambda value, values: value not in values,
    Operator.NOT_IN: lambda value, values: value not in values,
    Operator.EXISTS: lambda value, _: value is not None,
    Operator.DOES_NOT_EXIST: lambda value, _: value is None,
    Operator.GREATER_THAN: _greater,
    Operator.LESS_THAN: _less,
}


def _problem(requirement: Requirement) -> str | None:
    if problem := label_key_problem(requirement.key):
        return f"label key {requirement.key!r} is not allowed: {problem}"
    if problem := _count_problem(requirement):
        return f"requirement on {requirement.key!r} is not allowed: {problem}"
    for value in requirement.values:
        if problem := label_value_problem(value):
            return f"value {value!r} of {requirement.key!r} is not allowed: {problem}"
        if requirement.operator in {Operator.GREATER_THAN, Operator.LESS_THAN} and _integer(value) is None:
            return f"value {value!r} of {requirement.key!r} is not allowed: {requirement.operator} needs an integer"
    return None


def _count_problem(requirement: Requirement) -> str | None:
    match requirement.operator, len(requirement.values):
        case ((Operator.IN | Operator.NOT_IN), 0):
            return f"{requirement.operator} needs at least one value"
        case ((Operator.IN | Operator.NOT_IN), _):
            return None
        case ((Operator.EXISTS | Operator.DOES_NOT_EXIST), count):
            return "a test for presence takes no values" if count else None
        case _, count:
            return None if count == 1 else f"{requirement.operator} needs exactly one value"
