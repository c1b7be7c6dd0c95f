"""Answers to range queries, cut between their series, so that each is decoded in slices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.answers.answer_elements import Elements
from adapter.foundation.sources.prometheus.answers.envelopes import QueryEnvelope, open_answer
from adapter.foundation.sources.prometheus.answers.slicing import MATRIX, SLICE_BYTES, Cut, Span, cuts
from adapter.foundation.sources.prometheus.errors import UnexpectedAnswerError, shorten_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.time.pace import Pace

_LOOKED_AT_BYTES = 1024 * 1024
"""In this many bytes, the first point is searched for; only labels stand before it."""
_FIRST_POINT = re.compile(rb'"values":\[\[([0-9]+(?:\.[0-9]+)?),')


def first_points(body: bytearray, pace: Pace) -> Iterator[float]:
    """Yield the time of the first point of each series, in Unix seconds; none of an answer of another form."""
    first = _FIRST_POINT.search(body, 0, _LOOKED_AT_BYTES)
    if first is None:
        return
    # Nearly always, no more is needed than this one, which stands at the beginning.
    yield float(first[1])
    for found in pace.timed(_FIRST_POINT.finditer(body, first.end())):
        yield from (float(each[1]) for each in found)


def open_matrix(query: str, body: bytearray, pace: Pace) -> Elements:
    """Return the series of a range query's answer, not decoded yet. Raises UnexpectedAnswerError."""
    cut, envelope = open_answer(query, body, _cuts(body, pace), QueryEnvelope, pace)
    data = envelope.data
    if data is None or data.result_type != "matrix":
        kind = "nothing" if data is None else shorten_message(data.result_type)
        raise UnexpectedAnswerError(query, f"the answer to a range query is {kind} and not a matrix")
    return Elements(query, body, cut, bytes(data.result), envelope.annotations.warnings)


def _cuts(body: bytearray, pace: Pace) -> Iterator[Cut]:
    if (cut := cut_matrix(body, pace)) is not None:
        yield cut
    yield from cuts(body, MATRIX, pace)


def cut_matrix(body: bytearray, pace: Pace) -> Cut | None:
    """Return an answer of the compact form, cut between series; None if it has another form.

    `slicing` does the same between samples.

    A series has hundreds of kilobytes, almost all of them points, which contain no brace. So a search for braces is a
    hundred times faster than one for the boundary, and short enough to let requests run in between.
    """
    head = MATRIX.head.match(body)
    if head is None:
        return None
    spans = [span for part in pace.timed(_spans(body, head.end())) for span in part]
    rest = spans[-1][1] + 1 if spans else head.end()
    return Cut(bytes(body[: head.end()] + body[rest:]), tuple(spans))


def _spans(body: bytearray, start: int) -> Iterator[Span]:
    """Yield runs of whole series, each as long as a slice; what follows the last run is shorter, or a single series."""
    end = start + SLICE_BYTES - 1
    while (end := body.find(b"}", end) + 1) > 0:
        if body.startswith(MATRIX.boundary, end - 1):
            yield start, end
            start = end + 1
            end = start + SLICE_BYTES - 1
