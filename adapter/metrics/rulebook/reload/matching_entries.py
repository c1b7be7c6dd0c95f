"""Matches the current entries of a rule list with its former entries (pure).

Rules have no names of their own, so an entry is recognised by what it states, and then by its place. The first of these
that leaves no doubt decides:

1. the same content;
2. the same `seriesQuery` and `name.as`, then the same `seriesQuery`, then the same `name.as`; each only if no other
   entry states it, and only a name that is the same for all series (without `$`);
3. the same place: an equal number of refused entries between the same neighbours, or the only entry that was removed
   and the only one that was added.

A refused entry whose series and name differ from those of the former entry in its place is another rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.series_query import NotASelectorError, parse_series_query

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from adapter.metrics.rulebook.model import RefusedRule, Rule

_Key: TypeAlias = "str | tuple[str, str]"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list of rules."""

    id: str
    content: Hashable
    """The content of the entry; equal for entries that state the same."""
    series_query: str
    name: str
    """The name of its metric; empty if it depends on the series, or cannot be read."""
    good: Rule | None
    """The rule that is served for it."""
    refused: RefusedRule | None
    """The refused rule; None for a valid entry."""


class ListMatching:
    """Which entries of a list are the same before and after a change."""

    def __init__(self, before: Sequence[Entry], now: Sequence[Entry]) -> None:
        self._before = before
        self._now = now
        self._gone = dict.fromkeys(range(len(before)))
        """Indices of former entries without a partner, in order."""
        self._came = dict.fromkeys(range(len(now)))
        """Indices of current entries without a partner, in order."""
        self._partners: dict[int, int] = {}
        """Indices of former entries by the indices of their current partners."""
        self._pair_equal_contents()
        self._pair_by(lambda entry: entry.series_query and entry.name and (entry.series_query, entry.name))
        self._pair_by(lambda entry: entry.series_query)
        self._pair_by(lambda entry: entry.name)
        self._pair_between_neighbours()
        if len(self._gone) == len(self._came) == 1:
            self._pair_by_place(*self._gone, *self._came)

    def pairs(self) -> Iterable[tuple[Entry, Entry]]:
        """Return the former and the current state of each entry with a partner, in the order of the current list."""
        return [(self._before[was], self._now[is_now]) for is_now, was in sorted(self._partners.items())]

    def unsure(self) -> Iterable[RefusedRule]:
        """Return the refused entries without a partner, if one of them may be a rule that was served until now."""
        if all(self._before[index].good is None for index in self._gone):
            return ()
        return [refused for index in self._came if (refused := self._now[index].refused) is not None]

    def _pair(self, before: int, now: int) -> None:
        del self._gone[before], self._came[now]
        self._partners[now] = before

    def _pair_equal_contents(self) -> None:
        places: defaultdict[Hashable, list[int]] = defaultdict(list)
        for index in reversed(self._gone):
            places[self._before[index].content].append(index)
        for index in list(self._came):
            if same := places[self._now[index].content]:
                self._pair(same.pop(), index)

    def _pair_by(self, key: Callable[[Entry], _Key]) -> None:
        """Pair entries without a partner whose key no other such entry has; an empty key identifies nothing."""
        gone, came = _unique_keys(self._before, self._gone, key), _unique_keys(self._now, self._came, key)
        for value in gone.keys() & came.keys():
            self._pair(gone[value], came[value])

    def _pair_between_neighbours(self) -> None:
        fixed = {-1: -1, **self._partners, len(self._now): len(self._before)}
        start = 0
        for end in range(len(self._now) + 1):
            if end in fixed:
                gone = [index for index in range(fixed[start - 1] + 1, fixed[end]) if index in self._gone]
                came = range(start, end)
                if len(gone) == len(came) and all(self._now[index].refused for index in came):
                    for was, is_now in zip(gone, came, strict=True):
                        self._pair_by_place(was, is_now)
                start = end + 1

    def _pair_by_place(self, before: int, now: int) -> None:
        good, refused = self._before[before].good, self._now[now].refused
        if good is not None and refused is not None:
            stated = _identity(refused.series_query, self._now[now].name)
            if stated and not stated & _identity(good.series_query, literal_name(good.naming.template)):
                return
        self._pair(before, now)


def literal_name(as_: str) -> str:
    """Return the name that a rule gives to all its metrics; empty if the name depends on the series."""
    return "" if "$" in as_ else as_


def _unique_keys(entries: Sequence[Entry], indices: Iterable[int], key: Callable[[Entry], _Key]) -> Mapping[_Key, int]:
    """Return the index of each entry by its key, for keys that only one entry has."""
    keys = {index: key(entries[index]) for index in indices}
    count = Counter(keys.values())
    return {value: index for index, value in keys.items() if value and count[value] == 1}


def _identity(series_query: str, name: str) -> frozenset[tuple[str, str]]:
    """Return the parts that identify a rule; two entries with a part in common are the same rule."""
    parts = {("name", name)} if name else set()
    try:
        series = parse_series_query(series_query).name
    except (NotASelectorError, UnreadableQueryError):
        return frozenset(parts)
    return frozenset(parts | {("seriesQuery", series_query.strip())} | ({("series", series)} if series else set()))
