"""Parses a query into its tree, with the parser of the package `promql-parser`, which no other module uses.

The tree is for analysis only: the parser removes the quotes of label names, so Prometheus gets the author's text, never
a printed tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import promql_parser as library

from adapter.foundation.promql.regex_sizes import compiled_size, regexes_in
from adapter.foundation.promql.tokens import TokenKind, nests_deeper_than, tokens_of
from adapter.foundation.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Cardinality,
    Matching,
    Node,
    Number,
    SelectorNode,
    TextNode,
    TreeMatcher,
    Wrapper,
    is_scalar,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta


# The name of `holt_winters` in Prometheus 3. Registering it again does no harm.
library.register_extra_functions(
    [
        library.Function(
            "holt_winters",
            [library.ValueType.Matrix, library.ValueType.Scalar, library.ValueType.Scalar],
            library.ValueType.Vector,
        )
    ]
)

_LONGEST_CHARACTERS = 8192
"""Longest query: the parser takes time quadratic in the length, but at this limit always less than a second."""
_LARGEST_REGEXES: Final = 300_000
"""Largest size of a query's regular expressions together: the parser takes a tenth of a second to compile them.

No other thread can run meanwhile."""
_DEEPEST_NESTING = 200
"""Deepest nesting: the parser recurses without a limit, and a few thousand levels would crash the process."""
_MAY_PANIC: Final = re.compile(r"@|[0-9]{20}|[0-9]\.?e|inf|nan", re.IGNORECASE)
"""Every query that makes the parser panic contains this, which is found much faster than its tokens."""
_BEFORE_1970: Final = "@ -"
_NUMBER: Final = r"(?:\. [0-9]+|[0-9]+(?:\.[0-9]*)?)(?:e(?: [+-] )?[0-9]+)?"
_DURATION: Final = re.compile(rf"\boffset (?:[+-] )?({_NUMBER}|inf|nan)\b|(?:\[| :) ?({_NUMBER})\b", re.IGNORECASE)
"""A number of seconds as a duration, in tokens with one space between them."""
_PANIC_SECONDS: Final = 2.0**64
"""The shortest duration at which the parser panics. It refuses most of the shorter ones that are too long by itself."""


class UnreadableQueryError(ValueError):
    """The parser cannot read the query, although Prometheus may be able to. The message says why."""


def parse_query(query: str) -> Node:
    """Return the query's tree. Raises UnreadableQueryError."""
    if too_large := why_too_large(query) or why_regexes_too_large(query):
        raise UnreadableQueryError(too_large)
    if _panics(query):
        raise UnreadableQueryError("it has a time or duration out of range")
    try:
        return _node(library.parse(query))
    except (ValueError, OverflowError) as e:
        raise UnreadableQueryError(str(e).strip()) from e
    except BaseException as e:
        # A panic of the Rust code: derived from BaseException, of a class that cannot be imported.
        if type(e).__name__ != "PanicException":
            raise
        raise UnreadableQueryError(f"the parser gave up: {e}") from e


def why_too_large(query: str) -> str:
    """Return why the query is too large to be parsed; empty if it is not."""
    if len(query) > _LONGEST_CHARACTERS:
        return f"it has {len(query)} characters, more than {_LONGEST_CHARACTERS}"
    if nests_deeper_than(_DEEPEST_NESTING, query):
        return f"it has more than {_DEEPEST_NESTING} brackets and operators"
    return ""


def why_regexes_too_large(query: str, largest: int = _LARGEST_REGEXES) -> str:
    """Return why a query's regular expressions must not be compiled; empty if they may be."""
    if sum(compiled_size(_string_value(text)) for text in regexes_in(query)) > largest:
        return "its regular expressions are too large: they repeat too much, or have too many classes of Unicode"
    return ""


def _string_value(text: str) -> str:
    """Return the value of a string. Only the parser knows all escapes, and a matcher for a value compiles nothing."""
    if "\\" not in text:
        return text[1:-1]
    try:
        expression = library.parse(f"x{{a={text}}}")
    except ValueError:
        # The parser refuses the query, too.
        return ""
    assert isinstance(expression, library.VectorSelector)
    return str(expression.matchers.matchers[0].value)


def _panics(query: str) -> bool:
    """Return whether the parser would panic, and write lines to stderr that no reader of the log understands."""
    if not _MAY_PANIC.search(query):
        return False
    bare = " ".join(token.text for token in tokens_of(query) if token.kind is not TokenKind.TEXT)
    # Written so that NaN is not within the range.
    return _BEFORE_1970 in bare or not all(
        float((found[1] or found[2]).replace(" ", "")) < _PANIC_SECONDS for found in _DURATION.finditer(bare)
    )


