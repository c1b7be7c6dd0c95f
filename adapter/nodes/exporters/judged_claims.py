"""Determines which series count for a node, and which are refused. Pure.

Anybody whose pods are scraped can export `node_cpu_seconds_total` with the name of any node, so the series of several
exporters are never averaged: each node is measured by one source, and by one exporter of it. A source that falls silent
keeps its nodes for an hour. After that, another source may take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adapter.nodes.exporters.claims import HOLD_SECONDS, ClaimRefusal, ExporterClaim, Owner, Ownership, Source
from adapter.nodes.exporters.source_ranking import (
    covered_nodes,
    live_sources,
    rank_sources,
    silent_sources,
    trusted_sources,
)

_SILENT_SECONDS: Final = 180.0
"""An exporter without a sample for this long counts as silent."""
_REMEMBERED_SECONDS: Final = 7 * 86_400.0
"""How long the owner of a node without any series is remembered: as long as what it measured is kept."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts on the claims of one answer, at the indexes of the claims."""

    ownership: Ownership
    refused: Mapping[int, ClaimRefusal]
    earlier: Mapping[int, int]
    """Claims of exporters that counted before the current one, such as before a restart, with the place of the current
    one's claim. They count where the current one has no sample."""
    moved: Mapping[str, Source]
    """Nodes that another source measures from now on, with their former source. Their older samples do not count."""


@dataclass(frozen=True, slots=True)
class _Judging:
    """The facts by which claims on each node are judged."""

    before: Ownership
    rank: Mapping[Source, int]
    untrusted: Mapping[Source, Source | None]
    silent: Source | None
    """The best source that Prometheus knew before the start but that measures no node now."""
    now: float


def judge_claims(before: Ownership, claims: Sequence[ExporterClaim], now: float) -> Judgement:
    """Return which claims count, and which exporter measures each node from now on."""
    judging, last_live = _facts_for_judging(before, claims, now)
    by_node: dict[str, list[int]] = {}
    for place, claim in enumerate(claims):
        by_node.setdefault(claim.node, []).append(place)
    owners = {
        node: owner
        for node, owner in before.owners.items()
        if node in by_node or now - owner.seen_at < _REMEMBERED_SECONDS
    }
    contested = {key: at for key, at in before.contested.items() if now - at < HOLD_SECONDS}
    refused: dict[int, ClaimRefusal] = {}
    earlier: dict[int, int] = {}
    moved: dict[str, Source] = {}
    for node, places in by_node.items():
        winner = _winner(judging, claims, places)
        found, owner = None if winner is None else claims[winner], owners.get(node)
        if found is not None:
            if owner is not None and owner.source != found.source:
                moved[node] = owner.source
            owners[node] = owner = _owner_of_claim(owner, found)
        for place in places:
            claim = claims[place]
            if place == winner:
                continue
            if winner is not None and _is_replaced_by(claim, claims[winner], contested):
                earlier[place] = winner
                continue
            refused[place] = _refusal(judging, claim, owner)
            if found is not None and claim.is_live and found.is_live and claim.source == found.source:
                contested[node, claim.exporter] = now
    after = replace(before, order=tuple(judging.rank), last_live=last_live, owners=owners, contested=contested)
    return Judgement(after, refused, earlier, moved)


def _facts_for_judging(
    before: Ownership, claims: Sequence[ExporterClaim], now: float
) -> tuple[_Judging, dict[Source, float]]:
    """Return the facts by which claims are judged, and when each source was last live."""
    last_live = live_sources(before, claims, now)
    absent = silent_sources(before, last_live, now)
    covered = covered_nodes(before, claims, now)
    # Claims that are not live count if there is no other.
    listed = absent.union(last_live, (claim.source for claim in claims))
    without_live: dict[Source, set[str]] = {source: set() for source in listed.difference(covered, absent)}
    for claim in claims:
        if claim.source in without_live:
            without_live[claim.source].add(claim.node)
    covered |= without_live
    order = rank_sources(before, claims, listed, covered, now)
    rank = {source: place for place, source in enumerate(order)}
    silent = next((source for source in order if source in absent), None)
    return _Judging(before, rank, trusted_sources(order, covered), silent, now), last_live


