"""In which order, and for how long, a refresh asks: newest steps first, and never beyond its share of queries. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.loads import LoadResource
    from adapter.nodes.queries.plan import QueryPiece

MOST_QUERIES_A_MINUTE: Final = 12
_LONGEST_QUERY_SECONDS = 15.0
_KEPT_PER_QUERY_SECONDS = 2.0
_SHORTEST_QUERY_SECONDS = 0.5


def queries_allowed(refresh_seconds: float) -> int:
    """Return how many queries a refresh may ask, so that a minute does not have more than twelve."""
    return max(1, int(MOST_QUERIES_A_MINUTE * refresh_seconds / 60))


def in_order(
    pieces: Mapping[LoadResource, Sequence[QueryPiece]], asked: Mapping[LoadResource, int], most: int
) -> tuple[tuple[LoadResource, QueryPiece], ...]:
    """Return what to ask, first the newest piece of each resource, then older ones; at most so many.

    `asked` is when each resource was last asked, as a number that grows: the one that has waited longest comes first.
    """
    waiting = sorted(pieces, key=lambda resource: asked.get(resource, 0))
    deepest = max((len(found) for found in pieces.values()), default=0)
    ordered = (
        (resource, pieces[resource][rank])
        for rank in range(deepest)
        for resource in waiting
        if rank < len(pieces[resource])
    )
    return tuple(ordered)[:most]


def time_limit(remaining_seconds: float, queries_left: int) -> float:
    """Return how long the next query may take: as long as it leaves two seconds for each of those after it.

    So one that hangs does not take the time of the others, and an outage costs no more than the whole refresh may.
    """
    kept = _KEPT_PER_QUERY_SECONDS * (queries_left - 1)
    share = remaining_seconds / max(1, queries_left)
    return max(_SHORTEST_QUERY_SECONDS, min(_LONGEST_QUERY_SECONDS, max(share, remaining_seconds - kept)))
