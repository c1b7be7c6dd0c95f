"""A query as a tree of plain values, so that two queries can be compared node by node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class TreeMatcher:
    """One condition of a selector."""

    label: str
    operator: str
    """One of `=`, `!=`, `=~` and `!~`."""
    value: str

    def __str__(self) -> str:
        """Return the condition as it is written in a query, for messages."""
        return f'{self.label}{self.operator}"{self.value}"'


@dataclass(frozen=True, slots=True)
class Number:
    """A number, kept as text so that NaN equals NaN."""

    text: str


@dataclass(frozen=True, slots=True)
class TextNode:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class SelectorNode:
    """Series, or a range of them."""

    matchers: tuple[TreeMatcher, ...]
    """Matchers in ascending order; the metric's name is among them as `__name__`."""
    alternatives: tuple[tuple[TreeMatcher, ...], ...]
    """Matchers combined by `or`, as in VictoriaMetrics."""
    timing: str
    """Range, `offset` and `@`, as text."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A node that changes neither the series nor the labels of its argument: parentheses, minus, a subquery."""

    kind: str
    expression: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    function: str
    arguments: tuple[Node, ...]
    is_scalar: bool
    """Whether it returns a number instead of series."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation, such as `sum by (…) (…)`."""

    operator: str
    without: bool
    labels: frozenset[str]
    parameter: Node | None
    expression: Node


class Cardinality(Enum):
    """How many series of each side a match may include."""

    ONE_TO_ONE = "one to one"
    MANY_TO_ONE = "group_left"
    ONE_TO_MANY = "group_right"
    MANY_TO_MANY = "set operator"


@dataclass(frozen=True, slots=True)
class Matching:
    """The way in which the series of two sides are matched."""

    cardinality: Cardinality = Cardinality.ONE_TO_ONE
    on: bool = False
    """Whether `labels` are compared; if false, all other labels are compared."""
    labels: frozenset[str] = frozenset()
    include: frozenset[str] = frozenset()
    """Labels that `group_left` or `group_right` copies from the "one" side."""
    fill: str = ""
    """Values for series without a partner; empty if no values are given."""

    def compares(self, label: str) -> bool:
        """Return whether two series must agree in this label."""
        return (label in self.labels) == self.on


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two expressions."""

    operator: str
    left: Node
    right: Node
    returns_bool: bool
    matching: Matching | None
    """None if one side is a number, which has no labels to match."""


Node: TypeAlias = Number | TextNode | SelectorNode | Wrapper | Call | Aggregation | Binary


def without_parentheses(node: Node) -> Node:
    """Return the node without the parentheses around it."""
    while isinstance(node, Wrapper) and node.kind == "()":
        node = node.expression
    return node


def operands_of(node: Node) -> tuple[Node, ...]:
    """Return the expressions directly below the node, in the order of the query."""
    match node:
        case Call():
            return node.arguments
        case Wrapper():
            return (node.expression,)
        case Aggregation():
            return (node.expression,) if node.parameter is None else (node.parameter, node.expression)
        case Binary():
            return (node.left, node.right)
        case _:
            return ()


def all_nodes(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it, in the order of the query."""
    yield node
    for part in operands_of(node):
        yield from all_nodes(part)


def selectors_of(node: Node) -> Iterator[SelectorNode]:
    """Yield all selectors of an expression, in the order of the query."""
    return (each for each in all_nodes(node) if isinstance(each, SelectorNode))


def is_scalar(node: Node) -> bool:
    """Return whether the expression is one number without labels."""
    match node:
        case Number():
            return True
        case Call():
            return node.is_scalar
        case Wrapper():
            return is_scalar(node.expression)
        case Binary():
            return is_scalar(node.left) and is_scalar(node.right)
        case _:
            return False
