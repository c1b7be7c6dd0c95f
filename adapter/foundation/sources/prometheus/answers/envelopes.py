"""The envelopes of Prometheus's answers: the status, the type and the warnings around the elements.

The elements of a long answer are cut out first (`slicing`) and decoded part by part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.prometheus.answers.annotations import Annotations, sorted_annotations
from adapter.foundation.sources.prometheus.errors import UnexpectedAnswerError, shorten_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.sources.prometheus.answers.slicing import Cut
    from adapter.foundation.time.pace import Pace


class Envelope(msgspec.Struct):
    """The keys that all answers have."""

    status: str
    error: str = ""
    warnings: list[str] | None = None
    infos: list[str] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)
    """Whether the answer is partial; VictoriaMetrics sets it if a storage node did not answer."""

    @property
    def annotations(self) -> Annotations:
        """The annotations, with a further warning if the answer says that it is partial."""
        partial = ("the answer is partial (isPartial)",) if self.is_partial else ()
        return sorted_annotations((*(self.warnings or ()), *partial), self.infos or ())


class QueryData(msgspec.Struct):
    """The data of a query's answer."""

    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw
    """The elements that were not cut out."""


class QueryEnvelope(Envelope):
    """The envelope of `/api/v1/query` and `/api/v1/query_range`."""

    data: QueryData | None = None


class SeriesEnvelope(Envelope):
    """The envelope of `/api/v1/series`."""

    data: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """The elements that were not cut out."""


_LOOKED_AT_BYTES: Final = 256
"""If an answer is not JSON, this many of its bytes are searched for signs of what it is instead."""

_STATUSES: Final = ("success", "error")

E = TypeVar("E", bound=Envelope)
T = TypeVar("T")


def open_answer(query: str, body: bytearray, cuts: Iterable[Cut], form: type[E], pace: Pace) -> tuple[Cut, E]:
    """Return the first of the cuts whose envelope is JSON, and the envelope.

    Raises UnexpectedAnswerError for a failed query.
    """
    problem: Exception | None = None
    for cut in cuts:
        try:
            with pace.slice():
                envelope = decoder_of(form).decode(cut.envelope)
        except (msgspec.DecodeError, ValueError, RecursionError) as e:
            problem = e
            continue
        refuse_failure(query, envelope)
        return cut, envelope
    what = f": {reason}" if (reason := _fault_of_body(body, problem)) else ""
    raise UnexpectedAnswerError(query, f"the answer is not JSON in the format of Prometheus's API{what}") from problem


def _fault_of_body(body: bytearray, problem: Exception | None) -> str:
    if not body:
        return "it is empty"
    if body[:_LOOKED_AT_BYTES].lstrip().startswith(b"<"):
        return "it is a page for browsers, such as a proxy's login"
    return shorten_message(str(problem)) if problem else ""


def refuse_failure(query: str, envelope: Envelope) -> None:
    """Raise UnexpectedAnswerError for an answer with HTTP status 200 that is not a success or also states an error."""
    if envelope.status != "success" or envelope.error:
        cause = f"the answer has the status {shorten_message(envelope.status)}"
        public = cause if envelope.status in _STATUSES else "the answer has an unknown status"
        raise UnexpectedAnswerError(query, cause, envelope.error, public)


def decode_part(query: str, part: bytes, read: Callable[[bytes], T]) -> T:
    """Return a part of an answer as decoded by `read`, whose decoding errors become UnexpectedAnswerError."""
    try:
        return read(part)
    except (msgspec.DecodeError, ValueError, RecursionError) as e:
        cause = f"the answer cannot be read: {shorten_message(str(e))}"
        raise UnexpectedAnswerError(query, cause, public_cause="the answer cannot be read") from e
