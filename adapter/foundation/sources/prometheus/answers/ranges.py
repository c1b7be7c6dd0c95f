"""Range queries: how they are split so that Prometheus accepts them, and their answers as columns of numbers.

A range of 14 days at a step of 15 s has 80,640 points per series, and Prometheus returns at most 11,000 per request.
So the range is requested in adjacent parts on the same grid of times, and the parts are joined by label set. Times are
counted in whole milliseconds, as Prometheus counts them, so no step is lost or repeated between two parts.

A sample takes 16 bytes here: two columns of float64 for each series, filled slice by slice (`foundation/time/pace`)
without a Python object for each point.

**Values.** NaN, +Inf and -Inf are floats as Prometheus sent them, and the caller decides what they mean. Prometheus
never sends staleness markers: a stale step has no point, like a step without a scrape. A step without a value is absent
from the columns; a caller that needs a regular grid must check the timestamps.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.prometheus.answers.envelopes import decode_part
from adapter.foundation.sources.prometheus.answers.matrices import open_matrix
from adapter.foundation.sources.prometheus.answers.slicing import SLICE_BYTES
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError, UnexpectedAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.foundation.time.pace import Pace

MOST_POINTS = 11_000
"""Limit of steps in one request; Prometheus rejects more (`exceeded maximum resolution`)."""

_BETWEEN_POINTS = b"],["
_POINTS_BYTES = SLICE_BYTES // 2
"""Size of a slice: about 600 points, which take a third of a millisecond."""


@dataclass(frozen=True, slots=True)
class RangeLimits:
    """The largest answer that is accepted; larger ones cause AnswerTooLargeError."""

    max_bytes: int = 64 * 1024 * 1024
    """Size of the body of one part after decompression."""
    max_series: int = 10_000
    max_samples: int = 4_000_000
    """Number of samples in all series and parts together: 64 MB of columns."""


RANGE_LIMITS = RangeLimits()


@dataclass(frozen=True, slots=True)
class RangePart:
    """The times of one request, in milliseconds since 1970; both ends are on the grid."""

    start: int
    end: int
    step: int

    def kept_steps(self, first_points: Iterable[float]) -> RangePart | None:
        """Return the steps to request instead if the server has moved the start; None if it has not.

        `first_points` are the times of the first points of the answer's series, in Unix seconds. Mimir moves the start
        to the time from which on it keeps samples (`-querier.max-query-lookback`, or the retention of a tenant), which
        is between two steps, and so are all points. The steps that are returned begin after the earliest point.
        """
        points = (round(seconds * 1000) for seconds in first_points)
        first = next(points, self.start)
        if not (first - self.start) % self.step:
            return None
        earliest = min(first, *points, self.end)
        if earliest < self.start:
            return None
        return RangePart(self.start + -(-(earliest - self.start) // self.step) * self.step, self.end, self.step)


MOST_MOVES: Final = 2
"""How often a part is requested again because the server has moved its start; once may fall just before a step."""


def range_parts(start: float, end: float, step_seconds: float) -> tuple[RangePart, ...]:
    """Cut a range into parts of at most `MOST_POINTS` steps; the last step is the last one not after `end`.

    Raises ValueError for a step that is not a whole number of milliseconds, and for an end before the start.
    """
    if not all(map(math.isfinite, (start, end, step_seconds))):
        raise ValueError("start, end and step of a range must be finite")
    first, last, step = (round(seconds * 1000) for seconds in (start, end, step_seconds))
    if step < 1 or abs(step - step_seconds * 1000) > 1e-6:
        raise ValueError(f"step of {step_seconds} s: it must be a whole number of milliseconds, at least one")
    if last < first:
        raise ValueError(f"the range ends at {end:.3f}, before it starts at {start:.3f}")
    points = (last - first) // step + 1
    return tuple(
        RangePart(first + begin * step, first + (min(begin + MOST_POINTS, points) - 1) * step, step)
        for begin in range(0, points, MOST_POINTS)
    )


@dataclass(frozen=True, slots=True)
class RangeSeries:
    """The samples of one label set, oldest first."""

    labels: dict[str, str]
    timestamps: array[float] = field(default_factory=lambda: array("d"))
    """Unix seconds, each on the grid of the range; steps without a value are left out."""
    values: array[float] = field(default_factory=lambda: array("d"))
    """One for each timestamp; NaN and infinities as Prometheus sent them."""


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """The answer to a range query. Native histograms are left out, as they have no single value."""

    series: tuple[RangeSeries, ...]
    warnings: tuple[str, ...]
    """Warnings that samples are missing, without duplicates."""


class _WireSeries(msgspec.Struct, gc=False):
    metric: dict[str, str]
    values: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    histograms: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_series = decoder_of(list[_WireSeries])
# Lax: values are strings, as JSON has no NaN.
_points = decoder_of(list[tuple[float, float]], strict=False)
_text_points = decoder_of(list[tuple[float, str]])
_histograms = decoder_of(list[tuple[float, msgspec.Raw]])


class RangeReader(Protocol):
    """Takes the answers to the parts of a range, which are added in order."""

    def add(self, part: RangePart, body: bytearray) -> None:
        """Add the body of a part's answer. Raises UnexpectedAnswerError and AnswerTooLargeError."""


