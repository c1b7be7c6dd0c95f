"""What can go wrong between a query and its answer, as classes that a caller can act on.

    PrometheusError
    ├── PrometheusUnreachableError     no server, no TLS, cut off, or a gateway that found none: later it may work
    ├── PrometheusTimeoutError         not answered within its time, by our clock or by Prometheus's
    ├── QueryRefusedError              Prometheus understood the request and says no: a narrower query may work
    ├── AuthenticationRefusedError     401 or 403: credentials are missing or wrong
    ├── AnswerTooLargeError            more bytes or samples than the caller allows: a narrower query may work
    └── UnexpectedAnswerError          something answered that does not speak Prometheus's API

Callers never see the transport's own errors: those are chained (`raise … from`). Messages name the query, shortened,
and the cause; they hold neither credentials nor more than a few words of a foreign body. `SettingsError` is apart:
nothing was asked yet.
"""

from __future__ import annotations

from typing import ClassVar

_SHOWN_CHARACTERS = 200


class SettingsError(ValueError):
    """The connection's settings cannot work; the message says which one and what to write instead."""


class PrometheusError(Exception):
    """A query has no answer."""

    result: ClassVar[str] = "failed"
    """The word for it in counters."""

    def __init__(self, query: str, cause: str) -> None:
        super().__init__(query, cause)
        self.query = query
        """The PromQL expression, series selector or API path that was asked, in full."""
        self.cause = cause
        """What went wrong, without the query."""

    def __str__(self) -> str:
        return f"query {shortened(self.query)}: {self.cause}"


class PrometheusUnreachableError(PrometheusError):
    """No server answered: not resolved, not connected, TLS refused, cut off, or HTTP 5xx (also of a gateway)."""

    result = "unreachable"


class PrometheusTimeoutError(PrometheusError):
    """The answer was not there in time."""

    result = "timeout"


class QueryRefusedError(PrometheusError):
    """Prometheus refused the query."""

    result = "refused"

    def __init__(self, query: str, error_type: str, message: str) -> None:
        super().__init__(query, f"Prometheus refused it ({error_type}): {shortened(message)}")
        self.error_type = error_type
        """`bad_data`, `execution`, … as Prometheus's API names it; `http_414` where only the status tells."""
        self.message = message


class AuthenticationRefusedError(PrometheusError):
    """HTTP 401 or 403."""

    result = "unauthenticated"


class AnswerTooLargeError(PrometheusError):
    """The answer has more bytes or samples than the limit."""

    result = "too_large"


class UnexpectedAnswerError(PrometheusError):
    """The answer is not one of Prometheus's API: HTML, a redirect, broken JSON, a matrix."""

    result = "unexpected"


def shortened(text: str) -> str:
    """Return the text on one line and fit for a log: at most 200 characters, the middle left out."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    half = _SHOWN_CHARACTERS // 2
    return f"{line[:half]} … {line[-half:]}"
