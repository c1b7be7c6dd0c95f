"""Groups values by a key, in the order in which keys and values come."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


def group_values(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key; the first pair of a key determines its place."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