class RangeJoiner:
    """Joins the series of the parts of a range by label set. A RangeReader."""

    def __init__(self, query: str, limits: RangeLimits, pace: Pace) -> None:
        self._query = query
        self._limits = limits
        self._pace = pace
        self._series: dict[frozenset[tuple[str, str]], RangeSeries] = {}
        self._warnings: dict[str, None] = {}
        self._samples = 0

    def add(self, part: RangePart, body: bytearray) -> None:
        """Add the body of a part's answer. Raises UnexpectedAnswerError and AnswerTooLargeError."""
        opened = open_matrix(self._query, body, self._pace)
        self._warnings |= dict.fromkeys(opened.warnings)
        for piece in opened.pieces():
            self._add_elements(part, piece)

    def answer(self) -> RangeAnswer:
        """Return the joined series of all parts added so far."""
        return RangeAnswer(tuple(self._series.values()), tuple(self._warnings))

    def _add_elements(self, part: RangePart, piece: bytes) -> None:
        with self._pace.slice():
            found = decode_part(self._query, piece, _series.decode)
        # Many series with a few points each share a slice.
        for _ in self._pace.timed(self._append_series(part, found)):
            pass

    def _append_series(self, part: RangePart, found: list[_WireSeries]) -> Iterator[None]:
        """Add series one after another; yield after each piece of work of at most half a slice."""
        for one in found:
            yield from self._add_series(part, one)

    def _add_series(self, part: RangePart, wire: _WireSeries) -> Iterator[None]:
        histograms, values = bytes(wire.histograms), bytes(wire.values)
        if histograms:
            decode_part(self._query, histograms, _histograms.decode)
            yield
        if not values:
            if not histograms:
                raise UnexpectedAnswerError(self._query, "the answer has a series without values")
            return
        key = frozenset(wire.metric.items())
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = RangeSeries(wire.metric)
            if len(self._series) > self._limits.max_series:
                raise AnswerTooLargeError(self._query, f"the answer has more than {self._limits.max_series:,} series")
        elif series.timestamps and round(series.timestamps[-1] * 1000) >= part.start:
            raise UnexpectedAnswerError(self._query, "the answer has the same label set twice")
        after = part.start - 1
        for piece in _pieces(values):
            after = self._add_points(part, series, piece, after)
            yield

    def _add_points(self, part: RangePart, series: RangeSeries, piece: bytes, after: int) -> int:
        """Append points, which must be later than `after` (milliseconds); return the time of the last one."""
        points = decode_part(self._query, piece, _read_points)
        timestamps = array("d", map(itemgetter(0), points))
        series.timestamps.extend(timestamps)
        series.values.extend(map(itemgetter(1), points))
        for timestamp in timestamps:
            at = round(timestamp * 1000)
            if not after < at <= part.end or (at - part.start) % part.step:
                # Otherwise parts would overlap or leave a gap.
                raise UnexpectedAnswerError(
                    self._query,
                    f"the answer has a point at {timestamp:.3f} that is not the next requested step: ask"
                    " for a range that starts at a multiple of its step",
                )
            after = at
        self._samples += len(points)
        if self._samples > self._limits.max_samples:
            raise AnswerTooLargeError(self._query, f"the answer has more than {self._limits.max_samples:,} samples")
        return after


def _pieces(values: bytes) -> Iterator[bytes]:
    """Cut a JSON array between its points; an array that is not written as Prometheus writes it stays one piece."""
    start, begin = 0, b""
    while (found := values.find(_BETWEEN_POINTS, start + _POINTS_BYTES)) >= 0:
        yield b"".join((begin, values[start : found + 1], b"]"))
        start, begin = found + 2, b"["
    yield begin + values[start:]


def _read_points(piece: bytes) -> list[tuple[float, float]]:
    try:
        return _points.decode(piece)
    except msgspec.ValidationError:
        # The lax decoder accepts `Inf` but not `+Inf`, which Prometheus writes.
        return [(timestamp, float(text)) for timestamp, text in _text_points.decode(piece)]
