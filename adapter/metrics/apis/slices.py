"""The interface of `Pace`, which divides work on all metrics into slices so that requests are answered in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Slices(Protocol):
    """Yields the items in short lists, with pauses between them. `Pace.slices` is one."""

    def __call__(self, items: Iterable[T]) -> Iterator[list[T]]:
        """Yield lists of items, each to be processed without a pause."""
        ...


def in_one_piece(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield everything at once, for use before any requests are served."""
    yield list(items)
