"""The names of what is served, indexed for hints: where each is served, and which is most like another name."""

from __future__ import annotations

import difflib
import heapq
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.metrics.rulebook.lint.examples import distance_from_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.rulebook.model import Metric


MOST_COMPARED = 1000
_MOST_LIKE = 10
_LONGEST = 100
_LETTERS_APART = (0, 1, -1, 2, -2)
_LIKENESS = 0.85
"""Lowest ratio of `difflib`: two different letters in a name of fifteen."""


@dataclass(frozen=True, slots=True)
class ServedNames:
    """The names of one catalogue."""

    catalogue: Catalogue
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps the name of each metric to everything that the metric is served for."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Maps the name of a series to the name of the metric that is made of it, if the names differ."""
    likeliest: dict[str, Metric] = field(default_factory=dict)
    """Maps the name of a custom metric to the metric that is meant if a request names no kind of object."""
    by_length: dict[int, list[str]] = field(default_factory=dict)
    """Maps a length to the names of metrics that have it."""
    meant: dict[str, str | None] = field(default_factory=dict)
    """Maps a requested unknown name to the most similar name of a metric; None if no name is similar."""


def served_names(catalogue: Catalogue, pace: Pace) -> ServedNames:
    """Return the names of a catalogue, indexed in slices."""
    index = ServedNames(catalogue)
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for part in pace.slices(_all(catalogue)):
        for metric in part:
            places = (*index.places.get(metric.name, ()), _place(metric))
            # Most metrics are served for the same kinds, so they share one tuple.
            if metric.name not in index.places:
                index.by_length.setdefault(len(metric.name), []).append(metric.name)
            index.places[metric.name] = shared.setdefault(places, places)
            if metric.series != metric.name:
                index.renamed[metric.series] = metric.name
            if metric.resource is not None:
                known = index.likeliest.get(metric.name, metric)
                index.likeliest[metric.name] = min(known, metric, key=distance_from_pods)
    return index


def _all(catalogue: Catalogue) -> Iterator[Metric]:
    yield from catalogue.custom
    yield from catalogue.external


def _place(metric: Metric) -> str:
    if metric.resource is None:
        return "as external metric"
    scope = "namespaced" if metric.namespaced else "not namespaced"
    return f"for {metric.resource.qualified} ({scope})"


def nearest_name(name: str, by_length: Mapping[int, Sequence[str]]) -> str | None:
    """Return the most similar name; None if none is similar. `by_length` has the names by their length.

    This is done within a request. So only names of about the same length are compared: all of them by their common
    beginnings and ends, which takes microseconds, and the few that remain letter by letter.
    """
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
