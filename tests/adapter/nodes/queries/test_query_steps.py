"""The steps that are queried, their order, and the time that this takes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.query_steps import (
    MOST_POINTS,
    MOST_SAMPLES,
    QueryPiece,
    pieces_lacking,
    queries_allowed,
    steps_after_success,
    steps_at_once,
    time_limit,
    wanted_steps,
)
from adapter.nodes.queries.query_turns import QueryTurns, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_800_000_007.5
STEPS = wanted_steps(NOW, 60, 15)


def test_the_steps_are_aligned_and_end_before_now() -> None:
    assert STEPS[-1] == 1_800_000_000
    assert len(STEPS) == 60
    assert all(step % 15 == 0 for step in STEPS)


@pytest.mark.parametrize(
    ("covered", "most", "expected"),
    [
        ([], 100, [(0, 59)]),
        ([], 40, [(20, 59), (0, 19)]),
        (range(60), 100, [(58, 59)]),
        (range(58), 100, [(56, 59)]),
        (range(20), 100, [(18, 59)]),
        (range(20, 58), 100, [(56, 59), (0, 19)]),
        ([*range(20), *range(30, 60)], 100, [(58, 59), (20, 29)]),
        (range(58), 1, [(59, 59), (58, 58), (57, 57), (56, 56)]),
    ],
    ids=[
        "at a start the whole of it",
        "at a start in pieces, newest first",
        "nothing new: late samples of the last two",
        "two new and two again",
        "after an outage what is missing",
        "what an answer left out",
        "a hole",
        "one at a time",
    ],
)
def test_only_missing_steps_are_queried(covered: range, most: int, expected: list[tuple[int, int]]) -> None:
    pieces = pieces_lacking(STEPS, [STEPS[i] for i in covered], most)
    assert [(STEPS.index(piece.first), STEPS.index(piece.last)) for piece in pieces] == expected


@settings(max_examples=60)
@given(covered=st.sets(st.integers(0, 59)), most=st.integers(1, 70))
def test_the_pieces_cover_all_missing_steps_and_no_step_twice(covered: set[int], most: int) -> None:
    known = {STEPS[i] for i in covered}
    pieces = pieces_lacking(STEPS, known, most)
    queried = [step for piece in pieces for step in piece.times]
    assert len(queried) == len(set(queried))
    assert known.union(queried) == set(STEPS)
    assert len(known.intersection(queried)) == min(2, len(known))
    assert all(piece.columns <= most for piece in pieces)


@pytest.mark.parametrize(
    ("read", "answered", "expected"),
    [(None, 1, MOST_POINTS), (10, 10, MOST_POINTS), (2_560_000, 20_000, 7), (10**9, 1, 1), (100, 10**9, 1)],
)
def test_a_query_reads_fewer_samples_than_the_limit_of_prometheus(
    read: int | None, answered: int, expected: int
) -> None:
    steps = steps_at_once(read, answered)
    assert steps == expected
    assert steps == 1 or steps * (read or 1) <= MOST_SAMPLES


@pytest.mark.parametrize(
    ("most", "columns", "took", "expected"),
    [(1, 1, 0.01, 300), (4, 4, 3.0, 8), (4, 4, 6.0, 8), (8, 2, 5.9, 16), (MOST_POINTS, 68, 0.0, MOST_POINTS)],
)
def test_larger_queries_follow_a_fast_answer(most: int, columns: int, took: float, expected: int) -> None:
    assert steps_after_success(most, columns, took, limit_seconds=6.0) == expected


@pytest.mark.parametrize(("seconds", "queries"), [(30, 6), (60, 12), (15, 3), (10, 2), (1, 1)])
def test_a_minute_has_at_most_twelve_queries(seconds: float, queries: int) -> None:
    assert queries_allowed(seconds) == queries
    assert queries * 60 / seconds <= 12 or queries == 1


def test_newest_steps_come_first_ordered_by_how_long_a_resource_has_waited() -> None:
    new, old = QueryPiece(150, 165, 15), QueryPiece(0, 135, 15)
    pieces = {LoadResource.CPU: (new, old), LoadResource.MEMORY: (new,), LoadResource.DISK: (new, old)}
    queried = {LoadResource.CPU: 7, LoadResource.MEMORY: 5, LoadResource.DISK: 6}
    assert in_order(pieces, queried, {LoadResource.CPU: 8}, 4) == (
        (LoadResource.MEMORY, new),
        (LoadResource.DISK, new),
        (LoadResource.CPU, new),
        (LoadResource.DISK, old),
    )


@pytest.mark.parametrize("queries", [1, 2, 3, 4, 5])
def test_with_few_queries_older_steps_take_turns_with_the_newest_of_each_resource(queries: int) -> None:
    turns, sent = QueryTurns(), []
    pieces = dict.fromkeys(LoadResource, (QueryPiece(150, 165, 15), QueryPiece(0, 135, 15)))
    for _ in range(60):
        for resource, piece in turns.plan(pieces, queries):
            turns.note(resource, piece, is_newest=piece is pieces[resource][0])
            sent.append((resource, piece))
    resources = len(LoadResource)
    for resource in LoadResource:
        newest, older = ((resource, piece) for piece in pieces[resource])
        assert _longest_wait(sent, newest) <= 2 * resources
        # Each takes one turn of five, and the turns of older steps are one in six.
        assert _longest_wait(sent, older) <= resources * (resources + 1) + queries


def test_older_steps_that_stay_without_an_answer_do_not_hold_up_the_others() -> None:
    turns = QueryTurns()
    pieces = [QueryPiece(first, first + 75, 15) for first in (810, 720, 630, 540)]
    sent = []
    for _ in range(12):
        for resource, piece in turns.plan({LoadResource.CPU: pieces}, 1):
            turns.note(resource, piece, is_newest=piece is pieces[0])
            sent.append(piece)
    assert set(sent[:8]) == set(pieces)


def _longest_wait(sent: Sequence[tuple[LoadResource, QueryPiece]], one: tuple[LoadResource, QueryPiece]) -> int:
    """Return the largest number of queries from one for these steps to the next."""
    at = [0, *(number for number, query in enumerate(sent, 1) if query == one)]
    return max(after - before for before, after in pairwise(at))


@settings(max_examples=60)
@given(seconds=st.floats(6, 60), queries=st.integers(1, 12))
def test_hanging_queries_end_soon_after_the_time_of_the_refresh(seconds: float, queries: int) -> None:
    left = seconds
    for waiting in range(queries, 0, -1):
        left -= time_limit(left, waiting)
    assert left >= -0.5 * queries


def test_one_query_that_hangs_leaves_time_for_the_others() -> None:
    assert time_limit(24, 5) == 15
    assert time_limit(24 - 15, 4) >= 2
