"""Answers of Prometheus's query API as values, decoded slice by slice.

The envelope of an answer (status, type, warnings) is decoded before the first sample is returned. The samples are
decoded during the iteration, in slices between which requests can run (`adapter.foundation.time.pace`).
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Literal

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits, Elements, too_many_elements
from adapter.foundation.sources.prometheus.answers.envelopes import (
    QueryEnvelope,
    SeriesEnvelope,
    decode_part,
    open_answer,
)
from adapter.foundation.sources.prometheus.answers.slicing import SERIES, VECTOR, cuts
from adapter.foundation.sources.prometheus.answers.streaming import StreamCutter, TooLongToCutError
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    NotAVectorError,
    UnexpectedAnswerError,
    shorten_message,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from adapter.foundation.time.pace import Pace

_WORTH_SLICES_BYTES = 256 * 1024
"""Decoding this many bytes of label sets takes about a millisecond, so larger batches are decoded in timed slices."""
_SHARED_NAME_BYTES = 32
"""msgspec keeps one copy of each key up to this length; longer keys are interned here."""


# A Struct and not a dataclass: it is created five times as fast, and the garbage collector does not visit it.
class Sample(msgspec.Struct, frozen=True, gc=False):
    """One sample of an instant answer."""

    labels: dict[str, str]
    """Labels, including `__name__` if the expression keeps it."""
    value: float
    """Value as Prometheus sent it, including NaN and infinities."""
    timestamp: float
    """Unix seconds of the evaluation, not of the scrape."""


class InstantAnswer:
    """The answer to an instant query; its samples are in `batches`."""

    __slots__ = (
        "_answer",
        "_limits",
        "evaluated_at",
        "histograms",
        "histograms_skipped",
        "kind",
        "remarks",
        "warnings",
    )

    def __init__(
        self,
        kind: Literal["vector", "scalar"],
        evaluated_at: float,
        answer: Elements,
        limits: AnswerLimits,
        remarks: tuple[str, ...],
    ) -> None:
        self.kind: Literal["vector", "scalar"] = kind
        self.evaluated_at = evaluated_at
        """Unix seconds of the query's evaluation time."""
        self.warnings = answer.warnings
        """Warnings that samples are missing."""
        self.remarks = remarks
        """What the query engine remarks on an answer that has all samples."""
        self.histograms_skipped = 0
        """Native histograms left out of the batches so far, as they have no single value."""
        self.histograms: list[dict[str, str]] = []
        """Label sets of the native histograms left out of the last batch."""
        self._answer = answer
        self._limits = limits

    def batches(self, pace: Pace) -> Iterator[list[Sample]]:
        """Yield the samples in lists of about 200, in Prometheus's order; each list is decoded when it is requested.

        A list is empty if all of its samples were native histograms. Processing a list needs no slice of its own, since
        it takes place between the list's decoding and the next pause. Raises UnexpectedAnswerError and
        AnswerTooLargeError, possibly after some lists; then none of the lists may be used.
        """
        self.histograms_skipped = 0
        if self.kind == "scalar":
            with pace.slice():
                timestamp, value = decode_part(self._answer.query, self._answer.rest, _read_scalar)
            yield [Sample({}, value, timestamp)]
            return
        for wire in self._answer.batches(_read_samples, self._limits, pace):
            samples = [Sample(s.metric, s.value[1], s.value[0]) for s in wire if s.value is not None]
            self.histograms = [] if len(samples) == len(wire) else _histograms(self._answer.query, wire)
            self.histograms_skipped += len(self.histograms)
            if samples or self.histograms:
                yield samples


