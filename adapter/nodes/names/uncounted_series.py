"""Lists series that do not count although their node is known, with a repair, and the jobs that do count. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from adapter.nodes.exporters.claims import ClaimRefusal, Owner, Source, source_of, source_text
from adapter.nodes.model.loads import LoadResource, MeasuringJob, UnmappedSeries

_MOST_LISTED: Final = 1000
"""At most this many series are listed, since anybody may export any number of them."""


@dataclass(frozen=True, slots=True)
class RefusedSeries:
    """A series that does not count for a node."""

    labels: Mapping[str, str]
    node: str
    refusal: ClaimRefusal


def refused_series(found: Mapping[LoadResource, Iterable[RefusedSeries]]) -> tuple[UnmappedSeries, ...]:
    """Return the refused series, each once with all of its resources, by `instance`."""
    merged: dict[frozenset[tuple[str, str]], tuple[RefusedSeries, list[LoadResource]]] = {}
    for resource, several in found.items():
        for one in several:
            merged.setdefault(frozenset(one.labels.items()), (one, []))[1].append(resource)
    listed = (
        UnmappedSeries(one.labels.get("instance", ""), one.labels, tuple(resources), _fix(one), _reason(one))
        for one, resources in islice(merged.values(), _MOST_LISTED)
    )
    return tuple(sorted(listed, key=lambda one: (one.instance, sorted(one.labels.items()))))


def measured_by(
    owners: Mapping[LoadResource, Mapping[str, Owner]], known: Container[str] | None = None
) -> tuple[MeasuringJob, ...]:
    """Return the jobs from which the load of nodes is taken, the job with the most nodes first.

    `known` are the names of the current nodes, if these are known; others do not count.
    """
    jobs: dict[Source, dict[LoadResource, int]] = {}
    for resource, by_node in owners.items():
        present = (owner.source for node, owner in by_node.items() if known is None or node in known)
        for source, nodes in Counter(present).items():
            jobs.setdefault(source, {})[resource] = nodes
    found = [MeasuringJob(source, nodes) for source, nodes in jobs.items()]
    return tuple(sorted(found, key=lambda job: (-max(job.nodes.values()), job.labels)))


def _reason(one: RefusedSeries) -> str:
    by, mine = source_text(one.refusal.by), source_text(source_of(one.labels))
    match one.refusal.why:
        case "measured":
            return f"Node {one.node} is measured by {by}, so {mine} does not count for it."
        case "exporter":
            return f"Node {one.node} is measured by another exporter of {by}."
        case "held":
            return f"Node {one.node} belongs to {by}, which has been silent for less than an hour."
        case _:
            return f"Of the nodes that {mine} claims, too many are measured by {by}: none of its series counts."


def _fix(one: RefusedSeries) -> str:
    labels = dict(source_of(one.labels))
    if one.refusal.why == "exporter":
        return (
            f"Find out who exports it (instance {one.labels.get('instance', '')!r}); if it is the right one, stop"
            " scraping the other one."
        )
    names = ", ".join(f"{name}: {value}" for name, value in labels.items())
    return f"If this is the right exporter, write `matchers: {{{names}}}`; else find out who exports it."
