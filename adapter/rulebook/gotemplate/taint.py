"""Texts and numbers that know which of their parts came from an asker.

A template computes with values of a request, and its output is a query. The sender of the query must know which parts
of it are not trusted, so a tainted value stays tainted through everything that a template can do with it.
Tainted values are equal to plain ones, sort and measure like them: no template can tell them apart.

Python's own operations on texts return plain ones. So only the functions here join and cut, and `functions.call` taints
whatever else is made of a tainted value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Piece(NamedTuple):
    """A part of a text."""

    text: str
    tainted: bool


class Tainted(str):
    """A text some of which came from an asker."""

    __slots__ = ("pieces",)

    pieces: tuple[Piece, ...]


class TaintedNumber(int):
    """A number that was made of a tainted text."""


def tainted(text: str) -> str:
    """Return the text, all of it tainted."""
    return _made(text, (Piece(text, tainted=True),)) if text else ""


def joined(texts: Iterable[str]) -> str:
    """Return the texts one behind the other; what is tainted in them stays so."""
    parts = tuple(texts)
    text = "".join(parts)
    if not any(isinstance(part, Tainted) for part in parts):
        return text
    return _made(text, tuple(piece for part in parts if part for piece in pieces_of(part)))


def cut(text: str, start: int, end: int | None) -> str:
    """Return a part of the text.

    Of a text with taint it is wholly tainted: a cut can go through what its author meant to stand together, such as a
    value and its quotes.
    """
    return tainted(str(text)[start:end]) if isinstance(text, Tainted) else text[start:end]


def pieces_of(text: str) -> tuple[Piece, ...]:
    """Return the parts of the text."""
    return text.pieces if isinstance(text, Tainted) else (Piece(text, tainted=False),)


def _made(text: str, pieces: tuple[Piece, ...]) -> Tainted:
    made = Tainted(text)
    made.pieces = pieces
    return made
