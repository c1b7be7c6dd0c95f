"""Converts HTTP statuses and exceptions of the transport to the errors of this package."""

from __future__ import annotations

import http.client
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import urllib3.exceptions

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
    public_error_type,
    shorten_message,
)
from adapter.foundation.sources.prometheus.transport.http_answers import (
    BodyTooLargeError,
    BodyUnreadableError,
    HttpAnswer,
)
from adapter.foundation.sources.prometheus.transport.transport import ConnectFailedError, certificate_refusal

if TYPE_CHECKING:
    from adapter.foundation.sources.deadlines import Deadline
    from adapter.foundation.sources.prometheus.prometheus_settings import Endpoint

TRANSPORT_ERRORS = (
    OSError,
    http.client.HTTPException,
    urllib3.exceptions.HTTPError,
    BodyTooLargeError,
    BodyUnreadableError,
)
"""The exceptions that `Transport.open_answer` raises."""

_SHOWN_BODY_BYTES = 200
_TOO_LONG = {
    413: "the request is too long for it",
    414: "the query is too long for a URL",
    431: "the query is too long for a URL",
}
_CUT_OFF = (http.client.RemoteDisconnected, http.client.IncompleteRead)
_NOT_ABOUT_THE_QUERY = {401, 403, 429}
_NO_TENANT = "no org id"
"""What Mimir and Cortex answer to a request without a tenant."""
_NAME_A_TENANT = "name it with --prometheus-header=X-Scope-OrgID=TENANT, or in a configuration file under `headers`"
_ASK_LESS = "raise its limits on queries, or let fewer clients query it"
_TYPES_OF_VICTORIAMETRICS = {"400": "bad_data", "422": "execution"}
"""The types of the same errors in Prometheus."""
_SERVER_AT_FAULT = {"canceled", "internal", "unavailable"}
_TIMEOUTS_OF_VICTORIAMETRICS = ("timeout exceeded", "deadline exceeded")
"""Its words for a query that took too long, whose type is `422` or `503` like that of any other failure."""
_OF_AN_AGENT = "unavailable with Prometheus Agent"
"""What a Prometheus in agent mode answers to every query."""
_CALL_OF_A_STORE = re.compile(r"proxy \w+\(\): ")
_GRPC_CODE = re.compile(r"rpc error: code = (\w+)")
"""The last gRPC code that a querier of Thanos quotes after the call of a store is that of the store itself."""
_STORE_AWAY = {"Aborted", "Canceled", "Unavailable"}
"""Codes of a store that does not answer. A query beyond a limit is `ResourceExhausted` or `Unknown`."""


class _Refusal(msgspec.Struct):
    status: str
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""


_REFUSAL = decoder_of(_Refusal)


def transport_failure(
    query: str, error: Exception, endpoint: Endpoint, deadline: Deadline, read_seconds: float
) -> PrometheusError:
    """Return the error for an exception of the transport; `read_seconds` limits each time without data."""
    kind: type[PrometheusError] = PrometheusUnreachableError
    cause, public = f"{endpoint.shown} cut the answer off: {_cut_reason(error)}", None
    if isinstance(error, BodyTooLargeError):
        kind, cause = AnswerTooLargeError, str(error)
    elif isinstance(error, BodyUnreadableError):
        kind, cause = UnexpectedAnswerError, str(error)
    elif isinstance(error, ConnectFailedError):
        cause, public = str(error), error.public_cause
    elif isinstance(error, (TimeoutError, urllib3.exceptions.TimeoutError)):
        kind, cause = PrometheusTimeoutError, _timeout_reason(error, endpoint, min(deadline.seconds, read_seconds))
    elif isinstance(error, http.client.HTTPException) and not isinstance(error, _CUT_OFF):
        kind, cause = UnexpectedAnswerError, f"{endpoint.shown} does not answer in valid HTTP: check the port"
    return kind(query, cause, public_cause=_without_address(cause, endpoint) if public is None else public)


def answer_failure(query: str, answer: HttpAnswer, endpoint: Endpoint) -> PrometheusError | None:
    """Return the error for an answer that is not a success; None for a success."""
    if 200 <= answer.status < 300:
        return None
    refusal = _refusal(answer)
    if refusal is not None and answer.status not in _NOT_ABOUT_THE_QUERY:
        return _refusal_error(query, refusal, answer.status, endpoint)
    said = _first_words(answer) if refusal is None else refusal.error
    return _foreign_failure(query, answer, said, endpoint)


