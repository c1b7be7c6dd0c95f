"""Translates errors of Prometheus into what they mean for the clients that ask for a metric."""

from __future__ import annotations

from adapter.foundation.sources.prometheus.errors import (
    ERRORS_OF_SERVER,
    AnswerTooLargeError,
    AuthenticationRefusedError,
    NotAVectorError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
    UnreadableForMatchersError,
)
from adapter.foundation.sources.prometheus.public_errors import public_text
from adapter.metrics.readings.errors import (
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
)
from adapter.metrics.readings.failure import Failure

_MEANINGS: tuple[tuple[type[PrometheusError], type[ReadingError]], ...] = (
    (PrometheusUnreachableError, SourceUnreachableError),
    (PrometheusTimeoutError, SourceSlowError),
    (QueryRefusedError, QueryRefusedByPrometheusError),
    (AuthenticationRefusedError, SourceUnreachableError),
    (AnswerTooLargeError, PartialAnswerError),
    (NotAVectorError, QueryRefusedByPrometheusError),
    (UnexpectedAnswerError, SourceUnreachableError),
    (UnreadableForMatchersError, QueryRefusedByPrometheusError),
)


def failure_of(error: PrometheusError) -> Failure:
    """Return the meaning of an error of Prometheus for a requester."""
    meaning = next((meaning for kind, meaning in _MEANINGS if isinstance(error, kind)), SourceUnreachableError)
    # A bare HTTP status comes from something in between, which would treat narrower queries the same.
    refused = isinstance(error, QueryRefusedError) and not error.error_type.startswith("http_")
    too_large = isinstance(error, AnswerTooLargeError)
    return Failure(
        meaning,
        str(error),
        narrows=refused or too_large,
        of_source=isinstance(error, ERRORS_OF_SERVER),
        public_message=public_text(error),
        lasting=too_large
        or isinstance(error, NotAVectorError | UnreadableForMatchersError)
        or (isinstance(error, QueryRefusedError) and error.is_of_text),
    )
