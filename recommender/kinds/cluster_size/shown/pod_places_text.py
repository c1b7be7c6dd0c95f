"""The places that pods without a node have found on nodes that exist or are on their way, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.pod_places import NodeState, PlaceKind, PodOrigin
from recommender.kinds.cluster_size.shown.pod_and_node_texts import (
    MOST_ROWS,
    alike_text,
    by_workload,
    lines_of,
    nodes_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.kinds.cluster_size.model.pod_places import PodName, PodPlace

_MOST_MOVES: Final = 250
"""The most moves shown: more than the usual maximum of pods on a node, so a question about one node shows each pod."""


def place_lines(answer: ClusterSizeAnswer, width: int) -> Mapping[str, Iterator[str]]:
    """Return the lines by heading.

    They show pods that move, pods that the scheduler could place now, and pods that wait for a node or for evictions.
    """
    unready = frozenset(one.node for one in answer.unavailable if one.state is NodeState.NOT_READY)

    def lines(kind: PlaceKind, origin: PodOrigin, text: str) -> Iterator[str]:
        places = [one for one in answer.places if one.kind is kind and one.origin is origin]
        return _alike_lines(places, text, width, unready)

    deleting = frozenset(one.node for one in answer.unavailable)
    moved = [one for one in answer.places if one.origin is PodOrigin.MOVED]
    return {
        "NEW PLACES": _moves([one for one in moved if one.source not in deleting], answer.displaced, width),
        "NEW PLACES FOR PODS OF NODES THAT ARE BEING DELETED": _alike_lines(
            [one for one in moved if one.source in deleting], "from a node that goes to", width, unready
        ),
        "PENDING ALTHOUGH A NODE HAS ROOM": lines(PlaceKind.EXISTING, PodOrigin.PENDING, "there is room on"),
        "ROOM FOR ASSUMED PODS": lines(PlaceKind.EXISTING, PodOrigin.ASSUMED, "there is room on"),
        "WAITING FOR EVICTIONS": lines(
            PlaceKind.NOMINATED, PodOrigin.PENDING, "the scheduler evicts other pods for this on"
        ),
        "WAITING FOR A NODE ON ITS WAY": lines(PlaceKind.UPCOMING, PodOrigin.PENDING, "there will be room on"),
    }


def _moves(places: Sequence[PodPlace], displaced: Mapping[PodName, str], width: int) -> Iterator[str]:
    """Yield a line for each pod of a removed node, as the question is about each; pods without a place come first."""
    moves = [f"{pod}: from {source} to no node, as NO NODE FOR says" for pod, source in displaced.items()]
    moves += [f"{place.pod}: from {place.source} to {_node_text(place)}" for place in places]
    for move in moves[:_MOST_MOVES]:
        yield from lines_of(move, width, 2)
    if len(moves) > _MOST_MOVES:
        yield from lines_of(f"and {len(moves) - _MOST_MOVES} more pods: -o json has all of them", width, 2)


def _node_text(place: PodPlace) -> str:
    if place.kind is PlaceKind.NEW:
        return f"a new node of {place.group}"
    return place.node or f"a node of {place.group} that is on its way"


def _alike_lines(places: Sequence[PodPlace], text: str, width: int, unready: frozenset[str]) -> Iterator[str]:
    """Yield a line for the pods of each workload, with their nodes."""
    nodes = {one.pod: _node_text(one) for one in places}
    workloads = by_workload(nodes)
    for pods in workloads[:MOST_ROWS]:
        theirs = [nodes[pod] for pod in pods]
        doubt = " (which is NotReady)" if unready.intersection(theirs) else ""
        yield from lines_of(f"{alike_text(pods)}: {text} {nodes_text(theirs)}{doubt}", width, 2)
    if len(workloads) > MOST_ROWS:
        yield from lines_of(f"and pods of {len(workloads) - MOST_ROWS} more workloads: -o json has all", width, 2)
