"""Finds the served metric that a misspelled name probably means.

It runs within a request, so it only compares names of about the same length: all of them by their common beginnings and
ends, which takes microseconds, and the few that remain letter by letter.
"""

from __future__ import annotations

import difflib
import heapq
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_COMPARED = 1000
_MOST_LIKE = 10
_LONGEST = 100
_LETTERS_APART = (0, 1, -1, 2, -2)
_LIKENESS = 0.85
"""Lowest ratio of `difflib`: two different letters in a name of fifteen."""


def nearest(name: str, by_length: Mapping[int, Sequence[str]]) -> str | None:
    """Return the most similar name; None if none is similar. `by_length` has the names by their length."""
    if len(name) > _LONGEST:
        return None
    like = (by_length.get(len(name) + apart, ()) for apart in _LETTERS_APART)
    candidates = itertools.islice(itertools.chain.from_iterable(like), MOST_COMPARED)
    closest = heapq.nlargest(_MOST_LIKE, candidates, key=lambda candidate: _equal_ends(name, candidate))
    return next(iter(difflib.get_close_matches(name, closest, n=1, cutoff=_LIKENESS)), None)


def _equal_ends(one: str, other: str) -> int:
    """Return the total length of the common beginning and the common end."""
    return _equal_start(one, other) + _equal_start(one[::-1], other[::-1])


def _equal_start(one: str, other: str) -> int:
    length = 0
    for letter, counterpart in zip(one, other, strict=False):
        if letter != counterpart:
            break
        length += 1
    return length
