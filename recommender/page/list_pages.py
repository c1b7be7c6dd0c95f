"""Divides a long list into parts, each of which is one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListPart(Generic[T]):
    """Some of the items of a list."""

    items: tuple[T, ...]
    number: int
    """Number of this part; the first one is 1."""
    parts: int
    """Number of parts, at least 1."""
    first: int
    """The position in the list of this part's first item, counted from 1."""
    total: int
    """How many items the list has."""


def part_of(items: Sequence[T], number: int, most: int) -> ListPart[T]:
    """Return one part, of at most the given number of items; for a number beyond the end, the last part."""
    parts = max(1, -(-len(items) // most))
    number = min(max(1, number), parts)
    first = (number - 1) * most
    return ListPart(tuple(items[first : first + most]), number, parts, first + 1, len(items))
