"""Answers of Prometheus's query API as values, decoded slice by slice.

What an answer says about itself (success, type, warnings) is known before its first sample is handed out. The samples
are decoded while they are iterated over, in slices that give way to requests (`adapter.timing.pace`).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from adapter.sources.prometheus.errors import AnswerTooLargeError, UnexpectedAnswerError, shortened
from adapter.sources.prometheus.slicing import SERIES, VECTOR, Cut, Shape, Span, cuts
from adapter.sources.prometheus.streaming import StreamCutter, TooLongToCutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from adapter.timing.pace import Pace

_GUARD_BYTES = 256 * 1024
_WORTH_SLICES_BYTES = 256 * 1024
"""Label sets of so many bytes take about a millisecond, and come apart by time."""
_SHARED_NAME_BYTES = 32
"""msgspec keeps one copy of each key up to this length; longer ones are interned here."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How much of an answer is accepted before it is AnswerTooLargeError."""

    max_bytes: int = 32 * 1024 * 1024
    """Of the body, after decompression."""
    max_samples: int = 100_000
    """Samples, or series in an answer of series."""


INSTANT_LIMITS = AnswerLimits()
SERIES_LIMITS = AnswerLimits(max_bytes=512 * 1024 * 1024, max_samples=1_000_000)
"""Series are not held, so their bytes cost time and not memory."""


# A Struct and not a dataclass: it is made five times as fast, and 100,000 of them are no work for the garbage
# collector.
class Sample(msgspec.Struct, frozen=True, gc=False):
    """One sample of an instant answer."""

    labels: dict[str, str]
    """Includes `__name__` where the expression keeps it."""
    value: float
    """As Prometheus gave it: NaN and infinities included."""
    timestamp: float
    """Unix seconds of the evaluation, not of the scrape."""


class InstantAnswer:
    """The answer to an instant query; its samples are in `batches`."""

    __slots__ = (
        "_answer",
        "evaluated_at",
        "histograms",
        "histograms_skipped",
        "infos",
        "kind",
        "warnings",
    )

    def __init__(self, kind: Literal["vector", "scalar"], evaluated_at: float, answer: _Elements) -> None:
        self.kind: Literal["vector", "scalar"] = kind
        self.evaluated_at = evaluated_at
        """Unix seconds that the query was asked for."""
        self.warnings = answer.warnings
        """What Prometheus warns of; a partial answer is told by a warning, too."""
        self.infos = answer.infos
        self.histograms_skipped = 0
        """Native histograms left out of the batches handed out so far: they have no single value."""
        self.histograms: list[dict[str, str]] = []
        """Label sets of those that were left out of the list handed out last."""
        self._answer = answer

    def batches(self, pace: Pace) -> Iterator[list[Sample]]:
        """Yield the samples in lists of about 200, in Prometheus's order; each list is decoded when it is asked for.

        A list is empty where all of its samples were native histograms. Work on a list runs at once after its decoding
        and before the next pause, so it needs no slice of its own. Raises UnexpectedAnswerError and
        AnswerTooLargeError, also after the first list: then all of them are void.
        """
        self.histograms_skipped = 0
        if self.kind == "scalar":
            with pace.slice():
                timestamp, value = self._answer.decode(self._answer.envelope_elements, _read_scalar)
            yield [Sample({}, value, timestamp)]
            return
        for wire in self._answer.batches(_read_samples, pace):
            samples = [Sample(s.metric, s.value[1], s.value[0]) for s in wire if s.value is not None]
            self.histograms = [] if len(samples) == len(wire) else _histograms(self._answer.query, wire)
            self.histograms_skipped += len(self.histograms)
            if samples or self.histograms:
                yield samples


