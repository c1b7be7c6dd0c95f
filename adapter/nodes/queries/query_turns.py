"""The order in which resources are queried: newest steps first, while older steps never wait for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.loads import LoadResource
    from adapter.nodes.queries.query_steps import QueryPiece


class QueryTurns:
    """Remembers in which refresh each resource was last queried. Not thread-safe."""

    def __init__(self) -> None:
        self._refresh = 0
        """The number of the current refresh; the first one has 1."""
        self._newest: dict[LoadResource, int] = {}
        """The refresh that last queried the newest steps of each resource."""
        self._older: dict[LoadResource, int] = {}
        """The refresh that last queried older steps of each resource."""
        self._steps: dict[tuple[LoadResource, int], int] = {}
        """The refresh that last queried each step of a resource, by its time in Unix seconds."""

    def plan(
        self, pieces: Mapping[LoadResource, Sequence[QueryPiece]], most: int
    ) -> tuple[tuple[LoadResource, QueryPiece], ...]:
        """Begin a refresh; return at most `most` pieces to request, in this order.

        The pieces of each resource are newest first.
        """
        self._refresh += 1
        lacking = {(resource, step) for resource, own in pieces.items() for piece in own for step in piece.times}
        self._steps = {step: refresh for step, refresh in self._steps.items() if step in lacking}
        # Steps that stay without an answer, as of a time for which there are no samples, must not hold up the others.
        by_wait = {
            resource: (*own[:1], *sorted(own[1:], key=lambda piece: self._steps.get((resource, piece.last), 0)))
            for resource, own in pieces.items()
        }
        return in_order(by_wait, self._newest, self._older, most)

    def note(self, resource: LoadResource, piece: QueryPiece, *, is_newest: bool) -> None:
        """Note that a piece of a resource's steps is queried in this refresh, its newest or an older one."""
        (self._newest if is_newest else self._older)[resource] = self._refresh
        self._steps |= dict.fromkeys(((resource, step) for step in piece.times), self._refresh)


def in_order(
    pieces: Mapping[LoadResource, Sequence[QueryPiece]],
    newest: Mapping[LoadResource, int],
    older: Mapping[LoadResource, int],
    most: int,
) -> tuple[tuple[LoadResource, QueryPiece], ...]:
    """Return the pieces to request, first the newest one of each resource, then older ones; at most `most`.

    `newest` and `older` are the refreshes in which each resource was last queried for its newest piece and for an older
    one: what has waited longest comes first. If not all can be requested, older pieces take turns with the newest ones
    as if they were those of one more resource. Otherwise, where there are more resources than queries, the older part
    of the windows would be empty until enough time has passed.
    """
    first = [(resource, pieces[resource][0]) for resource in _by_wait(pieces, newest) if pieces[resource]]
    waiting = _by_wait(pieces, older)
    deepest = max(map(len, pieces.values()), default=0)
    rest = [
        (resource, pieces[resource][rank])
        for rank in range(1, deepest)
        for resource in waiting
        if rank < len(pieces[resource])
    ]
    if rest and 0 < most <= len(first) and max(older.values(), default=0) <= newest.get(first[most - 1][0], -1):
        first = first[: most - 1]
    return tuple(first + rest)[:most]


def _by_wait(pieces: Mapping[LoadResource, object], asked: Mapping[LoadResource, int]) -> list[LoadResource]:
    return sorted(pieces, key=lambda resource: asked.get(resource, 0))
