"""Adds matchers to every selector of a query, so that it selects the series of one cluster only.

The tree of a query has no positions, so its text is edited by tokens. Because tokens are read by a grammar that is
simpler than PromQL's, the result is then parsed and compared: its tree must be that of the original with the matchers
in each selector, and must not differ otherwise. Every query for which this does not hold is refused.

A query that is too large for the parser may consist of expressions that `or` joins outside all brackets. They are
proven one by one, since no operator binds less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Final

from adapter.foundation.promql.gaps import Gap, GapKind, gaps_in
from adapter.foundation.promql.quoting import go_quoted, label_in_query
from adapter.foundation.promql.tokens import PromQLToken, TokenKind, tokens_of
from adapter.foundation.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Node,
    Number,
    SelectorNode,
    TextNode,
    TreeMatcher,
    Wrapper,
)
from adapter.foundation.promql.tree_parser import (
    UnreadableQueryError,
    parse_query,
    why_regexes_too_large,
    why_too_large,
)

_KEPT_CHARACTERS: Final = 64
"""Longer strings are replaced before parsing: they do not affect a query's structure, and many queries then look alike.
"""
_STANDS_FOR_LONG: Final = '"x"'
_ENDS_FOR_SOME: Final = "\\`"
"""The end of a string for Prometheus. For VictoriaMetrics, the string goes on, so that the next one is not a string."""
_CACHED_QUERIES: Final = 4096
_LONGEST_CHARACTERS: Final = 32_768
"""Longest query whose expressions are proven one by one, which takes a few seconds at most."""
_LARGEST_REGEXES: Final = 1_000_000
"""Largest size of the regular expressions of all expressions together: twice that of the built-in query for CPU."""
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_MODIFIERS: Final = frozenset({"on", "ignoring"})
_IMPLICIT: Final = frozenset({"info"})
"""Functions that read series without a selector in the query."""


class MatchersError(ValueError):
    """A text is not a list of matchers. The message says why, and how to write one."""


@dataclass(frozen=True, slots=True)
class Matchers:
    """Conditions on series, such as `cluster="eu-1"`, which must all be true."""

    conditions: tuple[TreeMatcher, ...]

    @classmethod
    def read(cls, text: str) -> Matchers:
        """Return the matchers that a text lists as a selector does between its braces. Raises MatchersError."""
        example = """write them as between the braces of a selector: cluster="eu-1",region="a\""""
        try:
            node = parse_query(f"x{{{text}\n}}")
        except UnreadableQueryError as e:
            raise MatchersError(f"matchers {text!r} cannot be read ({e}): {example}") from e
        if not isinstance(node, SelectorNode) or node.alternatives or node.timing:
            raise MatchersError(f"matchers {text!r} are not a plain list: {example}")
        conditions = tuple(each for each in node.matchers if each.label != "__name__")
        if not conditions or len(conditions) != len(node.matchers) - 1:
            raise MatchersError(f"matchers {text!r} contain no label, or the name of the metric: {example}")
        return cls(conditions)

    def __str__(self) -> str:
        """Return the matchers as they are written into a selector."""
        return ",".join(
            f"{label_in_query(each.label)}{each.operator}{go_quoted(each.value)}" for each in self.conditions
        )

    def in_query(self, query: str) -> str:
        """Return the query with the matchers in every selector. Raises UnreadableQueryError unless that is proven."""
        if "\r" in query:
            raise UnreadableQueryError("it has a carriage return, which ends a comment only for some parsers")
        tokens = tokens_of(query)
        if any(token.kind is TokenKind.TEXT and token.text.endswith(_ENDS_FOR_SOME) for token in tokens):
            raise UnreadableQueryError(r"it has a string that ends with \`, which only some parsers take for its end")
        shortened = _shorten_strings(query, tokens)
        if too_large := why_regexes_too_large(shortened, _LARGEST_REGEXES):
            raise UnreadableQueryError(too_large)
        if why_too_large(shortened) and len(shortened) <= _LONGEST_CHARACTERS:
            return "or".join(map(self._in_expression, _expressions_of(query, tokens)))
        return _insert_matchers(query, tokens, _proven_gaps(shortened, self), str(self))

    def in_selector(self, selector: str) -> str:
        """Return a selector of series, such as that of `match[]`, with the matchers. Raises UnreadableQueryError."""
        node = parse_query(selector)
        if not isinstance(node, SelectorNode) or node.timing:
            raise UnreadableQueryError("it is not a selector of series")
        return self.in_query(selector)

    def _in_expression(self, expression: str) -> str:
        tokens = tokens_of(expression)
        gaps = _proven_gaps(_shorten_strings(expression, tokens), self)
        return _insert_matchers(expression, tokens, gaps, str(self))


