"""The reason for a failure in words that any client may read.

They quote nothing from Prometheus, which may name series of other namespaces, and do not say how Prometheus is reached;
the log has both. Error messages leave quoted series out, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.errors import PrometheusError, QueryRefusedError, shorten_message
from adapter.metrics.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    ForeignNamespaceError,
    NoSampleError,
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
    TooMuchDemandError,
    UnanswerableSelectorError,
)
from adapter.metrics.rulebook.model import PlanKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.readings.failure import Failure

_SERIES = re.compile(r"[{\[]")
"""Matches the beginning of a label set, or of a list of label sets."""
_QUOTES = re.compile(
    r"""[{\["`]|(?<!\w)'|\w+://|\baddr:|\blookup\s|\d+(?:\.\d+){3}|[\da-f]*(?::[\da-f]*){2,}|"""
    r"""\b[\w.-]+:\d|\b[a-z][\w-]*(?:\.[\w-]+)+""",
    re.IGNORECASE,
)
"""Matches the beginning of a label set, of a list of label sets, of a quoted text, or of the address of a server."""
_READ_CHARACTERS = 400
"""No more is searched, because the time grows with the square of the length. Half of it is shown at most."""
_OF_THE_PARSER = ("invalid parameter", "parse error")
"""The beginnings of what Prometheus says of a query that it cannot parse, of which it quotes a part."""

_CAUSES: Mapping[type[ReadingError], str] = {
    SourceUnreachableError: "Prometheus cannot be asked",
    SourceSlowError: "Prometheus does not answer in time",
    QueryRefusedByPrometheusError: "Prometheus refuses the query",
    PartialAnswerError: "Prometheus answers only a part",
    AmbiguousSamplesError: "several samples claim to be the value",
    ForeignNamespaceError: "the samples carry another namespace",
    AnswerTooOldError: "the last good answer is too old",
    NoSampleError: "Prometheus has no sample",
    TooMuchDemandError: "too many different requests, or too many values, are in demand",
    UnanswerableSelectorError: "no query can be made for the request",
    ObjectsNotKnownError: "the objects of this kind are not known at the moment",
    ReadingError: "internal error, see the adapter's log",
}


def cause_of(error: type[ReadingError]) -> str:
    """Return why there is no newer value, in words that any client may read."""
    return next((_CAUSES[kind] for kind in error.__mro__ if kind in _CAUSES), _CAUSES[ReadingError])


def reason_for_requesters(failure: Failure, kind: PlanKind) -> str:
    """Return why a query of this plan failed, in words that any client may read.

    A wide query serves many namespaces, so nothing that Prometheus said about its failure is repeated, unless
    Prometheus itself cannot be asked.
    """
    if kind is PlanKind.WIDE and not failure.of_source:
        return f"the query for all namespaces fails: {cause_of(failure.error)}"
    return failure.message if failure.public_message is None else failure.public_message


def public_text(error: PrometheusError) -> str | None:
    """Return the part of an error that any client may read; None if clients may read all of it."""
    own = error.own_cause
    if error.public_cause != own:
        # A reason, such as that of a certificate, may name more.
        own = without_series(error.public_cause)
    if not error.said:
        return None if own == error.own_cause else f"query {shorten_message(error.query)}: {own}"
    # A query that Prometheus did not evaluate is quoted itself, and not its series.
    is_of_text = isinstance(error, QueryRefusedError) and error.is_of_text and error.said.startswith(_OF_THE_PARSER)
    said = _up_to(_SERIES if is_of_text else _QUOTES, error.said)
    return f"query {shorten_message(error.query)}: {own}: {said}"


def without_series(text: str) -> str:
    """Return what Prometheus said, up to the first series, text or address that it quotes."""
    return _up_to(_QUOTES, text)


def _up_to(mark: re.Pattern[str], text: str) -> str:
    plain, *rest = mark.split(text[:_READ_CHARACTERS], maxsplit=1)
    return (
        f"{shorten_message(plain)} … (all of it is in the adapter's log)".lstrip() if rest else shorten_message(plain)
    )
