"""The elements of an answer, decoded slice by slice, and how many of them are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.sources.prometheus.answers.envelopes import decode_part
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.sources.prometheus.answers.slicing import Cut, Shape
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


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an answer: its body, and their places in it."""

    query: str
    body: bytearray
    cut: Cut
    rest: bytes
    """The elements that were not cut out of the envelope."""
    warnings: tuple[str, ...]
    """Warnings that samples are missing."""

    def pieces(self) -> Iterator[bytes]:
        """Yield JSON arrays of whole elements, in order; each is a slice of work to decode."""
        for start, end in self.cut.spans:
            yield b"".join((b"[", self.body[start:end], b"]"))
        # Go writes a nil slice as `null`.
        if self.rest not in {b"", b"null"}:
            yield self.rest

    def batches(self, read: Callable[[bytes], list[T]], limits: AnswerLimits, pace: Pace) -> Iterator[list[T]]:
        """Yield the elements in lists. May raise AnswerTooLargeError and UnexpectedAnswerError after some lists."""
        count = 0
        for piece in self.pieces():
            with pace.slice():
                elements = decode_part(self.query, piece, read)
            count += len(elements)
            if count > limits.max_samples:
                raise too_many_elements(self.query, limits)
            if elements:
                yield elements


def too_many_elements(query: str, limits: AnswerLimits) -> AnswerTooLargeError:
    """Return the error for an answer with too many elements."""
    return AnswerTooLargeError(query, f"the answer has more than {limits.max_samples:,} samples or series")