class SeriesAnswer:
    """The label sets that match a selector; they are in `batches`, and what is said about them is known after those."""

    def __init__(
        self, selector: str, opened: Callable[[], AbstractContextManager[Iterable[bytes]]], limits: AnswerLimits
    ) -> None:
        """Take what begins the answer, whose bytes are read while the label sets are iterated over."""
        self.warnings: tuple[str, ...] = ()
        """What Prometheus warns of, and that the answer was cut short at the limit, if it was."""
        self.infos: tuple[str, ...] = ()
        self._selector = selector
        self._opened = opened
        self._limits = limits

    def batches(self, pace: Pace) -> Iterator[list[dict[str, str]]]:
        """Yield the label sets (with `__name__`) in lists of some hundred, in Prometheus's order; to be called once.

        Work on a list needs no slice of its own, as that of `InstantAnswer.batches`. Raises PrometheusError, also after
        the first list. Whatever the answer's end may be, lists before it are good unless it is an
        UnexpectedAnswerError.
        """
        count = 0
        with self._opened() as pieces:
            for label_sets in self._decoded(pieces, pace):
                count += len(label_sets)
                if count > self._limits.max_samples:
                    raise _too_many(self._selector, self._limits)
                yield label_sets
        if count == self._limits.max_samples:
            self.warnings += (f"there may be more than these {count:,} series, the most that are asked for",)

    def _decoded(self, pieces: Iterable[bytes], pace: Pace) -> Iterator[list[dict[str, str]]]:
        cutter = StreamCutter(SERIES)
        for piece in pieces:
            cutter.feed(piece)
            if cutter.held >= _WORTH_SLICES_BYTES:
                for decoded in pace.timed(self._runs(cutter)):
                    yield from decoded
        rest = cutter.rest()
        cut, envelope = _opened(self._selector, rest, SERIES, _SeriesEnvelope, pace)
        elements = _Elements(self._selector, rest, cut, bytes(envelope.data), envelope, self._limits)
        self.warnings, self.infos = elements.warnings, elements.infos
        yield from elements.batches(_read_label_sets, pace)

    def _runs(self, cutter: StreamCutter) -> Iterator[list[dict[str, str]]]:
        try:
            while (run := cutter.run()) is not None:
                yield _decode(self._selector, run, _read_label_sets)
        except TooLongToCutError as e:
            raise AnswerTooLargeError(self._selector, f"the answer has {e}") from e


def read_instant(
    query: str, body: bytearray, *, evaluated_at: float, limits: AnswerLimits, pace: Pace
) -> InstantAnswer:
    """Read the body of a successful `/api/v1/query`; raises UnexpectedAnswerError."""
    cut, envelope = _opened(query, body, VECTOR, _QueryEnvelope, pace)
    if envelope.data is None:
        raise UnexpectedAnswerError(query, "the answer has no data")
    kind = envelope.data.result_type
    if kind not in {"vector", "scalar"}:
        raise UnexpectedAnswerError(
            query, f"the answer is a {shortened(kind)}: only expressions that give a vector or a scalar have values"
        )
    elements = _Elements(query, body, cut, bytes(envelope.data.result), envelope, limits)
    return InstantAnswer("scalar" if kind == "scalar" else "vector", evaluated_at, elements)


class ElementGuard:
    """Counts the elements of an answer while its body arrives, so that too large a one is dropped early.

    Exact for the compact form but for the last bytes; all are counted when they are decoded. It looks at the body in
    slices, whose pauses also keep the reading thread from crowding out others.
    """

    def __init__(self, query: str, shape: Shape, limits: AnswerLimits, pace: Pace) -> None:
        self._query = query
        self._boundary = shape.boundary
        self._limits = limits
        self._pace = pace
        self._count = 1
        self._counted_to = 0

    def __call__(self, body: bytearray) -> None:
        """Look at the bytes that were added; raises AnswerTooLargeError."""
        if len(body) - self._counted_to < _GUARD_BYTES:
            return
        # A boundary may have begun before the new bytes; one that ended before them is counted already.
        begin = max(0, self._counted_to - len(self._boundary) + 1)
        with self._pace.slice():
            self._count += body.count(self._boundary, begin)
        self._counted_to = len(body)
        if self._count > self._limits.max_samples:
            raise _too_many(self._query, self._limits)


class _Envelope(msgspec.Struct):
    status: str
    error: str = ""
    warnings: list[str] | None = None
    infos: list[str] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)


