"""Errors in the form of Kubernetes: the body is a `Status` object with the reason that clients switch on.

`Retry-After` is never sent: client-go would sleep for that long inside one of the HPA controller's few workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from adapter.foundation.web.http import Response, json_line
from adapter.metrics.readings import errors as readings

REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_CODES: Mapping[type[readings.ReadingError], int] = {
    readings.UnanswerableSelectorError: 400,
    readings.NoObjectsMatchError: 404,
    readings.NoSampleError: 404,
    readings.TooMuchDemandError: 429,
    readings.QueryRefusedByPrometheusError: 500,
    readings.PartialAnswerError: 500,
    readings.AmbiguousSamplesError: 500,
    readings.ObjectsNotKnownError: 503,
    readings.SourceUnreachableError: 503,
    readings.AnswerTooOldError: 503,
    readings.SampleTooOldError: 503,
    readings.NoDataUncertainError: 503,
    readings.ForeignNamespaceError: 503,
    readings.SourceSlowError: 504,
}


class ApiError(Exception):
    """A request that is answered with a Status instead of what it asked for.

    `allow` lists the methods that a 405 must name. `former` is the error that prometheus-adapter returns in its place,
    if that differs; `Compatibility.error` chooses between the two.
    """

    def __init__(
        self, code: int, message: str, *, allow: Iterable[str] = ("GET",), former: ApiError | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.allow = tuple(allow)
        self.former = former


class _Status(msgspec.Struct, frozen=True):
    """A `Status` of `meta/v1`, fields in the order in which Kubernetes writes them."""

    kind: str
    apiVersion: str  # noqa: N815 - the wire's name
    metadata: dict[str, str]
    status: str
    message: str
    reason: str
    code: int


def status_response(error: ApiError) -> Response:
    """Return the response that states the error."""
    reason = REASONS.get(error.code, "InternalError")
    status = _Status("Status", "v1", {}, "Failure", error.message, reason, error.code)
    headers = (("Allow", ", ".join(error.allow)),) if error.code == 405 else ()
    return Response(error.code, json_line(status), headers=headers)


def code_of(error: readings.ReadingError) -> int:
    """Return the HTTP status for a reading that failed."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), 500)