def _winner(judging: _Judging, claims: Sequence[ExporterClaim], places: Sequence[int]) -> int | None:
    """Return the place of the claim on one node that counts; None if none does."""
    rank = judging.rank
    trusted = [place for place in places if judging.untrusted[claims[place].source] is None]
    if not trusted:
        return None
    owner = judging.before.owners.get(claims[places[0]].node)
    # A source that has merely fallen silent comes before another source that has not.
    best = min(rank[claims[place].source] for place in trusted)
    holder = _holder(judging, owner, best)
    if holder is not None:
        return _last_of(holder, owner, claims, places)
    of_best = [place for place in trusted if rank[claims[place].source] == best]
    mine = [place for place in of_best if claims[place].is_live] or of_best
    if owner is None or rank.get(owner.source) != best:
        return min(mine, key=lambda place: _evidence(claims[place]))
    same = next((place for place in mine if claims[place].exporter == owner.exporter), None)
    if same is not None and (claims[same].is_own or not any(claims[place].is_own for place in mine)):
        return same
    # After a restart an exporter may have another address, unless its address was that of the node.
    is_held = judging.now - owner.seen_at < HOLD_SECONDS
    contested = judging.before.contested
    successors = [
        place
        for place in mine
        if claims[place].is_own
        or not is_held
        or not (owner.is_own or (claims[place].node, claims[place].exporter) in contested)
    ]
    return min(successors, key=lambda place: _evidence(claims[place]), default=same)


def _last_of(holder: Source, owner: Owner | None, claims: Sequence[ExporterClaim], places: Sequence[int]) -> int | None:
    """Return the place of the claim that has the last samples of a node's silent source; None if no claim has."""
    mine = [place for place in places if claims[place].source == holder]
    if owner is not None:
        return next((place for place in mine if claims[place].exporter == owner.exporter), None)
    return min(mine, key=lambda place: _evidence(claims[place]), default=None)


def _holder(judging: _Judging, owner: Owner | None, best: int) -> Source | None:
    """Return the silent source, ranked before `best`, to which the node still belongs; None if there is none."""
    rank = judging.rank
    if owner is None:
        silent = judging.silent
        return silent if silent is not None and rank[silent] < best else None
    is_held = judging.now - owner.seen_at < HOLD_SECONDS and judging.untrusted.get(owner.source) is None
    return owner.source if is_held and rank.get(owner.source, best) < best else None


def _evidence(claim: ExporterClaim) -> tuple[bool, str]:
    return not claim.is_own, claim.exporter


def _owner_of_claim(owner: Owner | None, claim: ExporterClaim) -> Owner:
    seen_at = claim.seen_at
    if owner is not None and owner.exporter == claim.exporter and not seen_at > owner.seen_at:
        seen_at = owner.seen_at
    return Owner(claim.source, claim.exporter, claim.is_own, seen_at)


def _is_replaced_by(claim: ExporterClaim, winner: ExporterClaim, contested: Mapping[tuple[str, str], float]) -> bool:
    """Return whether a claim comes from an exporter that the winner, which is of the same source, has replaced."""
    return (
        winner.is_live
        and not claim.is_live
        and claim.source == winner.source
        and (claim.is_own or not winner.is_own)
        and (claim.node, claim.exporter) not in contested
    )


def _refusal(judging: _Judging, claim: ExporterClaim, owner: Owner | None) -> ClaimRefusal:
    better = judging.untrusted[claim.source]
    if owner is None:
        if better is not None:
            return ClaimRefusal("untrusted", better)
        return ClaimRefusal("held", judging.silent if judging.silent is not None else claim.source)
    if owner.source == claim.source:
        return ClaimRefusal("untrusted", better) if better is not None else ClaimRefusal("exporter", owner.source)
    is_silent = judging.now - owner.seen_at >= _SILENT_SECONDS
    return ClaimRefusal("held" if is_silent else "measured", owner.source)