class _QueryData(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class _QueryEnvelope(_Envelope):
    data: _QueryData | None = None


class _SeriesEnvelope(_Envelope):
    data: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _WireSample(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, float] | None = None
    histogram: object = None


class _WireTextSample(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    histogram: object = None


# Lax: values come as strings, since JSON has no NaN; the decoder reads them as numbers without a detour.
_samples = msgspec.json.Decoder(list[_WireSample], strict=False)
_text_samples = msgspec.json.Decoder(list[_WireTextSample])
_label_sets = msgspec.json.Decoder(list[dict[str, str]])
_scalar = msgspec.json.Decoder(tuple[float, str])

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.IGNORECASE | re.ASCII,
)

E = TypeVar("E", bound=_Envelope)
T = TypeVar("T")
L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class _Elements:
    """The body of an answer and where its elements are."""

    query: str
    body: bytearray
    cut: Cut
    envelope_elements: bytes
    envelope: _Envelope
    limits: AnswerLimits

    @property
    def warnings(self) -> tuple[str, ...]:
        told = tuple(self.envelope.warnings or ())
        # VictoriaMetrics' way to say that a storage node did not answer.
        return (*told, "the answer is partial (isPartial)") if self.envelope.is_partial else told

    @property
    def infos(self) -> tuple[str, ...]:
        return tuple(self.envelope.infos or ())

    def batches(self, read: Callable[[bytes], list[T]], pace: Pace) -> Iterator[list[T]]:
        count = 0
        for span in (*self.cut.spans, None):
            with pace.slice():
                elements = self.decode(self._piece(span), read)
            count += len(elements)
            if count > self.limits.max_samples:
                raise _too_many(self.query, self.limits)
            if elements:
                yield elements

    def decode(self, piece: bytes, read: Callable[[bytes], L]) -> L:
        return _decode(self.query, piece, read)

    def _piece(self, span: Span | None) -> bytes:
        """Return a run of elements as a JSON array; None stands for those that were left in the envelope."""
        if span is None:
            # `null` is how Go writes a list that nothing was added to.
            return b"[]" if self.envelope_elements in {b"", b"null"} else self.envelope_elements
        start, end = span
        return b"".join((b"[", self.body[start:end], b"]"))


def _decode(query: str, piece: bytes, read: Callable[[bytes], L]) -> L:
    try:
        return read(piece)
    except (msgspec.DecodeError, ValueError, RecursionError) as e:
        raise UnexpectedAnswerError(query, f"the answer cannot be read: {shortened(str(e))}") from e


def _opened(query: str, body: bytearray, shape: Shape, envelope_type: type[E], pace: Pace) -> tuple[Cut, E]:
    """Cut the body and decode its envelope."""
    problem: Exception | None = None
    for cut in cuts(body, shape, pace):
        try:
            with pace.slice():
                envelope = msgspec.json.decode(cut.envelope, type=envelope_type)
        except (msgspec.DecodeError, ValueError, RecursionError) as e:
            problem = e
            continue
        if envelope.status != "success":
            raise UnexpectedAnswerError(
                query, f"the answer is no success but {shortened(envelope.status)}: {shortened(envelope.error)}"
            )
        return cut, envelope
    reason = f": {shortened(str(problem))}" if problem else ""
    raise UnexpectedAnswerError(query, f"the answer is not JSON of Prometheus's API{reason}") from problem


def _read_samples(piece: bytes) -> list[_WireSample]:
    try:
        samples = _samples.decode(piece)
    except msgspec.ValidationError:
        # The lax reading knows `Inf` and not `+Inf`, which is how Prometheus writes it.
        samples = [
            _WireSample(s.metric, None if s.value is None else (s.value[0], _number(s.value[1])), s.histogram)
            for s in _text_samples.decode(piece)
        ]
    if samples and _has_long_name(samples[0].metric):
        for sample in samples:
            sample.metric = _with_shared_names(sample.metric)
    return samples


def _read_label_sets(piece: bytes) -> list[dict[str, str]]:
    return _label_sets.decode(piece)


def _histograms(query: str, wire: list[_WireSample]) -> list[dict[str, str]]:
    """Return the native histograms' labels; a sample that is neither a value nor one makes the answer void."""
    without_value = [sample for sample in wire if sample.value is None]
    if any(sample.histogram is None for sample in without_value):
        raise UnexpectedAnswerError(query, "the answer has a sample without a value")
    return [sample.metric for sample in without_value]


def _read_scalar(piece: bytes) -> tuple[float, float]:
    timestamp, text = _scalar.decode(piece)
    return timestamp, _number(text)


def _number(text: str) -> float:
    """Return a value as Prometheus writes it. Python alone would also take `1_000`, blanks and digits of any script."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{shortened(text)!r} is no value")
    return float(text)


def _has_long_name(labels: dict[str, str]) -> bool:
    """Whether names must be interned, judged by the first of a slice: series of one answer are much alike."""
    return any(len(name) > _SHARED_NAME_BYTES for name in labels)


def _with_shared_names(labels: dict[str, str]) -> dict[str, str]:
    return {sys.intern(name): value for name, value in labels.items()}


def _too_many(query: str, limits: AnswerLimits) -> AnswerTooLargeError:
    return AnswerTooLargeError(query, f"the answer has more than {limits.max_samples:,} samples or series")
