"""How work over all metrics is cut, so that answers come in between: the seam to the pace of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


class Slices(Protocol):
    """Yields the items in short lists, with pauses between them. `Pace.slices` is one."""

    def __call__(self, items: Iterable[T]) -> Iterator[list[T]]:
        """Yield lists of items, each to be worked off at once."""
        ...


def in_one_piece(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield everything at once: where nobody is served yet."""
    yield list(items)
