"""The elements of an answer, decoded slice by slice, and how many of them are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.sources.prometheus.answers.envelopes import Envelope, decode_part
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.sources.prometheus.answers.slicing import Cut, Shape, Span
    from adapter.foundation.time.pace import Pace

_GUARD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The largest answer that is accepted; larger ones cause AnswerTooLargeError."""

    max_bytes: int = 32 * 1024 * 1024
    """Size of the body after decompression."""
    max_samples: int = 100_000
    """Number of samples, or of series if the answer is a list of series."""


INSTANT_LIMITS = AnswerLimits()
SERIES_LIMITS = AnswerLimits(max_bytes=512 * 1024 * 1024, max_samples=1_000_000)
"""Series are not kept, so their bytes cost time but no memory."""


class ElementGuard:
    """Counts the elements of an answer while its body arrives, so that an answer above the limit is dropped early.

    For the compact form, the count is exact except for the last bytes; decoding counts all elements again. The body is
    searched in slices, and the pauses between them let other threads run.
    """

    def __init__(self, query: str, shape: Shape, limits: AnswerLimits, pace: Pace) -> None:
        self._query = query
        self._boundary = shape.boundary
        self._limits = limits
        self._pace = pace
        self._count = 1
        self._counted_to = 0

    def __call__(self, body: bytearray) -> None:
        """Count the elements in the added bytes; raises AnswerTooLargeError."""
        if len(body) - self._counted_to < _GUARD_BYTES:
            return
        # A boundary may begin before the new bytes; one that ends before them has been counted.
        begin = max(0, self._counted_to - len(self._boundary) + 1)
        with self._pace.slice():
            self._count += body.count(self._boundary, begin)
        self._counted_to = len(body)
        if self._count > self._limits.max_samples:
            raise too_many_elements(self._query, self._limits)


T = TypeVar("T")
L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Elements:
    """The body of an answer and the places of its elements."""

    query: str
    body: bytearray
    cut: Cut
    envelope_elements: bytes
    envelope: Envelope
    limits: AnswerLimits

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of Prometheus."""
        return self.envelope.all_warnings

    @property
    def infos(self) -> tuple[str, ...]:
        """The info annotations of Prometheus."""
        return tuple(self.envelope.infos or ())

    def batches(self, read: Callable[[bytes], list[T]], pace: Pace) -> Iterator[list[T]]:
        """Yield the elements in lists. May raise AnswerTooLargeError and UnexpectedAnswerError after some lists."""
        count = 0
        for span in (*self.cut.spans, None):
            with pace.slice():
                elements = self.decode(self._piece(span), read)
            count += len(elements)
            if count > self.limits.max_samples:
                raise too_many_elements(self.query, self.limits)
            if elements:
                yield elements

    def decode(self, piece: bytes, read: Callable[[bytes], L]) -> L:
        """Return the elements of a JSON array. Raises UnexpectedAnswerError."""
        return decode_part(self.query, piece, read)

    def _piece(self, span: Span | None) -> bytes:
        """Return a run of elements as a JSON array; a `span` of None means the elements that remain in the envelope."""
        if span is None:
            # Go writes a nil slice as `null`.
            return b"[]" if self.envelope_elements in {b"", b"null"} else self.envelope_elements
        start, end = span
        return b"".join((b"[", self.body[start:end], b"]"))


def too_many_elements(query: str, limits: AnswerLimits) -> AnswerTooLargeError:
    """Return the error for an answer with too many elements."""
    return AnswerTooLargeError(query, f"the answer has more than {limits.max_samples:,} samples or series")
