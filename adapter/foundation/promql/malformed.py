"""Finds errors that no dialect of PromQL allows; a query that only our parser rejects may be of a newer dialect.

Prometheus, Thanos and VictoriaMetrics agree on strings, brackets and the places of operands, whatever functions,
modifiers and operators they add. Only these are checked; anything that some dialect might accept is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from adapter.foundation.promql.tokens import PromQLToken, TokenKind, tokens_of

_CLOSES: Final = {")": "(", "]": "[", "}": "{"}
_OPENING: Final = frozenset(_CLOSES.values())
_QUOTES: Final = frozenset("\"'`")
_OPERATORS: Final = frozenset("+-*/%^=<>!")
_NEED_BEFORE: Final = frozenset("*/%^=<>,")
"""Signs that need an operand before them; plus and minus do not."""
_NEED_AFTER: Final = _OPERATORS | frozenset(",~@")
"""Signs that need an operand after them, except that a comma may end a list in brackets: `by (a,)`."""
_NEED_ARGUMENTS: Final = re.compile(
    "(?:avg|count|group|last|max|min|quantile|sum)(?:_over_time)?|bottomk|count_values|stddev|stdvar|topk"
    "|delta|deriv|histogram_quantile|idelta|increase|irate|label_join|label_replace|rate",
    re.IGNORECASE,
)
"""Aggregations and functions that need an argument in every dialect."""
_TAKE_LABELS: Final = re.compile("group_(?:left|right)", re.IGNORECASE)
"""Modifiers for which VictoriaMetrics allows a `*` in place of the names of labels."""
_SHOWN_CHARACTERS: Final = 40


def flaw_of(query: str, *, is_whole: bool = True) -> str | None:
    """Return what makes the query invalid in every dialect; None if that is not certain.

    Without `is_whole`, the query may lack tokens that other requests would add, so only brackets and strings are
    checked.
    """
    if "\\`" in query:
        # Prometheus ends the string there, but VictoriaMetrics does not.
        return None
    tokens = tokens_of(query)
    opened: list[PromQLToken] = []
    for position, token in enumerate(tokens):
        if token.is_sign("\\"):
            # VictoriaMetrics escapes signs in names: `foo\(bar`.
            return None
        flaw = _bracket_problem(token, opened, query)
        if flaw is None and is_whole:
            flaw = _missing_operand(position, tokens, opened, query)
        if flaw is not None:
            return flaw
    if opened:
        return f"the {opened[-1].text} of {_from(opened[-1], query)} is never closed"
    if is_whole and tokens and _is_one_of(tokens[-1], _NEED_AFTER):
        return f"nothing follows the {tokens[-1].text} of {_until(tokens[-1], query)}"
    return None


def _bracket_problem(token: PromQLToken, opened: list[PromQLToken], query: str) -> str | None:
    """Return what is wrong with a quote or a bracket; updates the list of open brackets."""
    if token.kind is not TokenKind.SIGN:
        return None
    if token.text in _QUOTES:
        return f"the string that begins at {_from(token, query)} is never closed"
    if token.text in _OPENING:
        opened.append(token)
    if token.text not in _CLOSES:
        return None
    if not opened:
        return f"the {token.text} of {_until(token, query)} closes nothing"
    last = opened.pop()
    if last.text != _CLOSES[token.text]:
        return f"the {last.text} of {_from(last, query)} is closed by a {token.text}"
    return None


def _missing_operand(
    position: int, tokens: Sequence[PromQLToken], opened: Sequence[PromQLToken], query: str
) -> str | None:
    """Return which operand or argument an operator, a comma or a function at this position lacks."""
    token, before = tokens[position], tokens[position - 1] if position else None
    if token.is_sign(")") and before is not None:
        if _is_one_of(before, _OPERATORS) and not _is_every_label(position - 1, tokens):
            return f"nothing follows the {before.text} of {_until(token, query)}"
        if before.is_sign("(") and position > 1 and _NEED_ARGUMENTS.fullmatch(tokens[position - 2].text):
            return f"nothing is between the brackets of {_until(token, query)}"
    if _is_one_of(token, _NEED_BEFORE) and not _is_every_label(position, tokens):
        first = before is None or before.is_sign("(")
        repeated = (
            token.text == "," and opened and opened[-1].text == "(" and before is not None and before.is_sign(",")
        )
        return f"nothing precedes the {token.text} of {_from(token, query)}" if first or repeated else None
    return None


def _is_every_label(position: int, tokens: Sequence[PromQLToken]) -> bool:
    """Return whether the token is the `*` of `group_left(*)`."""
    return (
        tokens[position].is_sign("*")
        and position > 1
        and tokens[position - 1].is_sign("(")
        and _TAKE_LABELS.fullmatch(tokens[position - 2].text) is not None
    )


def _is_one_of(token: PromQLToken, signs: frozenset[str]) -> bool:
    return token.kind is TokenKind.SIGN and token.text in signs


def _from(token: PromQLToken, query: str) -> str:
    shown = query[token.start : token.start + _SHOWN_CHARACTERS]
    return repr(shown if len(query) <= token.start + _SHOWN_CHARACTERS else f"{shown}…")


def _until(token: PromQLToken, query: str) -> str:
    start = max(0, token.end - _SHOWN_CHARACTERS)
    return repr(f"{'…' if start else ''}{query[start : token.end]}")