def _node(expression: library.Expr) -> Node:
    for kind, convert in _CONVERSIONS:
        if isinstance(expression, kind):
            return convert(expression)
    raise UnreadableQueryError(f"the parser returned a {type(expression).__name__}, which is not supported")


def _selector(selector: library.VectorSelector, range_text: str) -> SelectorNode:
    matchers = _matchers(selector.matchers.matchers)
    if selector.name:
        matchers = tuple(sorted((*matchers, TreeMatcher("__name__", "=", selector.name))))
    alternatives = tuple(_matchers(group) for group in selector.matchers.or_matchers)
    return SelectorNode(matchers, alternatives, f"{range_text}{_timing_text(selector)}")


def _matchers(matchers: Iterable[library.Matcher]) -> tuple[TreeMatcher, ...]:
    return tuple(sorted(TreeMatcher(matcher.name, _operator(matcher), matcher.value) for matcher in matchers))


def _operator(matcher: library.Matcher) -> str:
    if matcher.op == library.MatchOp.Equal:
        return "="
    if matcher.op == library.MatchOp.NotEqual:
        return "!="
    return "=~" if matcher.op == library.MatchOp.Re else "!~"


def _subquery(subquery: library.SubqueryExpr) -> Wrapper:
    step = _seconds(subquery.step) if subquery.step else ""
    return Wrapper(f"[{_seconds(subquery.range)}:{step}]{_timing_text(subquery)}", _node(subquery.expr))


def _timing_text(node: library.VectorSelector | library.SubqueryExpr) -> str:
    offset = f" offset {_seconds(node.offset)}" if node.offset is not None else ""
    at = f" @ {node.at.type} {node.at.at}" if node.at is not None else ""
    return offset + at


def _seconds(duration: timedelta | None) -> str:
    return "" if duration is None else repr(duration.total_seconds())


def _call(call: library.Call) -> Call:
    scalar = call.func.return_type == library.ValueType.Scalar
    return Call(call.func.name, tuple(map(_node, call.args)), scalar)


def _aggregation(aggregation: library.AggregateExpr) -> Aggregation:
    modifier = aggregation.modifier
    return Aggregation(
        operator=str(aggregation.op),
        without=modifier is not None and modifier.type == library.AggModifierType.Without,
        labels=frozenset(modifier.labels if modifier else ()),
        parameter=None if aggregation.param is None else _node(aggregation.param),
        expression=_node(aggregation.expr),
    )


def _binary(binary: library.BinaryExpr) -> Binary:
    left, right = _node(binary.lhs), _node(binary.rhs)
    modifier = binary.modifier
    return Binary(
        operator=str(binary.op),
        left=left,
        right=right,
        returns_bool=modifier is not None and modifier.return_bool,
        matching=None if is_scalar(left) or is_scalar(right) else _matching(modifier),
    )


def _matching(modifier: library.BinModifier | None) -> Matching:
    if modifier is None:
        return Matching()
    labels = modifier.matching
    return Matching(
        cardinality=_cardinality(modifier.card),
        on=labels is not None and labels.type == library.LabelModifierType.Include,
        labels=frozenset(labels.labels if labels else ()),
        include=frozenset(modifier.group_labels or ()),
        fill=_fill(modifier.fill_values),
    )


def _cardinality(cardinality: library.VectorMatchCardinality) -> Cardinality:
    if cardinality == library.VectorMatchCardinality.ManyToOne:
        return Cardinality.MANY_TO_ONE
    if cardinality == library.VectorMatchCardinality.OneToMany:
        return Cardinality.ONE_TO_MANY
    if cardinality == library.VectorMatchCardinality.OneToOne:
        return Cardinality.ONE_TO_ONE
    return Cardinality.MANY_TO_MANY


def _fill(values: library.VectorMatchFillValues | None) -> str:
    if values is None or (values.lhs is None and values.rhs is None):
        return ""
    return f"{values.lhs!r} {values.rhs!r}"


_CONVERSIONS: Final[tuple[tuple[type[library.Expr], Callable[[Any], Node]], ...]] = (
    (library.VectorSelector, lambda selector: _selector(selector, "")),
    (library.MatrixSelector, lambda matrix: _selector(matrix.vector_selector, f"[{_seconds(matrix.range)}]")),
    (library.Call, _call),
    (library.AggregateExpr, _aggregation),
    (library.BinaryExpr, _binary),
    (library.ParenExpr, lambda paren: Wrapper("()", _node(paren.expr))),
    (library.UnaryExpr, lambda unary: Wrapper("-", _node(unary.expr))),
    (library.SubqueryExpr, _subquery),
    (library.NumberLiteral, lambda number: Number(repr(number.val))),
    (library.StringLiteral, lambda text: TextNode(text.val)),
)
