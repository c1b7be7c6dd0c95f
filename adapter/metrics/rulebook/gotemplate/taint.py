"""Strings and numbers that record which of their parts came from a request.

A template computes with values of a request, and its output is a query. The sender of the query must know which parts
of it are not trusted, so a tainted value stays tainted through everything that a template can do with it.
Tainted values are equal to plain ones, and have the same order and length, so no template can distinguish them.

Python's own operations on strings return plain strings. So only the functions of this module join and cut strings, and
`functions.call` taints all other results of tainted values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of a string."""

    text: str
    tainted: bool


class Tainted(str):
    """A string of which at least a part came from a request."""

    __slots__ = ("pieces",)

    pieces: tuple[Piece, ...]


class TaintedNumber(int):
    """A number that was computed from a tainted string."""


def taint(text: str) -> str:
    """Return the string with all of it tainted."""
    return _make_tainted(text, (Piece(text, tainted=True),)) if text else ""


def concatenate(texts: Iterable[str]) -> str:
    """Return the concatenated strings, in which tainted parts remain tainted."""
    parts = tuple(texts)
    text = "".join(parts)
    if not any(isinstance(part, Tainted) for part in parts):
        return text
    return _make_tainted(text, tuple(piece for part in parts if part for piece in pieces_of(part)))


def substring(text: str, start: int, end: int | None) -> str:
    """Return a part of the string.

    If any part of the string is tainted, so is the whole result: a cut can separate parts that belong together, such as
    a value and its quotes.
    """
    return taint(str(text)[start:end]) if isinstance(text, Tainted) else text[start:end]


def pieces_of(text: str) -> tuple[Piece, ...]:
    """Return the parts of the string."""
    return text.pieces if isinstance(text, Tainted) else (Piece(text, tainted=False),)


def _make_tainted(text: str, pieces: tuple[Piece, ...]) -> Tainted:
    made = Tainted(text)
    made.pieces = pieces
    return made
