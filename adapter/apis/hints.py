"""What to tell somebody who asks for a metric that is not there: the nearest thing that is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.readings.catalogue import Catalogue

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Index:
    catalogue: Catalogue
    places: Mapping[str, tuple[str, ...]]
    """Metric name to all that it is served for."""


class Hints:
    """Hints from the catalogue, indexed once for each: who asks for a missing metric asks again and again."""

    def __init__(self) -> None:
        self._index: _Index | None = None

    def for_missing(self, catalogue: Catalogue, name: str) -> str:
        """Return one clause on where a metric of this name is to be found, or why it may be nowhere."""
        index = self._index
        if index is None or index.catalogue is not catalogue:
            index = self._index = _Index(catalogue, _places(catalogue))
        if places := index.places.get(name):
            more = ", …" if len(places) > MOST_NAMED else ""
            return f"a metric of this name is served {' and '.join(places[:MOST_NAMED])}{more}"
        if not index.places:
            return "no metric is known yet: no rule has found a series in Prometheus"
        return "no rule gives a metric of this name, or none of its series is in Prometheus"


def _places(catalogue: Catalogue) -> Mapping[str, tuple[str, ...]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for metric in catalogue.custom:
        if metric.resource is not None:
            scope = "inside of namespaces" if metric.namespaced else "outside of namespaces"
            places[metric.name].append(f"for {metric.resource.qualified} ({scope})")
    for metric in catalogue.external:
        places[metric.name].append("as external metric")
    return {name: tuple(found) for name, found in places.items()}
