r"""Estimates how large a regular expression becomes when a parser compiles it.

`(\pL{1,10}){1,10}` has 17 characters, and is compiled to a hundred copies of a class with 700 ranges. The estimate is
never far too low; where the structure of a pattern is not certain, it is far too high.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.tokens import TokenKind, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE: Final = re.compile(
    r"""(?P<many> \\[wW] | \\[pP] (?: \{ [^}]*+ \} | . ))
      | (?P<digits> \\[dD])
      | (?P<blanks> \\[sS])
      | (?P<class> \[ (?: [^\[\]()\\] | \\[^\[\]()] )*+ \])
      | (?P<bracket> [\[\]])
      | (?P<open> \()
      | (?P<close> \))
      | (?P<repeat> \{ \s* (?P<least>[0-9]*+) \s* (?: , \s* (?P<most>[0-9]*+) \s* )?+ \} )
      | (?P<dot> \. )
      | (?P<any> \\. | . )""",
    re.VERBOSE | re.DOTALL,
)
_SIZES: Final = {"many": 800, "digits": 140, "blanks": 20, "class": 12, "dot": 12, "any": 1}
"""Sizes of a large class of Unicode, of one of digits or blanks, of other classes, of a dot, and of a character.

They are proportional to the time that the parser takes to compile them, about 0.4 µs for a size of 1.
"""
_IGNORES_CASE: Final = re.compile(r"\(\?[A-Za-z-]*i")
_CASES: Final = 4
_LARGEST: Final = 1 << 40
_MOST_DIGITS: Final = 5


def regexes_in(query: str) -> Iterator[str]:
    """Yield the regular expressions of a query's matchers, as they are written, with their quotes."""
    tokens = tokens_of(query) if "~" in query else []
    for operator, tilde, text in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if tilde.is_sign("~") and (operator.is_sign("=") or operator.is_sign("!")) and text.kind is TokenKind.TEXT:
            yield text.text


def compiled_size(pattern: str) -> int:
    """Return the estimated size of a compiled pattern; a size of 1 takes about 0.4 µs."""
    pieces = list(_PIECE.finditer(pattern))
    is_certain = not any(piece.lastgroup == "bracket" for piece in pieces)
    size = _size_by_structure(pieces) if is_certain else _size_of_the_worst_structure(pieces)
    return min(_LARGEST, size * (_CASES if _IGNORES_CASE.search(pattern) else 1))


def _size_by_structure(pieces: list[re.Match[str]]) -> int:
    """Return the size if each repetition repeats the character, class or group before it."""
    totals, lasts = [0], [0]
    for piece in pieces:
        kind = piece.lastgroup or "any"
        if kind == "open":
            totals.append(0)
            lasts.append(0)
            continue
        if kind == "repeat":
            lasts[-1] = min(_LARGEST, lasts[-1] * _times(piece))
            continue
        size = totals.pop() + lasts.pop() if kind == "close" and len(totals) > 1 else _size_of(piece)
        totals[-1] += lasts[-1]
        lasts[-1] = size
    return sum(totals) + sum(lasts)


def _size_of_the_worst_structure(pieces: list[re.Match[str]]) -> int:
    """Return the size if each repetition repeats everything."""
    times = 1
    for piece in pieces:
        if piece.lastgroup == "repeat":
            times = min(_LARGEST, times * _times(piece))
    return times * sum(map(_size_of, pieces))


def _size_of(piece: re.Match[str]) -> int:
    within = _SIZES["many"] * piece[0].count("\\") if piece.lastgroup == "class" else 0
    return _SIZES.get(piece.lastgroup or "", _SIZES["any"]) + len(piece[0]) + within


def _times(repeat: re.Match[str]) -> int:
    counts = [count for count in (repeat["least"], repeat["most"]) if count]
    return max((int(count[:_MOST_DIGITS]) for count in counts), default=1) or 1
