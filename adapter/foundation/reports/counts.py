"""Writes numbers of things, and lists of names, as parts of sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_NAMES: Final = 8


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 node` or `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def agreeing(number: float, singular: str, plural: str) -> str:
    """Return the form of a word that agrees with a number, such as `has` with 1 and `have` with 2."""
    return singular if number == 1 else plural


def first_names(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """Return the first names, and how many others there are."""
    names = tuple(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
