"""Reads the answer to one range query about nodes, within its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.answers.ranges import RangeLimits
from adapter.nodes.queries.range_matrix import MatrixReader

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.foundation.time.pace import Pace
    from adapter.nodes.queries.query_steps import QueryPiece

LIMITS: Final = RangeLimits(max_bytes=256 * 1024 * 1024, max_series=250_000, max_samples=8_000_000)
"""Limits for 5,000 nodes with four series each and 68 steps, with room for installations that scrape everything
twice."""


def read_piece(
    client: PrometheusClient, expression: str, piece: QueryPiece, timeout_seconds: float, pace: Pace
) -> MatrixReader:
    """Ask for the steps of a piece, and return the reader with the answer. Raises PrometheusError."""
    reader = MatrixReader(expression, piece, LIMITS, pace)
    client.read_range(
        reader,
        expression,
        start=piece.first,
        end=piece.last,
        step_seconds=piece.step_seconds,
        timeout_seconds=timeout_seconds,
        limits=LIMITS,
    )
    return reader
