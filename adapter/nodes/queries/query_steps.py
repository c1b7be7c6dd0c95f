"""Plans the steps to query: only those that are missing, in pieces that Prometheus can answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

OVERLAP_STEPS: Final = 2
"""The newest steps are requested again, because samples may arrive after the step."""
MOST_SAMPLES: Final = 20_000_000
"""Limit of the number of series that an expression reads times the steps; Prometheus rejects a query at 50 million."""
MOST_POINTS: Final = 11_000
"""Prometheus rejects a query with more steps than this."""
MOST_ANSWERED: Final = 1_000_000
"""Limit of the samples in one answer: 30 MB of JSON."""


@dataclass(frozen=True, slots=True)
class QueryPiece:
    """Steps that one query asks for, in Unix seconds; both ends are on the grid."""

    first: int
    last: int
    step_seconds: int

    @property
    def columns(self) -> int:
        return (self.last - self.first) // self.step_seconds + 1

    @property
    def times(self) -> range:
        """The steps of the piece."""
        return range(self.first, self.last + 1, self.step_seconds)


def wanted_steps(now: float, columns: int, step_seconds: int) -> range:
    """Return the steps that windows need: the last `columns` steps that are not later than now."""
    last = int(now // step_seconds) * step_seconds
    return range(last - (columns - 1) * step_seconds, last + 1, step_seconds)


def pieces_lacking(steps: range, covered: Iterable[int], most_steps: int) -> tuple[QueryPiece, ...]:
    """Return the pieces to request, newest first: steps that are not covered, and the last covered ones again.

    `covered` are the steps that have been answered.
    """
    known = sorted(set(covered).intersection(steps))
    lacking = sorted(set(steps).difference(known[: max(0, len(known) - OVERLAP_STEPS)]))
    pieces: list[QueryPiece] = []
    for time in reversed(lacking):
        before = pieces[-1] if pieces else None
        if before is not None and before.first - time == steps.step and before.columns < most_steps:
            pieces[-1] = QueryPiece(time, before.last, steps.step)
        else:
            pieces.append(QueryPiece(time, time, steps.step))
    return tuple(pieces)


def steps_at_once(series_read: int | None, series_answered: int) -> int:
    """Return how many steps one query may ask for.

    `series_read` is the number of series that the expression reads; None if it is not known.
    """
    read = MOST_SAMPLES // max(1, series_read or 1)
    answered = MOST_ANSWERED // max(1, series_answered)
    return max(1, min(MOST_POINTS, read, answered))


def steps_after_success(most_steps: int, columns: int, took_seconds: float, limit_seconds: float) -> int:
    """Return how many steps the next query may ask for, after one that was answered in time.

    After an outage, queries ask for single steps, as if earlier queries had been too large. A fast answer shows that
    they were not, so the next query may ask for as many steps as would take half of the time limit, and the gap is
    filled soon.
    """
    in_half_the_time = columns * limit_seconds / (2.0 * max(took_seconds, 0.001))
    return min(MOST_POINTS, max(2 * most_steps, int(in_half_the_time)))


MOST_QUERIES_A_MINUTE: Final = 12
_LONGEST_QUERY_SECONDS = 15.0
_KEPT_PER_QUERY_SECONDS = 2.0
_SHORTEST_QUERY_SECONDS = 0.5


def queries_allowed(refresh_seconds: float) -> int:
    """Return how many queries a refresh may send, so that a minute does not have more than twelve; at least one."""
    return max(1, int(MOST_QUERIES_A_MINUTE * refresh_seconds / 60))


def time_limit(remaining_seconds: float, queries_left: int) -> float:
    """Return how many seconds the next query may take, so that two seconds are left for each query after it.

    So a query that hangs does not use up the time of the others, and an outage costs no more than a whole refresh may.
    """
    kept = _KEPT_PER_QUERY_SECONDS * (queries_left - 1)
    share = remaining_seconds / max(1, queries_left)
    return max(_SHORTEST_QUERY_SECONDS, min(_LONGEST_QUERY_SECONDS, max(share, remaining_seconds - kept)))
