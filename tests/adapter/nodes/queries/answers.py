"""Answers to range queries, as Prometheus writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.answers.ranges import RANGE_LIMITS, RangeLimits, range_parts
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.queries.range_matrix import MatrixReader, SeriesMatrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.queries.query_steps import QueryPiece

Series = tuple[dict[str, str], "Mapping[int, float]"]
"""Labels, and values by time in Unix seconds."""


def matrix_body(series: Sequence[Series], **envelope: object) -> bytearray:
    """Return the body of an answer."""
    result = [
        {"metric": labels, "values": [[time, _text(value)] for time, value in values.items()]}
        for labels, values in series
    ]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}, **envelope}
    return bytearray(json.dumps(document, separators=(",", ":")).encode())


def read_matrix(body: bytes | bytearray, piece: QueryPiece, limits: RangeLimits = RANGE_LIMITS) -> SeriesMatrix:
    """Return what a reader reads from a body."""
    reader = MatrixReader("up", piece, limits, UNPACED)
    (part,) = range_parts(piece.first, piece.last, piece.step_seconds)
    reader.add(part, bytearray(body))
    return reader.matrix()


def _text(value: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(text := repr(value), text)
