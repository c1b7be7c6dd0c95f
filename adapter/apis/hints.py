"""What to tell somebody who asks for a metric that is not there: the nearest thing that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.apis.slices import in_one_piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.apis.slices import Slices
    from adapter.readings.catalogue import Catalogue
    from adapter.rulebook.model import Metric

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Index:
    catalogue: Catalogue
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Metric name to all that it is served for."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Series name to the name under which a metric made of it is served."""


class Hints:
    """Hints from one catalogue, indexed before they are needed; `prepare` changes to another."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._index = _index(catalogue, in_one_piece)

    def prepare(self, catalogue: Catalogue, slices: Slices) -> None:
        """Index this catalogue, unless it is the one that is indexed."""
        if self._index.catalogue is not catalogue:
            self._index = _index(catalogue, slices)

    def for_missing(self, name: str) -> str:
        """Return one clause on where a metric of this name is to be found, or why it may be nowhere."""
        index = self._index
        if places := index.places.get(name):
            return f"a metric of this name is served {_listed(places)}"
        if renamed := index.renamed.get(name):
            places = index.places[renamed]
            return f"the series of this name is served as the metric {renamed}, {_listed(places)}"
        if not index.places:
            return "no metric is known yet: no rule has found a series in Prometheus"
        return "no rule gives a metric of this name, or none of its series is in Prometheus"


def _index(catalogue: Catalogue, slices: Slices) -> _Index:
    index = _Index(catalogue)
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for part in slices(_all(catalogue)):
        for metric in part:
            places = (*index.places.get(metric.name, ()), _place(metric))
            # Most metrics are served for the same kinds: one tuple for all of them.
            index.places[metric.name] = shared.setdefault(places, places)
            if metric.series != metric.name:
                index.renamed[metric.series] = metric.name
    return index


def _all(catalogue: Catalogue) -> Iterator[Metric]:
    yield from catalogue.custom
    yield from catalogue.external


def _place(metric: Metric) -> str:
    if metric.resource is None:
        return "as external metric"
    scope = "inside of namespaces" if metric.namespaced else "outside of namespaces"
    return f"for {metric.resource.qualified} ({scope})"


def _listed(places: tuple[str, ...]) -> str:
    if len(places) > MOST_NAMED:
        return f"{', '.join(places[:MOST_NAMED])} and {len(places) - MOST_NAMED} more"
    *first, last = places
    return f"{', '.join(first)} and {last}" if first else last