class SeriesAnswer:
    """The label sets that match a selector, in `batches`; the warnings are known once the batches are exhausted."""

    def __init__(
        self, selector: str, opened: Callable[[], AbstractContextManager[Iterable[bytes]]], limits: AnswerLimits
    ) -> None:
        """Take the function that begins the answer; its bytes are read during the iteration over the label sets."""
        self.warnings: tuple[str, ...] = ()
        """Warnings of Prometheus, and one if the answer may have been cut off at the limit."""
        self._selector = selector
        self._opened = opened
        self._limits = limits

    def batches(self, pace: Pace) -> Iterator[list[dict[str, str]]]:
        """Yield the label sets (with `__name__`) in lists of some hundred, in Prometheus's order; to be called once.

        As with `InstantAnswer.batches`, processing a list needs no slice of its own. Raises PrometheusError, possibly
        after some lists; these may be used unless the error is an UnexpectedAnswerError.
        """
        count = 0
        with self._opened() as pieces:
            for label_sets in self._decode_series(pieces, pace):
                count += len(label_sets)
                if count > self._limits.max_samples:
                    raise too_many_elements(self._selector, self._limits)
                yield label_sets
        if count == self._limits.max_samples:
            self.warnings += (f"there may be more series than the {count:,} that were requested",)

    def _decode_series(self, pieces: Iterable[bytes], pace: Pace) -> Iterator[list[dict[str, str]]]:
        cutter = StreamCutter(SERIES)
        for piece in pieces:
            cutter.feed(piece)
            if cutter.held >= _WORTH_SLICES_BYTES:
                for decoded in pace.timed(self._runs(cutter)):
                    yield from decoded
        rest = cutter.rest()
        cut, envelope = open_answer(self._selector, rest, cuts(rest, SERIES, pace), SeriesEnvelope, pace)
        self.warnings = envelope.annotations.warnings
        elements = Elements(self._selector, rest, cut, bytes(envelope.data), self.warnings)
        yield from elements.batches(_read_label_sets, self._limits, pace)

    def _runs(self, cutter: StreamCutter) -> Iterator[list[dict[str, str]]]:
        try:
            while (run := cutter.run()) is not None:
                yield decode_part(self._selector, run, _read_label_sets)
        except TooLongToCutError as e:
            raise AnswerTooLargeError(self._selector, f"the answer has {e}") from e


def read_instant(
    query: str, body: bytearray, *, evaluated_at: float, limits: AnswerLimits, pace: Pace
) -> InstantAnswer:
    """Read the body of a successful `/api/v1/query`; raises UnexpectedAnswerError and NotAVectorError."""
    cut, envelope = open_answer(query, body, cuts(body, VECTOR, pace), QueryEnvelope, pace)
    if envelope.data is None:
        raise UnexpectedAnswerError(query, "the answer has no data")
    kind = envelope.data.result_type
    if kind in {"matrix", "string"}:
        raise NotAVectorError(
            query, f"the answer is a {kind}: only expressions that give a vector or a scalar have values"
        )
    if kind not in {"vector", "scalar"}:
        cause = f"the answer has the unknown resultType {shorten_message(kind)}"
        raise UnexpectedAnswerError(query, cause, public_cause="the answer has an unknown resultType")
    warnings, remarks = envelope.annotations
    elements = Elements(query, body, cut, bytes(envelope.data.result), warnings)
    return InstantAnswer("scalar" if kind == "scalar" else "vector", evaluated_at, elements, limits, remarks)


class _WireSample(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, float] | None = None
    histogram: object = None


class _WireTextSample(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    histogram: object = None


# Lax: values are strings, since JSON has no NaN; the decoder converts them directly to numbers.
_samples = decoder_of(list[_WireSample], strict=False)
_text_samples = decoder_of(list[_WireTextSample])
_label_sets = decoder_of(list[dict[str, str]])
_scalar = decoder_of(tuple[float, str])

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.IGNORECASE | re.ASCII,
)


def _read_samples(piece: bytes) -> list[_WireSample]:
    try:
        samples = _samples.decode(piece)
    except msgspec.ValidationError:
        # The lax decoder accepts `Inf` but not `+Inf`, which Prometheus writes.
        samples = [
            _WireSample(s.metric, None if s.value is None else (s.value[0], _number(s.value[1])), s.histogram)
            for s in _text_samples.decode(piece)
        ]
    if samples and _has_long_name(samples[0].metric):
        for sample in samples:
            sample.metric = {sys.intern(name): value for name, value in sample.metric.items()}
    return samples


def _read_label_sets(piece: bytes) -> list[dict[str, str]]:
    return _label_sets.decode(piece)


def _histograms(query: str, wire: list[_WireSample]) -> list[dict[str, str]]:
    """Return the labels of the native histograms; raises UnexpectedAnswerError for a sample without any value."""
    without_value = [sample for sample in wire if sample.value is None]
    if any(sample.histogram is None for sample in without_value):
        raise UnexpectedAnswerError(query, "the answer has a sample without a value")
    return [sample.metric for sample in without_value]


def _read_scalar(piece: bytes) -> tuple[float, float]:
    timestamp, text = _scalar.decode(piece)
    return timestamp, _number(text)


def _number(text: str) -> float:
    """Parse a number as Prometheus writes it; Python's `float` would also accept `1_000`, spaces and foreign digits."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{shorten_message(text)!r} is not a value")
    return float(text)


def _has_long_name(labels: dict[str, str]) -> bool:
    """Return whether names must be interned, judged by a slice's first series, as an answer's series are alike."""
    return any(len(name) > _SHARED_NAME_BYTES for name in labels)
