"""The reason for a failure in words that any client may read.

They quote nothing from Prometheus, which may name series of other namespaces, and do not say how Prometheus is reached;
the log has both. Error messages leave quoted series out, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
