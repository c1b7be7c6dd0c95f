"""External metrics: an outermost sum is queried by namespace and selector labels, and folded for each requester.

`sum(rate(x{<<.LabelMatchers>>}[2m]))` returns one number, from which no requester's share can be computed. Queried `by`
the labels that requesters select by, its rows can be filtered, and the remaining ones added up. The text of the query
is edited, not printed from its tree, and the edited text is parsed again: unless it has the intended tree, the query
stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapter.foundation.promql.quoting import label_in_query
from adapter.foundation.promql.tokens import PromQLToken, TokenKind, closing_bracket, tokens_of
from adapter.foundation.promql.tree import Aggregation, Binary, Call, Node, Number, Wrapper, without_parentheses
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.plans.widening import NotProvenError
from adapter.metrics.rulebook.requests import Fold

_FOLDABLE = frozenset({"sum", "count", "min", "max"})


@dataclass(frozen=True, slots=True)
class Foldable:
    """An outermost aggregation whose rows can be folded, and its value for no rows."""

    aggregation: Aggregation
    default: float | None
    """c of `… or vector(c)`; None if the query has no such default."""

    @property
    def fold(self) -> Fold:
        """How a requester's answer is computed from the rows."""
        return Fold(self.aggregation.operator, tuple(sorted(self.aggregation.labels)), self.default)


def foldable(query: Node, keys: frozenset[str]) -> Foldable | None:
    """Return the outermost aggregation if it drops some of the keys and its rows can be folded; otherwise None."""
    outermost = without_parentheses(query)
    default = None
    if isinstance(outermost, Binary) and outermost.operator == "or":
        default = _vector_of(outermost.right)
        if default is None:
            return None
        outermost = without_parentheses(outermost.left)
    if not isinstance(outermost, Aggregation) or outermost.operator not in _FOLDABLE or outermost.without:
        return None
    if keys <= outermost.labels or (default is not None and outermost.labels):
        return None
    return Foldable(outermost, default)


def with_keys(text: str, found: Foldable, keys: frozenset[str]) -> str:
    """Return the aggregation alone, with the keys in its `by`. Raises NotProvenError if the text is not understood.

    `… or vector(c)` is left out: its row has no labels and would be mistaken for one of a series without labels.
    """
    labels = found.aggregation.labels | keys
    aggregation = found.aggregation
    edited = f"{aggregation.operator} by ({', '.join(map(label_in_query, sorted(labels)))}) ({_argument(text)})"
    if parse_query(edited) != replace(aggregation, labels=labels):
        raise NotProvenError(f"the outermost `{aggregation.operator}` was not found in the text")
    return edited


def _vector_of(node: Node) -> float | None:
    """Return c if the node is `vector(c)` with a number that can be served; otherwise None."""
    call = without_parentheses(node)
    if not (isinstance(call, Call) and call.function == "vector"):
        return None
    argument = without_parentheses(call.arguments[0])
    negative = isinstance(argument, Wrapper) and argument.kind == "-"
    if isinstance(argument, Wrapper) and negative:
        argument = without_parentheses(argument.expression)
    if not isinstance(argument, Number):
        return None
    number = float(argument.text)
    return None if math.isnan(number) else -number if negative else number


def _argument(text: str) -> str:
    """Return the argument of the first aggregation of the text, as it is written, without its brackets."""
    tokens = tokens_of(text)
    position = 0
    while position < len(tokens) and tokens[position].is_sign("("):
        position += 1
    # After the operator: `(argument)`, `by (labels) (argument)`, or `(argument) by (labels)`.
    position += 1
    if position < len(tokens) and tokens[position].kind is TokenKind.WORD:
        position = _after_brackets(tokens, position + 1)
    end = _after_brackets(tokens, position)
    return text[tokens[position].end : tokens[end - 1].start]


def _after_brackets(tokens: Sequence[PromQLToken], opening: int) -> int:
    """Return the position after the brackets that open at `opening`."""
    closed = closing_bracket(tokens, opening) if opening < len(tokens) and tokens[opening].is_sign("(") else None
    if closed is None:
        raise NotProvenError("the outermost aggregation's brackets were not found in the text")
    return closed + 1
