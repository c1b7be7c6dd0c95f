"""The answer to a range query as one array: a row for each series, a column for each step.

The same series come with every refresh, and decoding the labels of tens of thousands of them takes most of the time.
So a reader identifies the series of an answer by a digest of the texts of all labels (`SeriesNames.digest`), and
decodes the labels only if they differ from the last ones.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.prometheus.answers.annotations import warnings_of_stores
from adapter.foundation.sources.prometheus.answers.envelopes import decode_part
from adapter.foundation.sources.prometheus.answers.matrices import open_matrix
from adapter.foundation.sources.prometheus.answers.ranges import RangeLimits
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError, UnexpectedAnswerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.sources.prometheus.answers.ranges import RangePart
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.foundation.time.pace import Pace
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.queries.query_steps import QueryPiece

LIMITS: Final = RangeLimits(max_bytes=256 * 1024 * 1024, max_series=250_000, max_samples=8_000_000)
"""Limits for 5,000 nodes with four series each and 68 steps, with room for installations that scrape everything
twice."""
_NAMES_A_SLICE: Final = 500
MOST_LABEL_BYTES: Final = 64 * 1024
"""Limit of the labels of a series, as JSON; series with more are left out. Built-in queries return far less."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesNames:
    """The series of an answer, in its order."""

    digest: bytes
    """Digest of the texts of all labels."""
    texts: tuple[bytes, ...]
    """The labels of each series, a JSON object."""

    def labels(self, query: str, pace: Pace) -> list[dict[str, str]]:
        """Return the labels. Raises UnexpectedAnswerError if they cannot be read, or if a label set occurs twice."""
        found: list[dict[str, str]] = []
        for part in pace.slices(self.texts, _NAMES_A_SLICE):
            found += decode_part(query, b"".join((b"[", b",".join(part), b"]")), _label_sets.decode)
        if len({frozenset(labels.items()) for labels in found}) < len(found):
            raise UnexpectedAnswerError(query, "the answer has the same label set twice")
        return found


@dataclass(frozen=True, slots=True, eq=False)
class SeriesMatrix:
    """The answer to a range query."""

    names: SeriesNames
    values: Floats
    """The values, of shape (series, steps); NaN where a series has no sample."""
    warnings: tuple[str, ...] = ()
    """Warnings of Prometheus, as in RangeAnswer."""
    left_out: int = 0
    """How many series were left out because of long labels."""


class _WireSeries(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    values: list[tuple[float, float]] = []
    histograms: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _WireTextSeries(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    values: list[tuple[float, str]] = []
    histograms: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


# Lax: values are strings, as JSON has no NaN.
_series = decoder_of(list[_WireSeries], strict=False)
_text_series = decoder_of(list[_WireTextSeries])
_label_sets = decoder_of(list[dict[str, str]])


class MatrixReader:
    """A RangeReader for the answer for one piece. It raises the same errors as `RangeJoiner` for the same answers."""

    def __init__(self, query: str, piece: QueryPiece, limits: RangeLimits, pace: Pace) -> None:
        """`pace` is for decoding, slice by slice."""
        self._query = query
        self._piece = piece
        self._limits = limits
        self._pace = pace
        self._texts: list[bytes] = []
        self._blocks: list[Floats] = []
        self._digest = hashlib.sha256()
        self._warnings: dict[str, None] = {}
        self._samples = 0
        self._left_out = 0

    def add(self, part: RangePart, body: bytearray) -> None:
        """Add the answer, which has one part, since a piece never has more steps than Prometheus answers at once."""
        opened = open_matrix(self._query, body, self._pace)
        self._warnings |= dict.fromkeys(opened.warnings)
        for series in opened.pieces():
            with self._pace.slice():
                self._add_series(part, decode_part(self._query, series, _read_series))

    def matrix(self, *, is_overridden: bool = False) -> SeriesMatrix:
        """Return the matrix that was read; `is_overridden` means that the query is not a built-in one.

        Of a built-in one, only warnings of stores count (`warnings_of_stores`).
        """
        warnings = tuple(self._warnings) if is_overridden else warnings_of_stores(self._warnings)
        values = np.concatenate(self._blocks) if self._blocks else np.empty((0, self._piece.columns))
        names = SeriesNames(self._digest.digest(), tuple(self._texts))
        return SeriesMatrix(names, values, warnings, self._left_out)

    def _add_series(self, part: RangePart, found: Sequence[_WireSeries]) -> None:
        if not all(one.values for one in found):
            if any(not one.values and not bytes(one.histograms) for one in found):
                raise UnexpectedAnswerError(self._query, "the answer has a series without values")
            # Native histograms have no single value.
            found = [one for one in found if one.values]
        short = [one for one in found if len(memoryview(one.metric)) <= MOST_LABEL_BYTES]
        self._left_out += len(found) - len(short)
        texts = [bytes(one.metric) for one in short]
        self._texts += texts
        # JSON objects cannot be confused when concatenated: only equal ones result in equal texts.
        self._digest.update(b"".join(texts))
        if len(self._texts) > self._limits.max_series:
            raise AnswerTooLargeError(self._query, f"the answer has more than {self._limits.max_series:,} series")
        self._add_points(part, [one.values for one in short])

    def _add_points(self, part: RangePart, points: Sequence[Sequence[tuple[float, float]]]) -> None:
        lengths = np.fromiter(map(len, points), dtype=np.intp, count=len(points))
        count, columns = int(lengths.sum()), self._piece.columns
        self._samples += count
        if self._samples > self._limits.max_samples:
            raise AnswerTooLargeError(self._query, f"the answer has more than {self._limits.max_samples:,} samples")
        numbers = chain.from_iterable(chain.from_iterable(points))
        flat = np.fromiter(numbers, dtype=np.float64, count=2 * count).reshape(count, 2)
        # A value that is not a number, or far from any step, gets a place before the first one.
        after = np.rint(flat[:, 0] * 1000) - part.start
        after = np.where((after >= 0) & (after < columns * part.step), after, -1.0)
        steps, beside = np.divmod(after, part.step)
        is_step = (beside == 0) & (steps >= 0)
        if not is_step.all():
            raise self._off_the_steps(float(flat[np.argmin(is_step), 0]))
        places = np.repeat(np.arange(len(points)) * columns, lengths) + steps.astype(np.intp)
        is_later = places[1:] > places[:-1]
        if not is_later.all():
            raise self._off_the_steps(float(flat[np.argmin(is_later) + 1, 0]))
        block = np.full(len(points) * columns, np.nan)
        block[places] = flat[:, 1]
        self._blocks.append(block.reshape(len(points), columns))

    def _off_the_steps(self, timestamp: float) -> UnexpectedAnswerError:
        return UnexpectedAnswerError(
            self._query,
            f"the answer has a point at {timestamp:.3f} that is not the next requested step: ask for a range"
            " that starts at a multiple of its step",
        )


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


def _read_series(elements: bytes) -> Sequence[_WireSeries]:
    try:
        return _series.decode(elements)
    except msgspec.ValidationError:
        # The lax decoder accepts `Inf` but not `+Inf`, which Prometheus writes.
        return [
            _WireSeries(one.metric, [(timestamp, float(text)) for timestamp, text in one.values], one.histograms)
            for one in _text_series.decode(elements)
        ]