def _expressions_of(query: str, tokens: list[PromQLToken]) -> Iterator[str]:
    """Yield the texts between those words `or` that are outside all brackets, and followed by no modifier."""
    at = depth = 0
    for token, following in pairwise([*tokens, PromQLToken(TokenKind.BLANK, "", len(query), len(query))]):
        if token.kind is TokenKind.SIGN:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
        elif depth == 0 and token.text == "or" and following.text.lower() not in _MODIFIERS:
            yield query[at : token.start]
            at = token.end
    yield query[at:]


@lru_cache(maxsize=_CACHED_QUERIES)
def _proven_gaps(query: str, matchers: Matchers) -> tuple[Gap, ...]:
    """Return where to insert the matchers; raises UnreadableQueryError if that would change anything else."""
    tokens = tokens_of(query)
    gaps = tuple(gaps_in(tokens))
    wanted = _narrow_tree(parse_query(query), matchers.conditions)
    if parse_query(_insert_matchers(query, tokens, gaps, str(matchers))) != wanted:
        raise UnreadableQueryError("it has a form to which the matchers cannot be added safely")
    return gaps


def _narrow_tree(node: Node, conditions: tuple[TreeMatcher, ...]) -> Node:
    """Return the tree with the conditions in each selector. Raises UnreadableQueryError."""
    narrowed = partial(_narrow_tree, conditions=conditions)
    match node:
        case SelectorNode():
            return _narrowed_selector(node, conditions)
        case Call() if node.function not in _IMPLICIT:
            return replace(node, arguments=tuple(map(narrowed, node.arguments)))
        case Wrapper():
            return replace(node, expression=narrowed(node.expression))
        case Aggregation():
            parameter = None if node.parameter is None else narrowed(node.parameter)
            return replace(node, parameter=parameter, expression=narrowed(node.expression))
        case Binary():
            return replace(node, left=narrowed(node.left), right=narrowed(node.right))
        case Number() | TextNode():
            return node
    raise UnreadableQueryError(f"{node.function}() reads series without a selector")


def _narrowed_selector(node: SelectorNode, conditions: tuple[TreeMatcher, ...]) -> SelectorNode:
    if node.alternatives:
        return replace(node, alternatives=tuple(tuple(sorted((*group, *conditions))) for group in node.alternatives))
    return replace(node, matchers=tuple(sorted((*node.matchers, *conditions))))


def _shorten_strings(query: str, tokens: list[PromQLToken]) -> str:
    """Return the query with long strings replaced, so that it parses quickly and is the same for many queries."""
    pieces: list[str] = []
    at = 0
    for token in tokens:
        if token.kind is TokenKind.TEXT and len(token.text) > _KEPT_CHARACTERS:
            pieces += query[at : token.start], _STANDS_FOR_LONG
            at = token.end
    return "".join((*pieces, query[at:]))


def _insert_matchers(query: str, tokens: list[PromQLToken], gaps: tuple[Gap, ...], matchers: str) -> str:
    forms = {
        GapKind.NAME: f"{{{matchers}}}",
        GapKind.EMPTY_BRACES: matchers,
        GapKind.BRACES: f"{matchers},",
        GapKind.ALTERNATIVE: f" {matchers},",
    }
    pieces: list[str] = []
    at = 0
    for gap in gaps:
        end = tokens[gap.after].end
        pieces += query[at:end], forms[gap.kind]
        at = end
    return "".join((*pieces, query[at:]))
