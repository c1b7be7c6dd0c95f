"""Determines the order of sources, and which are not trusted at all. Pure.

Sources that Prometheus has known for longer come first. Among sources of the same age, those whose exporters have the
addresses of the nodes that they measure come first, if they cover more than half as many nodes as the other sources.
Next come those that cover the most nodes; among sources that cover nearly as many, the one with the older samples. Only
nodes that exist count. If a source covers more than twice as many nodes as all sources before it together, it comes
first. Some minutes after the start, the order is settled: a source that appears later comes last, unless it is the only
one whose exporters have the addresses of their nodes, and it covers more than twice as many nodes as the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adapter.nodes.exporters.claims import HOLD_SECONDS, SETTLING_SECONDS, ExporterClaim, Ownership, Source

_TIMES_AS_MANY: Final = 2
_NEARLY_ALL: Final = 0.9
_FOREIGN_SHARE: Final = 0.25


def live_sources(before: Ownership, claims: Iterable[ExporterClaim], now: float) -> dict[Source, float]:
    """Return when each source was last live, without sources that have been silent for too long."""
    known = {**before.last_live, **dict.fromkeys((claim.source for claim in claims if claim.is_live), now)}
    return {source: at for source, at in known.items() if now - at < HOLD_SECONDS}


def silent_sources(before: Ownership, live: Iterable[Source], now: float) -> set[Source]:
    """Return the sources with many exporters that Prometheus knew until just before the start, but not since."""
    recent = {s for s, past in before.past.items() if past.is_missed and now - past.last_seen < HOLD_SECONDS}
    return recent.difference(live, before.last_live)


def covered_nodes(before: Ownership, claims: Iterable[ExporterClaim], now: float) -> dict[Source, set[str]]:
    """Return the nodes that each source measures, or measured within the last hour."""
    covered: dict[Source, set[str]] = {}
    for node, owner in before.owners.items():
        if now - owner.seen_at < HOLD_SECONDS:
            covered.setdefault(owner.source, set()).add(node)
    for claim in claims:
        if claim.is_live:
            covered.setdefault(claim.source, set()).add(claim.node)
    return covered


def rank_sources(
    before: Ownership,
    claims: Sequence[ExporterClaim],
    sources: Iterable[Source],
    covered: Mapping[Source, set[str]],
    now: float,
) -> tuple[Source, ...]:
    """Return these sources, the best first."""
    is_settled = now - before.began_at >= SETTLING_SECONDS
    listed = set(sources)
    kept = [source for source in before.order if source in listed] if is_settled else []
    new = sorted(listed.difference(kept))
    own, since = _speaking_for_themselves(claims), _mean_since(claims)
    is_own_first = _own_first(new, own, covered)

    def size(source: Source) -> int:
        # Only the number of exporters is known of a source that has been silent since the start.
        return len(covered[source]) if source in covered else before.past[source].exporters

    largest = max(map(size, new), default=0)

    def key(source: Source) -> tuple[float, bool, bool, float, int]:
        first_seen = before.past[source].first_seen if source in before.past else now if is_settled else before.began_at
        is_large = size(source) >= _NEARLY_ALL * largest
        seen_since = since.get(source, first_seen) if is_large else 0.0
        return first_seen, (source in own) is not is_own_first, not is_large, seen_since, -size(source)

    found: list[Source] = []
    nodes: set[str] = set()
    unnamed = 0
    for source in (*kept, *sorted(new, key=key)):
        is_much_larger = size(source) > _TIMES_AS_MANY * (len(nodes) + unnamed)
        overtakes = is_much_larger and (not is_settled or (source in own and own.isdisjoint(found)))
        found.insert(0 if overtakes else len(found), source)
        nodes |= covered.get(source, set())
        unnamed += 0 if source in covered else size(source)
    return tuple(found)


def trusted_sources(order: Iterable[Source], covered: Mapping[Source, set[str]]) -> dict[Source, Source | None]:
    """Return for each source None if it is trusted, otherwise the source to which most nodes that it claims belong.

    A source is not trusted if at least a quarter of its nodes belong to trusted sources ranked before it, since its
    purpose is then not to measure nodes that the others lack. A node belongs to the first of them that covers it.
    """
    ranked = tuple(order)
    found: dict[Source, Source | None] = {}
    holders: dict[str, int] = {}
    """The rank of the first trusted source of each node."""
    for rank, source in enumerate(ranked):
        nodes = covered.get(source, set())
        claimed = Counter(map(holders.__getitem__, nodes & holders.keys()))
        if nodes and claimed.total() >= _FOREIGN_SHARE * len(nodes):
            found[source] = ranked[min(claimed, key=lambda other: (-claimed[other], other))]
            continue
        found[source] = None
        for node in nodes:
            holders.setdefault(node, rank)
    return found


def _speaking_for_themselves(claims: Iterable[ExporterClaim]) -> set[Source]:
    """Return the sources for which at least half of the live exporters have the address or name of their node."""
    counts: dict[Source, int] = {}
    for claim in claims:
        if claim.is_live:
            counts[claim.source] = counts.get(claim.source, 0) + (1 if claim.is_own else -1)
    return {source for source, count in counts.items() if count >= 0}


def _mean_since(claims: Iterable[ExporterClaim]) -> dict[Source, float]:
    """Return the mean time of the oldest samples of each source."""
    times: dict[Source, list[float]] = {}
    for claim in claims:
        if claim.is_live:
            times.setdefault(claim.source, []).append(claim.since)
    return {source: sum(found) / len(found) for source, found in times.items()}


def _own_first(sources: Iterable[Source], own: set[Source], covered: Mapping[Source, set[str]]) -> bool:
    own_nodes: set[str] = set()
    others: set[str] = set()
    for source in sources:
        (own_nodes if source in own else others).update(covered.get(source, ()))
    return _TIMES_AS_MANY * len(own_nodes) > len(others)
