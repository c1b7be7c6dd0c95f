"""Finds sources with far more exporters than there are nodes, whose series are then not queried. Pure.

Anybody whose pods are scraped can export the load of a hundred thousand made-up nodes. Each query would then be too
large for Prometheus, or for the memory of this process, and no node would have a load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.foundation.promql.quoting import go_quoted
from adapter.nodes.exporters.claims import SOURCE_LABELS, Source, source_text
from adapter.nodes.model.loads import LoadResource, UnmappedSeries

_EXPORTERS_PER_NODE: Final = 4
"""Exporters per node that are allowed: more than in installations that scrape everything twice."""
_LEAST_ALLOWED: Final = 1000
_MOST_WITHOUT_NODES: Final = 20_000
NAMESPACE_LABELS: Final = tuple(label for label in SOURCE_LABELS if label != "job")


@dataclass(frozen=True, slots=True)
class CrowdedOut:
    """The sources whose series are not queried."""

    exporters: Mapping[Source, int] = field(default_factory=dict)
    """How many exporters each source has; all jobs of a namespace together count as a source without a job."""
    labels: frozenset[tuple[str, str]] = frozenset()
    """The labels by which the sources are left out; other series with one of these labels are left out too."""

    def covers(self, source: Source) -> bool:
        """Return whether a source is left out."""
        return not self.labels.isdisjoint(source)

    @property
    def matchers(self) -> tuple[str, ...]:
        """The matchers that exclude these sources, in PromQL."""
        return tuple(f"{name}!={go_quoted(value)}" for name, value in sorted(self.labels))


def most_exporters(nodes: int | None) -> int:
    """Return how many exporters a source may have; `nodes` is the number of nodes, or None if it is not known."""
    return _MOST_WITHOUT_NODES if nodes is None else max(_LEAST_ALLOWED, _EXPORTERS_PER_NODE * nodes)


def left_out(exporters: Mapping[Source, int], of_namespaces: Mapping[Source, int], most: int) -> CrowdedOut:
    """Return the sources with more than `most` exporters, and namespaces whose other sources together have more.

    `of_namespaces` counts the exporters of all sources in a namespace, by the namespace label alone. A selector cannot
    exclude pairs of labels. So sources are left out by their job if no other source has that job, and otherwise by
    their namespace: the exports of one tenant cost only that tenant, whatever its jobs are called.
    """
    crowds = {source: count for source, count in exporters.items() if source and count > most}
    others = [dict(source).get("job") for source in exporters if source not in crowds]
    labels: set[tuple[str, str]] = set()
    for found in map(dict, crowds):
        names = NAMESPACE_LABELS if found.get("job") in others else ("job", *NAMESPACE_LABELS)
        labels.update([(name, found[name]) for name in (*names, "job") if name in found][:1])
    counted: Counter[tuple[str, str]] = Counter()
    for source, count in exporters.items():
        if not labels.isdisjoint(source):
            counted.update(dict.fromkeys(source, count))
    namespaces = {one: count for one, count in of_namespaces.items() if one and count - counted[one[0]] > most}
    return CrowdedOut(crowds | namespaces, frozenset(labels.union(*namespaces)))


def left_out_series(found: Mapping[LoadResource, CrowdedOut]) -> tuple[UnmappedSeries, ...]:
    """Return one entry for each source that is left out, with the reason and the repair."""
    resources: dict[Source, list[LoadResource]] = {}
    counts: dict[Source, int] = {}
    for resource, one in found.items():
        for source, count in one.exporters.items():
            resources.setdefault(source, []).append(resource)
            counts[source] = max(count, counts.get(source, 0))
    return tuple(
        UnmappedSeries(
            "",
            dict(source),
            tuple(resources[source]),
            "Find out who exports them, and stop scraping that; if these are the right exporters, write `matchers` "
            "that select them alone.",
            f"{_who(source)} exports the load of {counts[source]} nodes, which is far more than there are: none of its "
            "series is queried.",
        )
        for source in sorted(resources)
    )


def _who(source: Source) -> str:
    labels = dict(source)
    return source_text(source) if labels.get("job") else f"what is scraped in {next(iter(labels.values()))}"
