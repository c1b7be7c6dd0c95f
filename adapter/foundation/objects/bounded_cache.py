"""A cache of values that are made from texts in the cluster, with a limit on its memory.

Tenants decide how many values there are and how large each is, so a limit on the number of entries would not be enough.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from functools import cache, wraps
from sys import getsizeof
from typing import Any, Final, TypeVar, cast

F = TypeVar("F", bound="Callable[..., Any]")
_Key = tuple[Any, ...]

MEBIBYTE: Final = 1 << 20
HELD_BYTES: Final = "held_bytes"
"""The attribute of a cached function that returns the approximate memory of the remembered keys and values."""
_LARGEST_SHARE: Final = 16
"""A value larger than this fraction of the cache (1/16) is not kept: it would displace values that objects share."""
_WITHOUT_PARTS: Final = frozenset({str, bytes, int, float, bool, type(None)})
_ENTRY_BYTES: Final = 100
"""Memory that a dictionary needs for an entry, in bytes."""


class _Generations:
    """Two generations of values: a value that is not requested while the younger generation fills up is forgotten."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.young: dict[_Key, Any] = {}
        self._old: dict[_Key, Any] = {}
        self._young_bytes = 0
        self._old_bytes = 0
        self._lock = threading.Lock()

    def held_bytes(self) -> int:
        """Return about how much memory all entries take in total."""
        return self._young_bytes + self._old_bytes

    def take_from_older(self, key: _Key) -> tuple[Any] | None:
        """Move a value from the older to the younger generation, and return it in a tuple; None if it is not there."""
        with self._lock:
            if key not in self._old:
                return None
            value = self._old.pop(key)
            size = bytes_of((key, value))
            self._old_bytes = max(0, self._old_bytes - size)
            self._add(key, value, size)
            return (value,)

    def keep(self, key: _Key, value: object) -> None:
        """Remember a value, unless it is too large for the cache."""
        size = bytes_of((key, value))
        if size * _LARGEST_SHARE > self.most_bytes:
            return
        with self._lock:
            if key not in self.young:
                self._add(key, value, size)

    def _add(self, key: _Key, value: object, size: int) -> None:
        if 2 * (self._young_bytes + size) > self.most_bytes:
            self._old, self._old_bytes = self.young, self._young_bytes
            self.young, self._young_bytes = {}, 0
        self.young[key] = value
        self._young_bytes += size


def bounded_cache(most_bytes: int) -> Callable[[F], F]:
    """Return a decorator that remembers the results of a function of hashable positional arguments. Thread-safe.

    The remembered keys and values take about `most_bytes` at most, whatever their sizes are. Equal arguments return the
    same object while it is remembered. Errors are not remembered.
    """

    def decorate(function: F) -> F:
        generations = _Generations(most_bytes)

        @wraps(function)
        def cached(*key: Any) -> Any:  # noqa: ANN401 - the types are those of the function
            try:
                return generations.young[key]
            except KeyError:
                pass
            known = generations.take_from_older(key)
            if known is not None:
                return known[0]
            value = function(*key)
            generations.keep(key, value)
            return value

        setattr(cached, HELD_BYTES, generations.held_bytes)
        return cast("F", cached)

    return decorate


def bytes_of(value: object) -> int:
    """Return about how much memory a value takes with all its parts, which must not contain themselves.

    A part that occurs several times counts each time: finding shared parts would take longer than making most values.
    """
    total = _ENTRY_BYTES
    left = [value]
    while left:
        one = left.pop()
        kind = type(one)
        total += getsizeof(one)
        if kind in _WITHOUT_PARTS:
            continue
        if isinstance(one, dict):
            left += one
            left += one.values()
        elif isinstance(one, (tuple, list, set, frozenset)):
            left += one
        elif dataclasses.is_dataclass(kind):
            left += [getattr(one, name) for name in _fields_of(kind)]
    return total


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