def _foreign_failure(query: str, answer: HttpAnswer, said: str, endpoint: Endpoint) -> PrometheusError:
    """Return the error for an answer of which the status tells everything, such as a gateway's."""
    status = answer.status
    if 300 <= status < 400:
        public = f"Prometheus redirects (HTTP {status}) to another address, which is not followed"
        return UnexpectedAnswerError(query, _redirect_reason(answer, endpoint), public_cause=public)
    if status in _TOO_LONG:
        return QueryRefusedError(query, f"http_{status}", _TOO_LONG[status])
    kind: type[PrometheusError] = UnexpectedAnswerError
    cause, repair = f"{endpoint.shown} answers HTTP {status}", ""
    if status == 401 and said == _NO_TENANT:
        kind, repair = AuthenticationRefusedError, _NAME_A_TENANT
        cause = f"{endpoint.shown} has tenants, and the request names none in the header X-Scope-OrgID (HTTP 401)"
    elif status in {401, 403}:
        kind, cause = AuthenticationRefusedError, f"{endpoint.shown} refuses the credentials (HTTP {status})"
    elif status == 504:
        kind = PrometheusTimeoutError
    elif status == 429:
        kind, repair = PrometheusUnreachableError, _ASK_LESS
        cause = f"{endpoint.shown} accepts no more queries at present (HTTP 429)"
    elif status >= 500:
        kind = PrometheusUnreachableError
    elif status == 404:
        cause = f"{endpoint.shown} answers HTTP {status}: check the path of the URL"
    public = _without_address(cause, endpoint)
    if said and status in _NOT_ABOUT_THE_QUERY:
        # Such words are about this program's user, tenant or rights, which clients can neither know nor change.
        cause, said = f"{cause}: {shorten_message(said)}", ""
    return kind(query, cause, said, public, repair)


def _refusal_error(query: str, refusal: _Refusal, status: int, endpoint: Endpoint) -> PrometheusError:
    if refusal.error == _OF_AN_AGENT:
        cause = (
            f"{endpoint.shown} runs as an agent, which stores no samples: give the address of the server it writes to"
        )
        return UnexpectedAnswerError(query, cause, public_cause=_without_address(cause, endpoint))
    store = _code_of_store(refusal)
    if refusal.error_type == "timeout" or store == "DeadlineExceeded" or _names_timeout(query, refusal):
        return PrometheusTimeoutError(query, "Prometheus gave up", refusal.error)
    # Servers other than Prometheus have types of their own: `503` of VictoriaMetrics without its stores, `server_error`
    # of Cortex.
    if refusal.error_type in _SERVER_AT_FAULT or status >= 500 or store in _STORE_AWAY:
        cause = f"{endpoint.shown} cannot answer ({shorten_message(refusal.error_type)})"
        public = f"Prometheus cannot answer ({public_error_type(refusal.error_type)})"
        return PrometheusUnreachableError(query, cause, refusal.error, public)
    error_type = _TYPES_OF_VICTORIAMETRICS.get(refusal.error_type, refusal.error_type)
    return QueryRefusedError(query, error_type or "unknown", refusal.error)


def _without_address(cause: str, endpoint: Endpoint) -> str:
    return cause.replace(endpoint.shown, "Prometheus")


def _names_timeout(query: str, refusal: _Refusal) -> bool:
    """Return whether VictoriaMetrics names a timeout; it also quotes the query, whose own words do not count."""
    return refusal.error_type.isdecimal() and any(
        words in refusal.error and words not in query for words in _TIMEOUTS_OF_VICTORIAMETRICS
    )


def _code_of_store(refusal: _Refusal) -> str:
    """Return the gRPC code with which a store of Thanos failed while the query was executed; empty if none did."""
    call = _CALL_OF_A_STORE.search(refusal.error) if refusal.error_type == "execution" else None
    # One expression for both would search the rest of a long text from each call again.
    codes = _GRPC_CODE.findall(refusal.error, call.end()) if call else []
    return codes[-1] if codes else ""


def _refusal(answer: HttpAnswer) -> _Refusal | None:
    """Return Prometheus's own error in the body; None if the body is not from Prometheus."""
    try:
        refusal = _REFUSAL.decode(answer.body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return refusal if refusal.status == "error" else None


def _redirect_reason(answer: HttpAnswer, endpoint: Endpoint) -> str:
    redirects = f"{endpoint.shown} redirects (HTTP {answer.status})"
    try:
        target = urlsplit(answer.headers.get("location", ""))
        host = f"//{target.hostname}{f':{target.port}' if target.port else ''}" if target.hostname else ""
    except ValueError:
        return f"{redirects} to an address that cannot be read"
    scheme = f"{target.scheme}:" if target.scheme else ""
    # The query and user of another address are omitted: those of login pages contain secrets.
    return (
        f"{redirects} to {shorten_message(scheme + host + target.path)}, which is not followed: give the final address"
    )


def _first_words(answer: HttpAnswer) -> str:
    """Return the first words of a body, without HTML."""
    text = bytes(answer.body[: 10 * _SHOWN_BODY_BYTES]).decode(errors="replace")
    words = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    printable = "".join(character for character in words if character.isprintable())
    return printable[:_SHOWN_BODY_BYTES]


def _timeout_reason(error: Exception, endpoint: Endpoint, seconds: float) -> str:
    reason = f"no answer from {endpoint.shown} within {seconds:.3g} s"
    # The messages of urllib3 about its own timeouts say no more than that.
    is_plain = isinstance(error, urllib3.exceptions.HTTPError)
    return f"{reason}: {error.args[0]}" if error.args and isinstance(error.args[0], str) and not is_plain else reason


def _cut_reason(error: BaseException) -> str:
    if isinstance(error, urllib3.exceptions.HTTPError) and error.__cause__ is not None:
        # Its own text is a representation of the cause.
        return _cut_reason(error.__cause__)
    if refusal := certificate_refusal(error):
        return refusal
    if isinstance(error, http.client.IncompleteRead):
        return "the end is missing"
    if isinstance(error, http.client.RemoteDisconnected):
        return "it closed the connection without an answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shorten_message(str(error))
